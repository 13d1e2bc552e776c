"""schema.sql as data: its tables, columns and their comments, by kind of file.

Comments are written once, at the columns they define; every file gets them as COMMENT ON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import resources

Kind = Literal["index", "run"]

SCHEMA_VERSIONS: Mapping[Kind, int] = {"index": 3, "run": 13}
"""Increased if an older reader would misread a file.  There are no migrations: files are rebuilt."""

EACH = "<resource>"
"""Placeholder in the name and comment of a column that is repeated for each resource."""

_PART = regex(r"^-- part: (\w+)", re.MULTILINE)
_TABLE = regex(r"^CREATE TABLE (\w+) \(\s*-- (.+)$")
_COLUMN = regex(r"^    ([\w<>]+) (.+?),?\s+-- (.+)$")


@frozen
class Column:
    """A column of schema.sql; `type` is the SQL type with its constraints, such as NOT NULL."""

    name: str
    type: str
    comment: str


@frozen
class Table:
    """A table of schema.sql, with its columns in order."""

    name: str
    comment: str
    columns: tuple[Column, ...]

    def statements(self, prefix: str = "", zstd: Sequence[str] = ()) -> list[str]:
        """The CREATE TABLE and COMMENT ON statements; `prefix` is a database alias with its dot.

        `zstd` are the columns that are always compressed with Zstandard; DuckDB chooses for the others.
        """
        body = ", ".join(
            f"{column.name} {column.type}{' USING COMPRESSION zstd' if column.name in zstd else ''}"
            for column in self.columns
        )
        comments = [f"COMMENT ON TABLE {prefix}{self.name} IS {_quoted(self.comment)}"]
        comments += [
            f"COMMENT ON COLUMN {prefix}{self.name}.{column.name} IS {_quoted(column.comment)}"
            for column in self.columns
        ]
        return [f"CREATE TABLE {prefix}{self.name} ({body})", *comments]


def read(text: str, names: Sequence[str] = ()) -> tuple[Table, ...]:
    """The tables of a text in the format of schema.sql, for resources of these names.

    Raises ValueError for a column without a comment.
    """
    return tuple(_parse(text, names))


@cache
def tables(kind: Kind, names: tuple[str, ...] | None = None) -> tuple[Table, ...]:
    """The tables of a kind of file, in the order of schema.sql, for resources of these names (all known by default)."""
    text = files("crystalperf.indexes").joinpath("schema.sql").read_text(encoding="utf-8")
    pieces = _PART.split(text)
    parts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return tuple(_parse(parts["both"] + parts[kind], resources() if names is None else names))


@cache
def table(kind: Kind, name: str, names: tuple[str, ...] | None = None) -> Table:
    """One table by name."""
    return next(each for each in tables(kind, names) if each.name == name)


def _parse(part: str, names: Sequence[str]) -> list[Table]:
    found: list[Table] = []
    name, comment, columns = "", "", list[Column]()
    for line in part.split("\n"):
        if start := _TABLE.match(line):
            name, comment, columns = start[1], start[2].strip(), []
        elif column := _COLUMN.match(line):
            columns += _columns(Column(column[1], column[2], column[3].strip()), names)
        elif line.startswith(");"):
            found.append(Table(name, comment, tuple(columns)))
        elif name and line.startswith("    "):
            raise ValueError(f"schema.sql: a column without a comment: {line.strip()}")
    return found


def _columns(column: Column, names: Sequence[str]) -> list[Column]:
    """The column, or one column for each resource if its name has the placeholder."""
    if EACH not in column.name:
        return [column]
    return [Column(column.name.replace(EACH, each), column.type, column.comment.replace(EACH, each)) for each in names]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
