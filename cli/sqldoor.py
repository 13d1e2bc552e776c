"""`crystalperf sql`: any SELECT over a run file and indexes, and nothing else.

The files are attached read-only, then DuckDB is locked: no files, no network, no extensions, no settings.  A
statement may come from anywhere; what it can cost is memory and time up to a limit, and the attempt ends in a sentence.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from io import StringIO
from typing import Any

import duckdb

from cli.output import progress, write
from cli.rows import rows_text
from cli.text import printable
from indexes import Table, attach, tables
from indexes.errors import NoAnswerError, SettingError

LONGEST_STATEMENT = 100_000
"""Characters of a statement."""

TRUSTED_LENGTH = 1_000
"""Characters up to which DuckDB's parser surely ends soon.  Its time grows with the square of open brackets (20 000
take minutes, in which it hears no interrupt) and some MB of them end the process; so longer statements are parsed in
another process first."""

PARSE_S = 10.0
"""Longest parse of a long statement."""

HELD_BACK = 64 << 20
"""Characters of an answer that are held back until it is complete, so that stdout stays empty on failure."""

MEMORY_LIMIT = 4 << 30
"""Bytes DuckDB may use, or half of the machine's memory where that is less."""

BATCH = 10_000
"""Rows fetched at a time."""

_LOCKS = (
    "SET enable_progress_bar = false",  # DuckDB would draw it on stdout
    "SET temp_directory = ''",  # or a large sort would write beside the user's files
    "SET python_enable_replacements = false",  # or a name in FROM could be a variable of this program
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",  # the last one
)

Rows = Iterator[list[Any]]


def ask(
    statement: str,
    run: str,
    indexes: Sequence[str],
    *,
    as_json: bool,
    as_csv: bool,
    limit: int,
    timeout_s: float,
) -> int:
    """Answer one SELECT on stdout."""
    if as_json and as_csv:
        raise SettingError("--json and --csv: choose one of them")
    _check_text(statement)
    if not run and not indexes:
        raise SettingError("nothing to ask: add --run RUN, --index NAME or both")
    connection = duckdb.connect()
    try:
        _attach(connection, statement, run, indexes)
        for lock in _LOCKS:
            connection.execute(lock)
        with _explained(timeout_s, connection):
            _check(connection, statement)

            def answer() -> None:
                connection.execute(statement)
                columns = [each[0] for each in connection.description or ()]
                if as_json:
                    _write_all(_json_parts(columns, _rows(connection)))
                elif as_csv:
                    _write_all(_csv_parts(columns, _rows(connection)))
                else:
                    _write_table(connection, columns, limit)

            _interruptibly(connection, answer)
    finally:
        connection.close()
    return 0


def _attach(connection: duckdb.DuckDBPyConnection, statement: str, run: str, indexes: Sequence[str]) -> None:
    """Attach the run as `run` and the indexes as `index_0` …, and put their tables in reach as views."""
    from cli.runs import find_run_file
    from indexes.exports import locate

    connection.execute(f"SET memory_limit = '{min(MEMORY_LIMIT, _memory_bytes() // 2)}B'")
    names = list(dict.fromkeys(indexes))
    files = []
    if run:
        facts = attach(connection, find_run_file(run), "run", "run")
        files.append(("run", "run"))
        if not names and _mentions(statement, sorted(_names(tables("index")))):
            names = json.loads(facts.get("indexes", "[]"))
    for number, name in enumerate(names):
        with progress() as step:
            step(f"opening index {name}")
            attach(connection, locate(name), "index", f"index_{number}")
        files.append((f"index_{number}", name))
    if run:
        held = (
            "SELECT table_name, comment FROM duckdb_tables() WHERE database_name = 'run' AND table_name <> 'metadata'"
        )
        for name, comment in connection.execute(held).fetchall():  # a framework's own tables among them
            _view(connection, name, f"SELECT * FROM run.{name}", comment or "")
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
    connection.execute(f"CREATE VIEW {name} AS {query}")
    connection.execute(f"COMMENT ON VIEW {name} IS {_quoted(comment)}")


def _check_text(statement: str) -> None:
    """Refuse what DuckDB's parser would not survive."""
    if len(statement) > LONGEST_STATEMENT:
        raise SettingError(f"the statement has {len(statement)} characters, at most {LONGEST_STATEMENT} are taken")
    try:
        text = statement.encode()
    except UnicodeEncodeError as error:
        raise SettingError("the statement is not valid UTF-8") from error
    if len(statement) <= TRUSTED_LENGTH:
        return
    program = "import duckdb, sys\ntry: duckdb.extract_statements(sys.stdin.read())\nexcept duckdb.Error: pass"
    try:
        done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, timeout=PARSE_S)
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode != 0:
        raise SettingError("the statement is too deeply nested to be parsed; write it flatter")


def _check(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Refuse what is not one SELECT.  The locks would hold without this; the sentence is better."""
    statements = connection.extract_statements(statement)
    if len(statements) != 1:
        raise SettingError(f"one SELECT is expected, found {len(statements) or 'no'} statements")
    kind = statements[0].type
    if kind not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise SettingError(f"one SELECT is expected, found {kind.name.replace('_', ' ')}; everything here is read-only")


def _interruptibly(connection: duckdb.DuckDBPyConnection, work: Callable[[], None]) -> None:
    """Do the work in another thread, so that an interrupt is heard at once rather than when DuckDB looks up."""
    with ThreadPoolExecutor(1) as worker:
        done = worker.submit(work)
        try:
            done.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


@contextmanager
def _explained(timeout_s: float, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Turn DuckDB's errors into a sentence, and end the statement when its time is up."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        connection.interrupt()

    timer = threading.Timer(timeout_s, stop) if timeout_s > 0 else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise NoAnswerError("the statement needs more memory than it may take; ask for less, or for LIMIT") from error
    except duckdb.InterruptException as error:
        if not late.is_set():
            raise KeyboardInterrupt from error
        raise NoAnswerError(f"the statement was stopped after {timeout_s:g} s (--timeout)") from error
    except duckdb.Error as error:
        raise SettingError(f"SQL: {_sentence(str(error))}") from error
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()


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


def _rows(connection: duckdb.DuckDBPyConnection) -> Iterator[list[tuple[Any, ...]]]:
    while batch := connection.fetchmany(BATCH):
        yield batch


def _json_parts(columns: Sequence[str], batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[str]:
    """A list of objects, one a line; a column name that occurs twice is numbered."""
    names = _distinct(columns)
    separator = "[\n"
    for batch in batches:
        lines = [json.dumps(dict(zip(names, map(json_value, row), strict=True)), allow_nan=False) for row in batch]
        yield separator + ",\n".join(lines)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _csv_parts(columns: Sequence[str], batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[str]:
    """CSV with a header; a NULL is an empty cell.  A terminal gets no control characters, a file gets the data."""
    shown = printable if sys.stdout.isatty() else str
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([shown(each) for each in columns])
    for batch in batches:
        writer.writerows([_csv_cell(each, shown) for each in row] for row in batch)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def _csv_cell(value: Any, shown: Callable[[str], str]) -> str:
    plain = json_value(value)
    if plain is None:
        return ""
    if isinstance(plain, str):
        return shown(plain)
    return shown(json.dumps(plain))


def _write_table(connection: duckdb.DuckDBPyConnection, columns: Sequence[str], limit: int) -> None:
    rows = connection.fetchmany(limit + 1) if limit else connection.fetchall()
    shown = rows[:limit] if limit else rows
    plain = [[_table_value(each) for each in row] for row in shown]
    write(rows_text(columns, plain, more=len(rows) > len(shown)))


def _table_value(value: Any) -> Any:
    plain = json_value(value)
    return plain if plain is None or isinstance(plain, str | int | float) else json.dumps(plain, ensure_ascii=False)


def _write_all(parts: Iterator[str]) -> None:
    """Write the parts, from the moment the answer is complete or too large to be held back."""
    held: list[str] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size > HELD_BACK:
            write("".join(held))
            held = []
    write("".join(held))


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


def _distinct(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found


def _mentions(statement: str, names: Sequence[str]) -> bool:
    return re.search(rf"\b({'|'.join(names)})\b", statement, re.IGNORECASE) is not None


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
