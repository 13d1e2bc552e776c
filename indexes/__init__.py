"""What an index and a run file are: the schema, how files are created and opened, and where prebuilt ones lie."""

from indexes.schema import SCHEMA_VERSION, Column, Kind, Table, resources, table, tables
from indexes.store import attach, create, open_read_only

__all__ = [
    "SCHEMA_VERSION",
    "Column",
    "Kind",
    "Table",
    "attach",
    "create",
    "open_read_only",
    "resources",
    "table",
    "tables",
]
