"""The versions for a bug report."""

from __future__ import annotations

from importlib.metadata import version

import crystalperf
from crystalperf.indexes import SCHEMA_VERSIONS


def version_line() -> str:
    """`crystalperf 0.1.0, schema 2 of indexes and 3 of runs, duckdb 2.0.0`."""
    schemas = f"schema {SCHEMA_VERSIONS['index']} of indexes and {SCHEMA_VERSIONS['run']} of runs"
    return f"crystalperf {crystalperf.__version__}, {schemas}, duckdb {version('duckdb')}"
