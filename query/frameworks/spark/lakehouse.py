"""Tables of Delta and Iceberg: their changes, and how their small files are merged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Literal

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.findings import MergeScan, NarrowMerge
from crystalperf.query.frameworks.spark.remarks import TableChange
from crystalperf.query.results.findings import Finding

Format = Literal["delta", "iceberg"]

MOST_UNCHANGED = 0.5
"""Share of unchanged files among the scanned ones from which a narrower condition of a MERGE is worth advice."""

FEWEST_FILES = 20
"""With fewer scanned files, skipping some saves little."""

_DELTA = regex(r"^(Tahoe\w*FileIndex|PreparedDeltaFileIndex)\b")
_TABLE = regex(r"^(?:Scan \S+|BatchScan) (?P<table>\S.*)$")
_ICEBERG = regex(r"\(branch=\w+\) \[filters=")


@frozen
class LakeTable:
    """A table of a lakehouse format, by the operator that scans it; `name` is None for a table that is only a path."""

    format: Format
    name: str | None


def table_of(name: str | None, detail: str | None, location: str | None) -> LakeTable | None:
    """The lakehouse table that an operator scans; None for other operators."""
    found = _TABLE.match(name or "")
    table = found["table"].strip() if found else None
    if _DELTA.match(location or ""):
        return LakeTable("delta", table)
    if (name or "").startswith("BatchScan ") and _ICEBERG.search(detail or ""):
        return LakeTable("iceberg", table)
    return None


def changes(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> list[TableChange]:
    """The MERGE, UPDATE and DELETE commands within an interval, the longest first."""
    if not (sql.has_rows(connection, "operators") and sql.has_rows(connection, "spark_driver_metrics")):
        return []
    rows = connection.execute(
        f"""
        WITH scope_parts AS ({sql.text("views/run/scope_parts")})
        SELECT c.* FROM ({sql.text("views/spark_table_changes", __package__)}) AS c JOIN scopes USING (scope_id)
        WHERE start_ms < $end AND coalesce(end_ms, $end) > $start
        ORDER BY whole_ms DESC, c.scope_id
        """,
        {"start": start_ms, "end": end_ms},
    ).fetchall()
    return [TableChange(*row) for row in rows]


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[TableChange]:
    """The longest change of a table within a scope, with the number of the others."""
    found = changes(connection, execution.scope.start_ms, execution.scope.end_ms)
    return [replace(found[0], others=len(found) - 1)] if found else []


def merge_scans(connection: duckdb.DuckDBPyConnection, stages: Collection[str]) -> list[Finding]:
    """MERGE commands, of those with some of these `stages`, that scanned mostly files which they did not change:
    skipping these saves at most their share of the scan."""
    merges = [
        each
        for each in changes(connection, 0.0, float("inf"))
        if each.operation == "merge" and each.scan_ms and (each.files_scanned or 0) >= FEWEST_FILES
    ]
    if not merges:
        return []
    own = _scopes_of(connection, stages)
    found = [each for each in merges if each.scope in own]
    cost_ms = {
        each.scope: (each.scan_ms or 0.0) * (1.0 - min(each.files_removed / (each.files_scanned or 1), 1.0))
        for each in found
        if each.files_removed <= (1.0 - MOST_UNCHANGED) * (each.files_scanned or 0)
    }
    if not cost_ms:
        return []
    worst = max((each for each in found if each.scope in cost_ms), key=lambda each: cost_ms[each.scope])
    counts = (worst.files_scanned or 0, worst.files_removed)
    return [MergeScan(sum(cost_ms.values()), "modelled", NarrowMerge(), worst.scope, worst.table, *counts)]


def _scopes_of(connection: duckdb.DuckDBPyConnection, stages: Collection[str]) -> set[str]:
    """The scopes that some of these stages ran for."""
    rows = connection.execute(
        f"""
        SELECT DISTINCT p.scope_id
        FROM ({sql.text("views/run/scope_parts")}) AS p JOIN spark_stages ON p.part_id = 'job:' || job_id
        WHERE list_contains($stages, stage_id)
        """,
        {"stages": list(stages)},
    ).fetchall()
    return {scope for (scope,) in rows}
