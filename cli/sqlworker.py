"""The process that answers one SQL statement: what it may cost ends with it.

`python -m cli.sqlworker`, isolated, under a limit of addresses, killed by its parent when its time is up: a statement
can hang DuckDB where no interrupt is heard, and take memory that its own limit does not count.

    parent → child   the request, JSON
    child → parent   messages: a letter, the length (8 bytes, little endian), JSON of that length
                     O  the files are open      C  names of the columns     E  [kind of error, sentence]
                     P  the statement parses    R  rows, some MB of them    D  all rows were sent
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from cli.remedies import error_sentence
from indexes import Table, attach, guard, tables
from indexes.errors import CrystalPerfError, SettingError

MOST_THREADS = 8
"""Of one statement; each takes addresses, whose number is limited."""

SENT_BYTES = 1 << 20
"""Rows are sent in messages of about this size: a row may have a byte or a hundred MB."""


class Request(msgspec.Struct):
    """What is asked; paths of files, an index with its name."""

    statement: str
    run: str | None
    indexes: list[tuple[str, str]]
    memory_bytes: int
    address_bytes: int


_SETTINGS = (
    "SET enable_progress_bar = false",  # DuckDB would draw it on stdout
    "SET python_enable_replacements = false",  # or a name in FROM could be a variable of this program
)
"""Beside the locks that every reader has."""


def serve() -> None:
    """Answer the request on stdin."""
    # What writes to standard output by itself, as DuckDB's progress bar would, must not break a message.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def send(kind: str, content: object) -> None:
        text = json.dumps(content, allow_nan=False).encode()
        answers.write(kind.encode() + len(text).to_bytes(8, "little") + text)
        answers.flush()

    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    resource.setrlimit(resource.RLIMIT_AS, (request.address_bytes, request.address_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # not a byte to any file, whatever DuckDB is talked into
    try:
        _answer(request, send)
    except CrystalPerfError as error:
        send("E", [type(error).__name__, error_sentence(error)])  # worded here, for the pipe carries texts
    except (MemoryError, duckdb.OutOfMemoryException):
        send("E", ["NoAnswerError", WANTS_MEMORY])
    except duckdb.Error as error:
        if "Out of Memory" in str(error) or "bad_alloc" in str(error):
            send("E", ["NoAnswerError", WANTS_MEMORY])
        else:
            send("E", ["SettingError", f"SQL: {_sentence(str(error))}"])
    except (ValueError, OverflowError) as error:
        send("E", ["NoAnswerError", f"SQL: a value cannot be shown ({' '.join(str(error).split())[:200]})"])


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, which may have been killed and then kills nobody."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


WANTS_MEMORY = "the statement needs more memory than it may take; ask for less, or for LIMIT"


def _answer(request: Request, send: Any) -> None:
    run = None if request.run is None else Path(request.run)
    connection = opened(run, [(name, Path(path)) for name, path in request.indexes], request.memory_bytes)
    send("O", None)
    statement = _check(connection, request.statement)
    send("P", None)
    connection.execute(statement)
    described = connection.description or []
    if any("TIME ZONE" in str(each[1]) for each in described):
        # Python's package for time zones is not needed for anything else: DuckDB writes such moments as text.
        shown = [
            f"#{number}{'::VARCHAR' if 'TIME ZONE' in str(each[1]) else ''}" for number, each in enumerate(described, 1)
        ]
        connection.execute(f"SELECT {', '.join(shown)} FROM ({statement}\n)")
    send("C", [each[0] for each in described])
    count = 1
    while rows := connection.fetchmany(count):
        plain = [[json_value(each) for each in row] for row in rows]
        size = len(json.dumps(plain))
        send("R", plain)
        count = max(1, min(count * 4, 10_000, count * SENT_BYTES // max(size, 1)))
    send("D", None)


def opened(
    run: Path | None, indexes: Sequence[tuple[str, Path]], memory_bytes: int = 1 << 30
) -> duckdb.DuckDBPyConnection:
    """A locked connection to the run as `run` and the indexes as `index_0` …, their tables in reach as views."""
    connection = guard.connect()
    try:
        connection.execute(f"SET memory_limit = '{memory_bytes}B'")
        connection.execute(f"SET threads = {min(os.cpu_count() or 1, MOST_THREADS)}")
        _attach(connection, run, indexes)
        for setting in _SETTINGS:
            connection.execute(setting)
        guard.lock(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _attach(connection: duckdb.DuckDBPyConnection, run: Path | None, indexes: Sequence[tuple[str, Path]]) -> None:
    names = [name for name, _ in indexes]
    files = [(f"index_{number}", name) for number, name in enumerate(names)]
    for number, (_, path) in enumerate(indexes):
        attach(connection, path, "index", f"index_{number}")
    if run is not None:
        attach(connection, run, "run", "run")
        files.insert(0, ("run", "run"))
        held = (
            "SELECT table_name, comment FROM duckdb_tables() WHERE database_name = 'run' AND table_name <> 'metadata'"
        )
        for name, comment in connection.execute(held).fetchall():  # a framework's own tables among them
            _view(connection, name, f'SELECT * FROM run."{name}"', comment or "")
    if names:
        for table in tables("index"):
            if table.name != "metadata":
                parts = [
                    f"SELECT {_quoted(name)} AS index_name, * FROM index_{number}.{table.name}"
                    for number, name in enumerate(names)
                ]
                _view(connection, table.name, " UNION ALL ".join(parts), table.comment)
    parts = [f"SELECT {_quoted(name)} AS file, * FROM {alias}.metadata" for alias, name in files]
    _view(connection, "metadata", " UNION ALL ".join(parts), "one row per fact on how a file was made")


def _view(connection: duckdb.DuckDBPyConnection, name: str, query: str, comment: str) -> None:
    connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS {query}')
    connection.execute(f'COMMENT ON VIEW "{name}" IS {_quoted(comment)}')


def _check(connection: duckdb.DuckDBPyConnection, statement: str) -> str:
    """The one SELECT; refuses anything else.  The locks would hold without this; the sentence is better."""
    statements = connection.extract_statements(statement)
    if len(statements) != 1:
        raise SettingError(f"one SELECT is expected, found {len(statements) or 'no'} statements")
    kind = statements[0].type
    if kind not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise SettingError(f"one SELECT is expected, found {kind.name.replace('_', ' ')}; everything here is read-only")
    return statements[0].query.strip().rstrip(";")


def _sentence(message: str) -> str:
    """The first line of DuckDB's message, without its class, with a hint where a table is missing."""
    first = message.strip().split("\n")[0]
    first = re.sub(r"^[A-Z][A-Za-z -]* Error: ", "", first).rstrip(".!")
    missing = re.match(r"Table with name (\w+) does not exist", first)
    if missing:
        for option, names in (("--run RUN", _run_tables()), ("--index NAME", _names(tables("index")))):
            if missing[1].lower() in names:
                return f"{first}; it comes with {option}"
        return f"{first}; SHOW TABLES lists what is there"
    if "disabled by configuration" in first or "external access" in first.lower():
        return f"{first}; statements here read the attached run and indexes alone"
    return first


def _run_tables() -> set[str]:
    """Names of the tables that a run file may have, of whatever framework."""
    from query.frameworks.known import frameworks

    return _names(tables("run")).union(*(_names(each.raw()) for each in frameworks().values()))


def _names(found: Iterable[Table]) -> set[str]:
    return {each.name for each in found}


def json_value(value: Any) -> Any:
    """A value of DuckDB as JSON has it: numbers that are none become null, moments and intervals text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else None
    if isinstance(value, dict):
        return {str(key): json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat is not None else str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    serve()
