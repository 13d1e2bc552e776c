"""Anonymizes a run file: replaces the names of people, machines and data; its figures stay.

Names are replaced in the texts of the log, before any query.  So every answer, sentence and page from the file has
them replaced, and consistently.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

import duckdb

from crystalperf.query.runfile.pseudonyms import Kind, Pseudonyms

if TYPE_CHECKING:
    from crystalperf.query.inputs.reader import ReadableFramework

_NAMED: tuple[tuple[str, str, Kind], ...] = (
    ("runs", "name", "application"),
    ("runs", "app_id", "application"),
    ("workers", "host", "host"),
    ("tasks", "host", "host"),
)
"""Columns that hold exactly one name."""

_TEXTS = (
    ("workers", "worker_id"),
    ("workers", "removed_reason"),
    ("scopes", "name"),
    ("scopes", "call_site"),
    ("scopes", "error"),
    ("stages", "name"),
    ("stages", "call_site"),
    ("stages", "pool"),
    ("stages", "failure"),
    ("tasks", "worker_id"),
    ("tasks", "reason"),
    ("operators", "name"),
    ("operators", "detail"),
    ("operators", "location"),
    ("operator_times", "name"),
    ("stage_inputs", "root"),
    ("nodes", "name"),
    ("samples", "worker_id"),
    ("samples", "thread"),
    ("loads", "worker_id"),
    ("thread_loads", "worker_id"),
    ("thread_loads", "thread"),
    ("import_stats", "first_where"),
)
"""Columns whose text may contain names."""


def anonymize_names(connection: duckdb.DuckDBPyConnection, framework: ReadableFramework) -> None:
    """Replace the names in the run file that is the connection's current database."""
    names = Pseudonyms(framework.reader.private)
    own = [
        (table.name, column.name)
        for table in framework.reader.raw()
        for column in table.columns
        if column.type.startswith("VARCHAR") and "[]" not in column.type and not column.name.endswith("_id")
    ]
    texts = [*_TEXTS, *own]
    for table, column, kind in _NAMED:
        for name in _distinct(connection, table, column):
            names.called(kind, name)
    origins = {each: _origin(each, names) for each in _distinct(connection, "import_stats", "origin")}
    properties = dict(connection.execute("SELECT properties FROM runs").fetchall()[0][0] or {})
    for each in properties.values():
        names.meet(each)
    for table, column in texts:
        for text in _distinct(connection, table, column):
            names.meet(text)
    for table, column, kind in _NAMED:
        _update(connection, table, column, partial(names.called, kind))
    _update(connection, "import_stats", "origin", lambda origin: origins[origin])
    for table, column in texts:
        _update(connection, table, column, names.text)
    _update(connection, "import_stats", "meaning", lambda text: names.text(text, literals=False))  # our own words
    kept = {key: names.text(value) for key, value in properties.items()}
    lists = [list(kept), list(kept.values())]
    connection.execute("UPDATE runs SET properties = map(?::VARCHAR[], ?::VARCHAR[])", lists)
    connection.execute("UPDATE metadata SET value = ? WHERE key IN ('inputs', 'arguments')", [json.dumps([])])


def _origin(origin: str, names: Pseudonyms) -> str:
    """The anonymized origin of a reading problem: the path of a file, or something else, such as an index."""
    if "/" not in origin and not PurePath(origin).suffix:
        return origin
    if " " in origin and "/" not in origin:
        return origin
    called = names.called("path", origin)
    base = PurePath(origin).name
    if base and base != origin:
        names.also(base, called)
    return called


def _distinct(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> list[str]:
    query = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL GROUP BY {column} ORDER BY min(rowid)"
    return [row[0] for row in connection.execute(query).fetchall()]


def _update(connection: duckdb.DuckDBPyConnection, table: str, column: str, by: Callable[[str], str]) -> None:
    changed = [(text, by(text)) for text in _distinct(connection, table, column)]
    changed = [each for each in changed if each[0] != each[1]]
    if not changed:
        return
    lists = [[old for old, _ in changed], [new for _, new in changed]]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE names_replaced AS"
        " SELECT unnest(?::VARCHAR[]) AS old, unnest(?::VARCHAR[]) AS new",
        lists,
    )
    connection.execute(f"UPDATE {table} SET {column} = new FROM names_replaced WHERE {table}.{column} = old")
