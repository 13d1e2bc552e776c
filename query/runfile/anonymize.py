"""Anonymizes run files: replaces the names of people, machines and data; their figures stay.

Names are replaced in the texts of the log, before any query.  So every answer, sentence and page from the files has
them replaced, and consistently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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

_USER = "user_name"
"""The column of a framework's own table that holds the name of a user."""

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


def anonymize_names(connection: duckdb.DuckDBPyConnection, files: Mapping[str, ReadableFramework]) -> None:
    """Replace the names in attached run files, each by the name of its database, with its framework.

    A name has the same pseudonym in all files, so that they can still be compared.
    """
    patterns = dict.fromkeys(pattern for each in files.values() for pattern in each.reader.private)
    names = Pseudonyms(patterns)
    parts = {database: _NamedTexts(connection, database, each, names) for database, each in files.items()}
    for each in parts.values():
        each.collect()
    for each in parts.values():
        each.replace()


class _NamedTexts:
    """The texts with names of one run file: first collect() those of all files, then replace() them."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, database: str, framework: ReadableFramework, names: Pseudonyms
    ) -> None:
        self._connection = connection
        self._database = database
        self._names = names
        own = [
            (table.name, column.name)
            for table in framework.reader.raw()
            for column in table.columns
            if column.type.startswith("VARCHAR") and "[]" not in column.type and not column.name.endswith("_id")
        ]
        users: list[tuple[str, str, Kind]] = [(table, name, "user") for table, name in own if name == _USER]
        self._named = [*_NAMED, *users]
        self._texts = [*_TEXTS, *(each for each in own if each[1] != _USER)]

    def collect(self) -> None:
        """Find the names, and give each its pseudonym."""
        self._use()
        for table, column, kind in self._named:
            for name in _distinct(self._connection, table, column):
                self._names.called(kind, name)
        self._origins = {
            each: _origin(each, self._names) for each in _distinct(self._connection, "import_stats", "origin")
        }
        row = self._connection.execute("SELECT properties FROM runs").fetchall()[0]
        self._properties = dict(row[0] or {})
        for each in self._properties.values():
            self._names.meet(each)
        for table, column in self._texts:
            for text in _distinct(self._connection, table, column):
                self._names.meet(text)

    def replace(self) -> None:
        """Replace the names of all files that were collected."""
        self._use()
        for table, column, kind in self._named:
            _update(self._connection, table, column, partial(self._names.called, kind))
        _update(self._connection, "import_stats", "origin", lambda origin: self._origins[origin])
        for table, column in self._texts:
            _update(self._connection, table, column, self._names.text)
        own_words = partial(self._names.text, literals=False)
        _update(self._connection, "import_stats", "meaning", own_words)
        kept = {key: self._names.text(value) for key, value in self._properties.items()}
        lists = [list(kept), list(kept.values())]
        self._connection.execute("UPDATE runs SET properties = map(?::VARCHAR[], ?::VARCHAR[])", lists)
        self._connection.execute("UPDATE metadata SET value = ? WHERE key IN ('inputs', 'arguments')", [json.dumps([])])

    def _use(self) -> None:
        self._connection.execute(f"USE {self._database}")


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
