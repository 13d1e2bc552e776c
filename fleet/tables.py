"""The tables and SQL queries of a fleet, from fleet/schema.sql and fleet/sql/."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from crystalperf.indexes.schema import Table, read

VERSION = 3
"""The version of schema.sql, in `_fleet/version`.  Increased if a table changes.  There are no migrations."""


@cache
def tables() -> tuple[Table, ...]:
    """All tables, in the order of schema.sql."""
    return read(files("crystalperf.fleet").joinpath("schema.sql").read_text(encoding="utf-8"))


@cache
def question(name: str) -> str:
    """The text of fleet/sql/NAME.sql."""
    return files("crystalperf.fleet").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
