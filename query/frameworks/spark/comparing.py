"""The settings and operators of Spark that matter if runs are compared."""

from __future__ import annotations

from crystalperf.query.frameworks import Comparer

COMPARER = Comparer(
    settings={
        "spark.sql.autoBroadcastJoinThreshold": ("plan",),
        "spark.sql.adaptive.": ("plan", "tasks"),
        "spark.rapids.sql.enabled": ("plan", "compute"),
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
)
