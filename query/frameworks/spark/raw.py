"""Spark's own tables of a run file, apart from the reader that fills them."""

from __future__ import annotations

from functools import cache

from crystalperf.indexes.schema import Table, read
from crystalperf.query import sql


@cache
def raw_tables() -> tuple[Table, ...]:
    """Spark's own tables of a run file."""
    return read(sql.text("schema", __package__))
