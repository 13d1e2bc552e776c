"""Task time by operator: each task is an instance of one operator."""

from __future__ import annotations

import duckdb

from crystalperf.indexes.resources import with_other
from crystalperf.indexes.schema import Table, read
from crystalperf.query import sql
from crystalperf.query.frameworks import Operators
from crystalperf.query.trace.records import Columns


def raw_tables() -> tuple[Table, ...]:
    """The tables of a run file that only trainings have."""
    return read(sql.text("schema", __package__))


def times(connection: duckdb.DuckDBPyConnection, names: tuple[str, ...], _sampled: bool) -> Columns:
    """The table operator_times."""
    sums = ", ".join(f"coalesce(sum(tasks.{name}_ms), 0) AS {name}_ms" for name in with_other(names))
    question = sql.text("operator_times", __package__)
    found: Columns = connection.execute(question.format(sums=sums)).fetchnumpy()
    return found


def kind_times(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> dict[str, tuple[float, float]]:
    """Time of operators by kind within a span, and the part of it on the disk, ms; only kinds that ran."""
    question = sql.text("kind_times", __package__)
    rows = connection.execute(question, {"start": start_ms, "end": end_ms}).fetchall()
    return {kind: (ms, disk_ms) for kind, ms, disk_ms in rows}


OPERATORS = Operators(of_frame=lambda _class_name, _method: None, times=times)
