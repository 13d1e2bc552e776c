"""Cost of a task besides its rows: of many small tasks it is most of their time, and fewer tasks save it.

A task opens its shuffle blocks or files, sets up its operators, and creates, closes and commits its output file,
however few rows it has.  Of this, Spark records only the start and the deserialization.  Rows of tasks with much data
give the time for a byte; what a small task takes beyond WORK times that is the cost of the task itself.  Found by
reruns (research/2026-11-29-advice-proven.md).
"""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.execution import Execution
from crystalperf.query.trace.arrays import median, members, safe_divide
from crystalperf.query.trace.records import Floats

LARGE_BYTES = 2**20
"""Read and written bytes of a task whose time is mostly that of its rows."""

BYTE_MS = 1e-4
"""Time for a shuffled or written byte if the run has no large task: 10 MB/s, as Spark reads compressed rows."""

INPUT_BYTE_MS = 3e-5
"""Time for a byte of the input if the run has no large task: in the lab, scans of Parquet took 5 to 51 ns."""

WORK = 3.0
"""The rows of a small task may take this many times as long for a byte as those of the run's slowest large tasks."""

MAX_SHARE = 0.95
"""Maximum share of the cost of a task in its time, because every task did some work."""

MAX_COST_MS = 250.0
"""Maximum cost of a task besides its rows; one that takes longer computes for each of its few rows."""


def own_cost_share(execution: Execution) -> Floats:
    """The share of each task's time, without its recorded overhead, that does not depend on its rows, (tasks,).

    It is the median cost of its stage's tasks at most; what a task took beyond it, for example while code was not yet
    compiled, is not saved by fewer tasks.  Tasks without bytes, and those that wait for Python workers, have none.
    """
    tasks, volumes = execution.tasks, execution.volumes
    read = volumes.input.astype(np.float64)
    moved = read + sum(
        getattr(volumes, name).astype(np.float64) for name in ("remote_read", "local_read", "exchange_write", "output")
    )
    usual_ms = WORK * (INPUT_BYTE_MS * read + BYTE_MS * (moved - read))
    took_ms = np.maximum(tasks.duration_ms - volumes.overhead_ms, 0.0)
    by_stage = [
        rows
        for number, rows in enumerate(members(tasks.stage, len(execution.dag.stages)))
        if len(rows) and number not in execution.delegating
    ]
    byte_ms = WORK * max((_of_large(took_ms[rows], moved[rows]) for rows in by_stage), default=0.0)
    share: Floats = np.zeros(len(tasks))
    for rows in by_stage:
        known = rows[moved[rows] > 0]
        if len(known):
            rows_ms = byte_ms * moved[known] if byte_ms else usual_ms[known]
            most_ms = np.minimum(MAX_SHARE * took_ms[known], MAX_COST_MS)
            cost_ms = np.clip(took_ms[known] - rows_ms, 0.0, most_ms)
            share[known] = safe_divide(np.minimum(cost_ms, median(cost_ms)), took_ms[known])
    return share


def _of_large(took_ms: Floats, moved: Floats) -> float:
    """The median time for a byte of a stage's large tasks; 0 without any."""
    large = moved >= LARGE_BYTES
    return median(took_ms[large] / moved[large]) if large.any() else 0.0
