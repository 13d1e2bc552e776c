"""The settings and operators of Spark that matter if runs are compared, and streaming queries by their mean batch."""

from __future__ import annotations

import duckdb

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks import Comparer, StreamAccount
from crystalperf.query.frameworks.spark import streaming


def stream(connection: duckdb.DuckDBPyConnection, execution: Execution) -> StreamAccount | None:
    """The mean batch of the streaming query with most time; None if most tasks ran outside of streaming queries."""
    if streaming.share_of_tasks(connection, execution) < streaming.MOST:
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
