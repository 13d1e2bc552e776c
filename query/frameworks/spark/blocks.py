"""Cost of shuffle files: a task writes a file for each partition of the shuffle, however few rows it has.

Up to spark.shuffle.sort.bypassMergeThreshold partitions a task of a query writes one file for each of them and joins
these at its end (BypassMergeSortShuffleWriter).  So the same rows in twice the tasks make twice the files.
"""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.settings import whole
from crystalperf.query.simulate.repartition import MOST_FIXED, with_cpu_time
from crystalperf.query.trace.arrays import members, over
from crystalperf.query.trace.records import Floats

FILE_MS, FILE_APART_MS = 0.5, 0.5
"""CPU time of a file, ms, and its difference between machines; a run's own tasks give a closer estimate
(docs/model.md)."""

SAME_WORK, LEAST_APART_MS = 0.12, 15.0
"""Difference between the CPU times of tasks with the same work: as a share, and in ms in addition."""

LEAST_BLOCK_BYTES = 64
"""Approximate size of a compressed block of one row; a partition for which a task has no row gets no file."""

MOST_FILES = 200
"""Spark's default of spark.shuffle.sort.bypassMergeThreshold."""


def files_ms(execution: Execution, partitions: int) -> Floats:
    """CPU time of each task for the files of its shuffle's partitions, (units,) in ms."""
    files = _files(execution, partitions)
    return files * _file_ms(execution, files)


def with_partitions(execution: Execution, before: int, after: int) -> Execution:
    """The execution with tasks that write the files of `after` partitions; unchanged if they would write in another
    way, which is not modelled."""
    if before == after or max(before, after) > _most(execution):
        return execution
    files = _files(execution, before)
    more_ms = (_files(execution, after) - files) * _file_ms(execution, files)
    return with_cpu_time(execution, 1 + np.maximum(over(more_ms, execution.volumes.on_cpu_ms), -MOST_FIXED))


def _files(execution: Execution, partitions: int) -> Floats:
    """The files that each task writes, (units,)."""
    if partitions > _most(execution):
        return np.zeros(len(execution.units))
    of_queries = np.array([each.scope_id is not None for each in execution.dag.groups], dtype=bool)
    files = np.minimum(execution.volumes.handed // LEAST_BLOCK_BYTES, partitions)
    return np.where(of_queries[execution.units.group], files, 0).astype(np.float64)


def _most(execution: Execution) -> int:
    return whole(execution.properties.get("spark.shuffle.sort.bypassMergeThreshold")) or MOST_FILES


def _file_ms(execution: Execution, files: Floats) -> float:
    """CPU time of a file, ms, from the tasks that read files.

    In a stage, a task with more input takes longer, while its files take the same time: the part of their CPU times
    that is not in proportion to the input is that of the files.  Least squares, with FILE_MS as one more observation.
    """
    volumes = execution.volumes
    told, weight = FILE_MS / FILE_APART_MS**2, FILE_APART_MS**-2
    scans = (volumes.input > volumes.kept) & (files > files.max(initial=0.0) / 2) & volumes.timed
    for mine in members(execution.units.group, len(execution.dag.groups)):
        mine = mine[scans[mine]]
        took, read = volumes.on_cpu_ms[mine], volumes.input[mine].astype(np.float64)
        sure = 1 / np.hypot(SAME_WORK * took, LEAST_APART_MS)
        took, read, wrote = took * sure, read * sure, files[mine] * sure
        if len(mine) < 2:
            continue
        took -= read * (read @ took) / (read @ read)
        wrote -= read * (read @ wrote) / (read @ read)
        told, weight = told + wrote @ took, weight + wrote @ wrote
    return max(float(told / weight), 0.0)
