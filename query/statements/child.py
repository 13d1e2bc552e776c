"""The child process that answers one SQL statement, and limits its cost.

`python -m crystalperf.query.statements.child`, isolated, with limited address space, killed by its parent at the
timeout: a statement can hang DuckDB where it ignores interrupts, and use memory beyond DuckDB's own limit.

    parent → child   the request, JSON
    child → parent   messages: a letter, the length (8 bytes, little endian), JSON of that length
                     O  the files are open      C  {names, types} of columns  E  {kind of error, message, remedy}
                     P  the statement parses    R  rows, some MB of them      D  all rows were sent
                                                B  bytes of Arrow or Parquet, not JSON
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from crystalperf.indexes import attach, guard, tables
from crystalperf.indexes.children import end_with_parent, error_report
from crystalperf.indexes.errors import CrystalPerfError, NoAnswerError, Remedy, SettingError
from crystalperf.query.statements import values
from crystalperf.query.statements.asking import WANTS_MEMORY, Form, Request
from crystalperf.query.statements.rows import distinct, json_value
from crystalperf.query.statements.shipping import (
    index_names,
    nearest_column,
    nearest_table,
    run_names,
    ship_indexes,
    ship_run,
)

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Debug

MAX_THREADS = 8
"""Maximum threads of one statement; each takes some of the limited address space."""

SENT_BYTES = 1 << 20
"""Approximate size of a message of rows: a row may have a byte or a hundred MB."""

BATCH_ROWS = 10_000
"""Rows of a batch of Arrow, and of a row group of Parquet."""

Send = Callable[[str, object], None]

_SETTINGS = (
    "SET enable_progress_bar = false",  # DuckDB would draw it on stdout
    "SET python_enable_replacements = false",  # or a name in FROM could be a variable of this program
)
"""Settings in addition to the locks of every reader."""


def serve() -> None:
    """Answer the request on stdin."""
    # Other output to standard output, such as DuckDB's progress bar, must not break a message.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    sent_bytes = 0

    def send(kind: str, content: object) -> None:
        nonlocal sent_bytes
        text = bytes(content) if isinstance(content, bytes) else json.dumps(content, allow_nan=False).encode()
        sent_bytes += len(text)
        if kind in ("R", "B") and 0 < request.most_bytes < sent_bytes:
            raise NoAnswerError(f"the answer is larger than {request.most_bytes >> 20} MiB; select less, or add LIMIT")
        answers.write(kind.encode() + len(text).to_bytes(8, "little") + text)
        answers.flush()

    end_with_parent()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    resource.setrlimit(resource.RLIMIT_AS, (request.address_bytes, request.address_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # no writes to any file, whatever the statement
    try:
        _answer(request, send)
    except CrystalPerfError as error:
        send("E", error_report(error))
    except (MemoryError, duckdb.OutOfMemoryException):
        send("E", error_report(NoAnswerError(WANTS_MEMORY)))
    except duckdb.Error as error:
        if _of_memory(error):
            send("E", error_report(NoAnswerError(WANTS_MEMORY)))
        else:
            send("E", error_report(explained(str(error))))
    except (ValueError, OverflowError) as error:
        what = " ".join(str(error).split())[:200]
        send("E", error_report(NoAnswerError(f"SQL: a value cannot be shown ({what})")))


def _answer(request: Request, send: Send) -> None:
    connection = opened(
        None if request.run is None else Path(request.run),
        [(name, Path(path)) for name, path in request.indexes],
        request.memory_bytes,
        [(name, Path(path)) for name, path in request.runs],
        request.statement,
    )
    send("O", None)
    try:
        _answer_opened(connection, request, send)
    except duckdb.Error as error:
        if _of_memory(error):
            raise
        raise explained(str(error), connection) from error


def _answer_opened(connection: duckdb.DuckDBPyConnection, request: Request, send: Send) -> None:
    statement = check(connection, request.statement)
    send("P", None)
    names = execute(connection, statement)
    if request.form == "values":
        names = distinct(names)
    send("C", {"names": names, "types": [str(each[1]) for each in connection.description or []]})
    if request.form in ("rows", "values"):
        _send_rows(connection, json_value if request.form == "rows" else values.sent, send)
    else:
        _send_arrow(connection, distinct(names), request.form, send)
    send("D", None)


def execute(connection: duckdb.DuckDBPyConnection, statement: str) -> list[str]:
    """Run a checked statement; returns the names of its columns.  The connection then has the rows."""
    connection.execute(statement)
    described = connection.description or []
    if any("TIME ZONE" in str(each[1]) for each in described):
        # DuckDB converts times with a zone to text: reading them as values would need a package for time zones.
        shown = [
            f"#{number}{'::VARCHAR' if 'TIME ZONE' in str(each[1]) else ''}" for number, each in enumerate(described, 1)
        ]
        connection.execute(f"SELECT {', '.join(shown)} FROM ({statement}\n)")
    return [each[0] for each in described]


def _of_memory(error: duckdb.Error) -> bool:
    return "Out of Memory" in str(error) or "bad_alloc" in str(error)


def _send_rows(connection: duckdb.DuckDBPyConnection, plain_value: Callable[[Any], Any], send: Send) -> None:
    count = 1
    while rows := connection.fetchmany(count):
        plain = [[plain_value(each) for each in row] for row in rows]
        size = len(json.dumps(plain))
        send("R", plain)
        count = max(1, min(count * 4, BATCH_ROWS, count * SENT_BYTES // max(size, 1)))


def _send_arrow(connection: duckdb.DuckDBPyConnection, names: Sequence[str], form: Form, send: Send) -> None:
    try:
        import pyarrow as arrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise NoAnswerError(f"{form} needs the package pyarrow, which is not installed; use CSV or JSON") from error
    read = getattr(connection, "to_arrow_reader", None) or getattr(connection, "fetch_record_batch")  # noqa: B009
    batches = read(BATCH_ROWS)  # fetch_record_batch is its name before DuckDB 1.4
    schema = arrow.schema([field.with_name(name) for field, name in zip(batches.schema, names, strict=True)])
    sink = arrow.PythonFile(_Sent(send), mode="w")
    if form == "arrow":
        writer = ipc.new_stream(sink, schema)
    else:
        writer = parquet.ParquetWriter(sink, schema, compression="zstd")
    with writer:
        for batch in batches:
            writer.write_batch(arrow.RecordBatch.from_arrays(batch.columns, schema=schema))


class _Sent(io.RawIOBase):
    """A file that sends its bytes in messages of up to SENT_BYTES."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        content = bytes(data)
        for begin in range(0, len(content), SENT_BYTES):
            self._send("B", content[begin : begin + SENT_BYTES])
        self._position += len(content)
        return len(content)


def opened(
    run: Path | None,
    indexes: Sequence[tuple[str, Path]],
    memory_bytes: int = 1 << 30,
    runs: Sequence[tuple[str, Path]] = (),
    statement: str = "",
) -> duckdb.DuckDBPyConnection:
    """A locked connection, with views of the tables of all attached files.

    The run is attached as `run`, the indexes as `index_0` …; for several `runs` the schema `runs` has each table with
    the run's name in a first column, `run`.  Computed tables have rows if the `statement` mentions them.
    """
    connection = guard.connect()
    try:
        connection.execute(f"SET memory_limit = '{memory_bytes}B'")
        connection.execute(f"SET threads = {min(os.cpu_count() or 1, MAX_THREADS)}")
        _attach(connection, run, indexes)
        if indexes:
            ship_indexes(connection, statement)
        if run is not None:
            ship_run(connection, statement, lambda: _debug(run))
        _attach_runs(connection, runs)
        for setting in _SETTINGS:
            connection.execute(setting)
        guard.lock(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _debug(run: Path) -> Debug:
    from crystalperf.query.run import Run  # loads numpy, which most statements do not need

    return Run(run).debug()


def _attach(connection: duckdb.DuckDBPyConnection, run: Path | None, indexes: Sequence[tuple[str, Path]]) -> None:
    names = [name for name, _ in indexes]
    files = [(f"index_{number}", name) for number, name in enumerate(names)]
    for number, (_, path) in enumerate(indexes):
        attach(connection, path, "index", f"index_{number}")
    if run is not None:
        attach(connection, run, "run", "run")
        files.insert(0, ("run", "run"))
        for _, name, comment in _held(connection, ["run"]):  # a framework's own tables among them
            if name != "metadata":
                _view(connection, f'"{name}"', f'SELECT * FROM run."{name}"', comment)
    if names:
        for table in tables("index"):
            if table.name != "metadata":
                parts = [
                    f"SELECT {guard.quoted(name)} AS index_name, * FROM index_{number}.{table.name}"
                    for number, name in enumerate(names)
                ]
                _view(connection, table.name, " UNION ALL ".join(parts), table.comment)
    if files:
        parts = [f"SELECT {guard.quoted(name)} AS file, * FROM {alias}.metadata" for alias, name in files]
        _view(connection, "metadata", " UNION ALL ".join(parts), "one row per fact on how a file was made")


def _attach_runs(connection: duckdb.DuckDBPyConnection, runs: Sequence[tuple[str, Path]]) -> None:
    """Make a view of each table over all runs that have it; columns that a run lacks are NULL."""
    if not runs:
        return
    for number, (_, path) in enumerate(runs):
        attach(connection, path, "run", f"run_{number}")
    named = {f"run_{number}": name for number, (name, _) in enumerate(runs)}
    parts: dict[str, list[str]] = {}
    comments: dict[str, str] = {}
    for alias, table, comment in _held(connection, list(named)):
        parts.setdefault(table, []).append(f'SELECT {guard.quoted(named[alias])} AS run, * FROM {alias}."{table}"')
        comments.setdefault(table, comment)
    connection.execute("CREATE SCHEMA runs")
    for table, selects in parts.items():
        _view(connection, f'runs."{table}"', " UNION ALL BY NAME ".join(selects), comments[table])


def _held(connection: duckdb.DuckDBPyConnection, aliases: Sequence[str]) -> list[tuple[str, str, str]]:
    """(alias, table, comment) of every table of attached files."""
    return connection.execute(
        "SELECT database_name, table_name, coalesce(comment, '') FROM duckdb_tables()"
        " WHERE list_contains(?, database_name) ORDER BY list_position(?, database_name), table_oid",
        [list(aliases), list(aliases)],
    ).fetchall()


def _view(connection: duckdb.DuckDBPyConnection, name: str, query: str, comment: str) -> None:
    connection.execute(f"CREATE OR REPLACE VIEW {name} AS {query}")
    connection.execute(f"COMMENT ON VIEW {name} IS {guard.quoted(comment)}")


def check(connection: duckdb.DuckDBPyConnection, statement: str) -> str:
    """The only SELECT of a text.  Raises SettingError for anything else, with a better message than the locks."""
    statements = connection.extract_statements(statement)
    if len(statements) != 1:
        raise SettingError(f"one SELECT is expected, found {len(statements) or 'no'} statements")
    kind = statements[0].type
    if kind not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise SettingError(f"one SELECT is expected, found {kind.name.replace('_', ' ')}; everything here is read-only")
    return statements[0].query.strip().rstrip(";")


def explained(message: str, connection: duckdb.DuckDBPyConnection | None = None) -> SettingError:
    """The first line of DuckDB's message, without its class; for an unknown name a hint at an existing one."""
    first = message.strip().split("\n")[0]
    first = f"SQL: {re.sub(r'^[A-Z][A-Za-z -]* Error: ', '', first).rstrip('.!')}"
    missing = re.search(r"Table with name (\w+) does not exist", first)
    near = None
    if missing and missing[1].lower() in run_names():
        return SettingError(first, Remedy("ask a run"))
    if missing and missing[1].lower() in index_names():
        return SettingError(first, Remedy("ask an index"))
    if connection is not None:
        near = nearest_table(missing[1], connection) if missing else nearest_column(message, connection)
    if near is not None:
        return SettingError(f'{first}; the nearest is "{near}"')
    if missing:
        return SettingError(f"{first}; SHOW TABLES lists all tables and views")
    if "disabled by configuration" in first or "external access" in first.lower():
        return SettingError(f"{first}; a statement may read only the given run and indexes")
    return SettingError(first)


if __name__ == "__main__":
    serve()
