"""Indexes and run files: their schema, how they are created and opened, where prebuilt indexes are."""

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
    # Importing duckdb takes longer than printing a help text, so the modules that need it are imported on first use.
    if name in ("attach", "create", "open_read_only"):
        from crystalperf.indexes import store

        return getattr(store, name)
    raise AttributeError(f"module 'indexes' has no attribute '{name}'")
