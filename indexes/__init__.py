"""What an index and a run file are: the schema, how files are created and opened, where prebuilt ones lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crystalperf.indexes.resources import Resource, resources
from crystalperf.indexes.schema import SCHEMA_VERSIONS, Column, Kind, Table, table, tables

if TYPE_CHECKING:
    from crystalperf.indexes.store import attach, create, open_read_only

__all__ = [
    "SCHEMA_VERSIONS",
    "Column",
    "Kind",
    "Resource",
    "Table",
    "attach",
    "create",
    "open_read_only",
    "resources",
    "table",
    "tables",
]


def __getattr__(name: str) -> object:
    # duckdb takes longer to import than a help text to print, so it is imported when a file is.
    if name in ("attach", "create", "open_read_only"):
        from crystalperf.indexes import store

        return getattr(store, name)
    raise AttributeError(f"module 'indexes' has no attribute '{name}'")
