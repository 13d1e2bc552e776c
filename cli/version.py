"""The versions that a bug report needs."""

from __future__ import annotations

from importlib.metadata import version

from indexes import SCHEMA_VERSION


def version_line() -> str:
    """`crystalperf 0.1.0, schema 1, duckdb 2.0.0`."""
    return f"crystalperf {version('crystalperf')}, schema {SCHEMA_VERSION}, duckdb {version('duckdb')}"
