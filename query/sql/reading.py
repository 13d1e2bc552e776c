"""A connection to a run file that asks DuckDB each question once, and knows which tables are empty.

DuckDB takes milliseconds to plan a statement, however few rows it reads.  The parts of an answer ask many of the same
questions, and most tables of a run are empty: those of other recorders, of streams, of table formats.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import Any

import duckdb

MOST_ROWS = 1000
"""Maximum rows of an answer that is kept."""

_FILLED = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND estimated_size > 0"

_Key = tuple[Any, ...]


class Reading:
    """A connection whose current database does not change; it has the methods of a connection that analyses use."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._kept: dict[_Key, _Kept] = {}
        self._last: Answer | None = None

    @cached_property
    def filled(self) -> frozenset[str]:
        """The names of the tables that have a row."""
        return frozenset(name for (name,) in self._connection.execute(_FILLED).fetchall())

    def execute(self, query: str, parameters: Any = None) -> Answer:
        """The answer to a question, from DuckDB or from the last time that the same was asked."""
        try:
            key = query, _hashable(parameters)
        except TypeError:
            key = None
        kept = self._kept.get(key) if key is not None else None
        if kept is None:
            self._connection.execute(query, parameters)
        self._last = Answer(self._connection, self._kept, (query, parameters), key, kept)
        return self._last

    def __getattr__(self, name: str) -> Any:
        of = self._last if self._last is not None and name.startswith(("fetch", "description")) else self._connection
        return getattr(of, name)


class _Kept:
    """The rows of an answer, and its columns as DuckDB describes them."""

    def __init__(self, rows: list[tuple[Any, ...]], description: Any) -> None:
        self._rows = rows
        self.description = description

    @cached_property
    def _has_containers(self) -> bool:
        return any(isinstance(value, list | dict) for row in self._rows for value in row)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, which the caller may change."""
        return deepcopy(self._rows) if self._has_containers else list(self._rows)


class Answer:
    """The rows of one question; when they are fetched all at once, they are kept."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        known: dict[_Key, _Kept],
        question: tuple[str, Any],
        key: _Key | None,
        kept: _Kept | None,
    ) -> None:
        self._connection, self._question = connection, question
        self._known, self._key, self._kept = known, key, kept
        self._left = None if kept is None else kept.rows()

    @property
    def description(self) -> Any:
        """The columns, the name of each first."""
        return self._connection.description if self._kept is None else self._kept.description

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows that are left."""
        if self._left is not None:
            rows, self._left = self._left, []
            return rows
        rows = self._connection.fetchall()
        if self._key is not None and len(rows) <= MOST_ROWS:
            self._known[self._key] = _Kept(list(rows), self._connection.description)
        return rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        self._key = None  # the rest is not all
        if self._left is not None:
            return self._left.pop(0) if self._left else None
        return self._connection.fetchone()

    def fetchmany(self, count: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most so many."""
        self._key = None
        if self._left is None:
            return self._connection.fetchmany(count)
        rows, self._left = self._left[:count], self._left[count:]
        return rows

    def fetchnumpy(self) -> dict[str, Any]:
        """All rows as arrays by column."""
        if self._kept is not None:
            self._connection.execute(*self._question)
        found: dict[str, Any] = self._connection.fetchnumpy()
        return found


def _hashable(value: Any) -> Any:
    """Plain parameters as a key, in which 1, 1.0 and True differ.  Raises TypeError for others."""
    if isinstance(value, list | tuple):
        return type(value), *map(_hashable, value)
    if isinstance(value, dict):
        return dict, *((key, _hashable(each)) for key, each in value.items())
    if value is None or type(value) in (str, int, float, bool):
        return type(value), value
    raise TypeError(type(value))
