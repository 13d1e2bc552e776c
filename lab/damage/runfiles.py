"""Changed run files: values that somebody changed with SQL, rows that are missing or twice, and damaged pages."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import duckdb

from lab.damage.judging import typed
from lab.damage.mutations import damaged

_NUMBERS = ("'nan'", "'inf'", "'-inf'", "1e308", "-1e308", "1e-300", "-1", "0", "1e18", "9007199254740993")
_INTEGERS = ("0", "-1", "1", "2147483647", "-2147483648", "127")
_TEXTS = ("chr(0)", "''", "'x'", "repeat('a', 100000)", "chr(27) || '[31m'", "'a' || chr(10) || 'b'", "chr(8238)")
_LISTS = ("[]", "[NULL]")
_PAGES = 0.25
"""Share of the cases with damaged bytes instead of changed values."""

COMMANDS: tuple[tuple[Any, ...], ...] = (
    ("analyze",),
    ("analyze", "--full"),
    ("analyze", "--json"),
    ("debug", "--scope", "whole"),
    ("predict", "--set", "cores=2x"),
    ("predict", "--set", "network=2x", "--set", "executors=2x"),
    ("report", "-o"),
)
_SQL = "SELECT count(*) FROM tasks JOIN stages USING (stage_id)"


def changed_run(random: Random, path: Path) -> str:
    """Change a run file in place; returns a description of the change."""
    if random.random() < _PAGES:
        data, how = damaged(random, path.read_bytes())
        path.write_bytes(data)
        return f"pages: {how}"
    with duckdb.connect(str(path)) as connection:
        done = [_changed(random, connection) for _ in range(random.choice((1, 1, 2)))]
    return "; ".join(done)


def _changed(random: Random, connection: duckdb.DuckDBPyConnection) -> str:
    """Run one statement that changes a table with rows; DuckDB's refusal of a value is a description too."""
    tables = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    table = random.choice([each for each in tables if connection.execute(f"FROM {each} LIMIT 1").fetchall()])
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ?", [table]
    ).fetchall()
    name, type_ = random.choice(columns)
    row = f"WHERE rowid = {random.randrange(connection.table(table).count('*').fetchall()[0][0])}"
    where = random.choice(("", "", row, row, "WHERE rowid % 2 = 0"))
    kind = random.choice(("value", "value", "value", "value", "rows lost", "rows twice", "swapped"))
    if kind == "rows lost":
        statement = f"DELETE FROM {table} {where}"
    elif kind == "rows twice":
        statement = f"INSERT INTO {table} SELECT * FROM {table} {where}"
    elif kind == "swapped":
        statement = f"UPDATE {table} SET {name} = (SELECT {name} FROM {table} ORDER BY hash(rowid) LIMIT 1) {where}"
    else:
        statement = f"UPDATE {table} SET {name} = {_value(random, type_)} {where}"
    try:
        connection.execute(f"ALTER TABLE {table} ALTER {name} DROP NOT NULL")
        connection.execute(statement)
    except duckdb.Error as error:
        return f"{statement} ({str(error).splitlines()[0][:80]})"
    return statement


def _value(random: Random, type_: str) -> str:
    if random.random() < 0.2:
        return "NULL"
    if type_ in ("DOUBLE", "FLOAT"):
        return random.choice(_NUMBERS)
    if type_ in ("INTEGER", "BIGINT"):
        return random.choice(_INTEGERS)
    if type_ == "BOOLEAN":
        return random.choice(("true", "false"))
    return random.choice(_LISTS if type_.endswith("[]") else _TEXTS)


def ask(random: Random, run: Path, home: Path) -> tuple[str, str]:
    """Ask a changed run as a user does; returns read or refused, and the sentence."""
    page = run.with_name("page.html")
    command, *options = random.choice(COMMANDS)
    arguments = (command, run, *options, *([page] if options == ["-o"] else ()))
    if random.random() < 0.1:
        arguments = ("sql", "--run", run, _SQL)
    try:
        message = typed(home, *arguments)
    finally:
        page.unlink(missing_ok=True)
    return ("read", "") if message is None else ("refused", message)
