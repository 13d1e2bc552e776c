"""The micro-batches of a streaming query (Structured Streaming), for what-ifs about its rate and trigger."""

from __future__ import annotations

import math

import duckdb
import numpy as np

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.micro_batches import FEW, BatchStage, MicroBatches
from crystalperf.query.frameworks.spark import streaming
from crystalperf.query.frameworks.spark.assumptions import CheckpointRenewed
from crystalperf.query.trace.records import Floats

WARM_UP_MS = 20_000.0
"""Time from the first batch of an application in which its JVMs load and compile most of its code."""

ALIKE = 0.8
"""Minimum share of batches with the usual number of stages."""

MAIN = "addBatch"
_PARTS = {
    "latestOffset": "latest_offset_ms",
    "queryPlanning": "query_planning_ms",
    "getBatch": "get_batch_ms",
    "walCommit": "wal_commit_ms",
    MAIN: "add_batch_ms",
    "commitOffsets": "commit_offsets_ms",
}
"""Parts of a trigger by Spark's names, in their order, and their columns in spark_batches."""


def micro_batches(connection: duckdb.DuckDBPyConnection, execution: Execution) -> MicroBatches | None:
    """The batches of the streaming query with most time; None if most tasks ran outside of streaming queries."""
    found = streaming.queries(connection, execution)
    if not found or streaming.share_of_tasks(connection, execution) < streaming.MOST:
        return None
    row = next((each for each in found if each["batches"]), found[0])
    batches = _batches(connection, execution, row["query_id"], row["run_id"])
    kept = _steady(batches["start_ms"], batches["first_ms"])
    batches = {name: values[kept] for name, values in batches.items()}
    start_ms, rows, time_ms = (batches[name] for name in ("start_ms", "input_rows", "trigger_ms"))
    parts = {name: float(np.nan_to_num(batches[column]).mean()) for name, column in _PARTS.items() if len(rows)}
    recorded = execution.recorded
    slots = (recorded.get("cores") or 0.0) * (recorded.get("workers") or 0.0)
    return MicroBatches(
        query=row["name"] or row["query_id"],
        start_ms=start_ms,
        rows=rows,
        time_ms=time_ms,
        parts_ms={name: ms for name, ms in parts.items() if ms > 0},
        main=MAIN,
        stages=_stages(connection, execution, batches, row["run_id"]),
        slots=slots or None,
        falls_behind=streaming.pace(row) == "falls-behind",
        others=len(found) - 1,
        repartitioned=CheckpointRenewed() if row["has_state"] else None,
    )


def _batches(
    connection: duckdb.DuckDBPyConnection, execution: Execution, query_id: str, run_id: str | None
) -> dict[str, Floats]:
    """The batches with rows of a start of a query, in the order of their starts; `first_ms` is the first trigger of the
    application."""
    columns = ("start_ms", "input_rows", "trigger_ms", *_PARTS.values())
    found = connection.execute(
        f"""
        SELECT {", ".join(columns)}, (SELECT min(start_ms) FROM spark_batches) AS first_ms
        FROM spark_batches
        WHERE query_id = $query_id AND run_id IS NOT DISTINCT FROM $run_id
            AND add_batch_ms IS NOT NULL AND input_rows > 0 AND trigger_ms > 0
            AND start_ms >= $start AND start_ms <= $end
        ORDER BY start_ms
        """,
        {
            "query_id": query_id,
            "run_id": run_id,
            "start": execution.scope.start_ms,
            "end": execution.scope.end_ms,
        },
    ).fetchnumpy()
    return {
        name: np.ma.filled(np.ma.asarray(values, dtype=np.float64), math.nan) for name, values in found.items()
    }  # a start may lack a part


def _steady(start_ms: Floats, first_ms: Floats) -> slice:
    """The batches after the warm-up; all but the first one if too few would be left.

    The first batch of a start also loads state and reads the checkpoint.
    """
    warm = int(np.searchsorted(start_ms, first_ms[0] + WARM_UP_MS)) if len(start_ms) else 0
    return slice(max(warm, 1) if len(start_ms) - warm >= FEW else 1, None)


def _stages(
    connection: duckdb.DuckDBPyConnection, execution: Execution, batches: dict[str, Floats], run_id: str | None
) -> tuple[BatchStage, ...]:
    """The stages that every batch runs; empty if batches differ in them."""
    found = connection.execute(
        sql.text("batch_stages", __package__),
        {
            "starts": batches["start_ms"].tolist(),
            "times": batches["trigger_ms"].tolist(),
            "rows": batches["input_rows"].tolist(),
            "run_id": run_id,
        },
    ).fetchall()
    partitions = execution.recorded.get("tasks")
    stages = []
    for tasks, wall_ms, task_ms, rows, slope, shuffled, count in found:
        if count < ALIKE * len(batches["start_ms"]):
            return ()
        row_ms = min(max(slope or 0.0, 0.0), task_ms / rows)
        start_ms = (task_ms - row_ms * rows) / tasks
        stages.append(BatchStage(tasks, wall_ms, start_ms, row_ms, bool(shuffled) and tasks == partitions))
    return tuple(stages)
