"""Cost of shuffle files: a task writes a file for each partition of the shuffle, however few rows it has.

Up to spark.shuffle.sort.bypassMergeThreshold partitions a task of a query writes one file for each of them and joins
these at its end (BypassMergeSortShuffleWriter).  So the same rows in twice the tasks make twice the files.
"""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.settings import whole
from crystalperf.query.simulate.repartition import MAX_FIXED, with_cpu_time
from crystalperf.query.trace.arrays import members, safe_divide
from crystalperf.query.trace.records import Floats

FILE_MS, FILE_APART_MS = 0.5, 0.5
"""CPU time of a file, ms, and its difference between machines; a run's own tasks give a closer estimate
(docs/model.md)."""

SAME_WORK, MIN_APART_MS = 0.12, 15.0
"""Difference between the CPU times of tasks with the same work: as a share, and in ms in addition."""

MIN_BLOCK_BYTES = 64
"""Approximate size of a compressed block of one row; a partition for which a task has no row gets no file."""

MAX_FILES = 200
"""Spark's default of spark.shuffle.sort.bypassMergeThreshold."""


def files_ms(execution: Execution, partitions: int) -> Floats:
    """CPU time of each task for the files of its shuffle's partitions, (tasks,) in ms."""
    files = _files(execution, partitions)
    return files * _file_ms(execution, files)


def with_partitions(execution: Execution, before: int, after: int) -> Execution:
    """The execution with tasks that write the files of `after` partitions; unchanged if they would write in another
    way, which is not modelled."""
    if before == after or max(before, after) > _most(execution):
        return execution
    files = _files(execution, before)
    more_ms = (_files(execution, after) - files) * _file_ms(execution, files)
    return with_cpu_time(execution, 1 + np.maximum(safe_divide(more_ms, execution.volumes.total_cpu_ms), -MAX_FIXED))


def _files(execution: Execution, partitions: int) -> Floats:
    """The files that each task writes, (tasks,)."""
    if partitions > _most(execution):
        return np.zeros(len(execution.tasks))
    of_queries = np.array([each.scope_id is not None for each in execution.dag.stages], dtype=bool)
    files = np.minimum(execution.volumes.exchange_write // MIN_BLOCK_BYTES, partitions)
    return np.where(of_queries[execution.tasks.stage], files, 0).astype(np.float64)


def _most(execution: Execution) -> int:
    return whole(execution.properties.get("spark.shuffle.sort.bypassMergeThreshold")) or MAX_FILES


def _file_ms(execution: Execution, files: Floats) -> float:
    """CPU time of a file, ms, from the tasks that read files.

    In a stage, a task with more input takes longer, while its files take the same time: the part of their CPU times
    that is not in proportion to the input is that of the files.  Least squares, with FILE_MS as one more observation.
    """
    volumes = execution.volumes
    weighted, weight = FILE_MS / FILE_APART_MS**2, FILE_APART_MS**-2
    scans = (volumes.input > volumes.cached) & (files > files.max(initial=0.0) / 2) & volumes.timed
    for tasks in members(execution.tasks.stage, len(execution.dag.stages)):
        tasks = tasks[scans[tasks]]
        took, read = volumes.total_cpu_ms[tasks], volumes.input[tasks].astype(np.float64)
        sure = 1 / np.hypot(SAME_WORK * took, MIN_APART_MS)
        took, read, wrote = took * sure, read * sure, files[tasks] * sure
        if len(tasks) < 2:
            continue
        took -= read * (read @ took) / (read @ read)
        wrote -= read * (read @ wrote) / (read @ read)
        weighted, weight = weighted + wrote @ took, weight + wrote @ wrote
    return max(float(weighted / weight), 0.0)
