"""The settings and operators of Spark that matter if runs are compared, and streaming queries by their mean batch."""

from __future__ import annotations

import duckdb

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks import Comparer, StreamAccount
from crystalperf.query.frameworks.spark import streaming

MOST = 0.5
"""Minimum share of the tasks' time in a run's batches from which it is compared as a stream."""


def stream(connection: duckdb.DuckDBPyConnection, execution: Execution) -> StreamAccount | None:
    """The mean batch of the streaming query with most time; None if most tasks ran outside of streaming queries."""
    row = connection.execute(
        """
        SELECT sum(finish_ms - launch_ms) FILTER (stage_id IN (
            SELECT stage_id FROM stages JOIN spark_batches
                ON submit_ms BETWEEN start_ms AND start_ms + coalesce(trigger_ms, 0)
        )) / sum(finish_ms - launch_ms)
        FROM tasks WHERE launch_ms < $end AND finish_ms > $start
        """,
        {"start": execution.scope.start_ms, "end": execution.scope.end_ms},
    ).fetchone()
    if row is None or (row[0] or 0.0) < MOST:
        return None
    return streaming.mean_batch(connection, execution)


COMPARER = Comparer(
    settings={
        "spark.sql.autoBroadcastJoinThreshold": ("plan",),
        "spark.sql.adaptive.": ("plan", "tasks"),
        "spark.rapids.sql.enabled": ("plan", "compute"),
        "spark.comet.enabled": ("plan", "compute"),
        "spark.gluten.enabled": ("plan", "compute"),
        "spark.auron.enabled": ("plan", "compute"),
        "spark.plugins": ("plan", "compute"),
        "spark.sql.shuffle.partitions": ("tasks",),
        "spark.default.parallelism": ("tasks",),
        "spark.sql.files.": ("tasks",),
        "spark.executor.memory": ("memory",),
        "spark.executor.memoryOverhead": ("memory",),
        "spark.memory.": ("memory",),
        "spark.executor.cores": ("slots",),
        "spark.executor.instances": ("slots",),
        "spark.cores.max": ("slots",),
        "spark.task.cpus": ("slots",),
        "spark.dynamicAllocation.": ("slots",),
        "spark.locality.wait": ("slots",),
        "spark.locality.wait.": ("slots",),
        "spark.scheduler.mode": ("slots",),
        "spark.speculation": ("slots",),
        "spark.driver.memory": ("compute",),
        "spark.rdd.compress": ("compute",),
        "spark.io.compression.codec": ("compute",),
        "spark.shuffle.": ("compute",),
        "spark.broadcast.compress": ("compute",),
    },
    adapters=frozenset(
        {"AQEShuffleRead", "CustomShuffleReader", "InputAdapter", "AdaptiveSparkPlan", "WholeStageCodegen"}
    ),
    stream=stream,
)
