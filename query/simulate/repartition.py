"""Repartitioning: the work of a stage divided into another number of tasks, as another plan would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.dag import AT_HOME, Tasks
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.trace.arrays import before_any, median, members, safe_divide
from crystalperf.query.trace.records import Floats, Ints

MAX_FIXED = 0.8
"""Maximum fixed share of a task's CPU time, which does not depend on its work: every task did some work."""


def with_tasks(
    execution: Execution,
    counts: Mapping[int, int],
    fixed_ms: Floats | None = None,
    cost_share: Floats | None = None,
) -> Execution:
    """The execution with other numbers of tasks in some stages, `counts` by the stage's number.

    The work of a stage is a line in its recorded order, cut into equal pieces: a piece does the share of each recorded
    task that it covers.  The overhead of a task (starting, deserialization and reporting) is the median of the recorded
    tasks of its stage that were not the first on their worker, or of any stage if all of its own were; overhead above
    that is paid once, so it is part of the work.  `fixed_ms` is the fixed CPU time of each recorded task, (tasks,),
    which does not depend on its work, and `cost_share` the share of its other time that does not either, (tasks,).
    """
    tasks, volumes = execution.tasks, execution.volumes
    duration, cpu = tasks.duration_ms, execution.names.index(CPU)
    on_cpu = volumes.total_cpu_ms
    constant = np.zeros(len(tasks)) if fixed_ms is None else np.minimum(safe_divide(fixed_ms, on_cpu), MAX_FIXED)
    per_task = np.zeros(len(tasks)) if cost_share is None else cost_share
    overhead_ms, later = np.minimum(volumes.overhead_ms, duration), np.ones(len(tasks), dtype=bool)
    if execution.is_first_scope:  # workers that had run nothing before
        later = ~before_any(tasks.worker + 1, tasks.launch_ms, tasks.finish_ms)
    usual_later_ms = median(overhead_ms[later]) if later.any() else None
    divisible = on_cpu * (1 - constant) * (1 - per_task)
    columns = {name: getattr(volumes, name) for name in Volumes.__dataclass_fields__}
    rows_of = members(tasks.stage, len(execution.dag.stages))
    joined = _Joined(sum(counts.get(number, len(rows)) for number, rows in enumerate(rows_of)), tasks, columns)
    for number, rows in enumerate(rows_of):
        if number not in counts:
            joined.add(tasks.select(rows), {name: columns[name][rows] for name in joined.amounts})
            continue
        edges = np.arange(counts[number] + 1) / counts[number] * len(rows)
        own_later = rows[later[rows]]
        if len(own_later):
            usual_ms = median(overhead_ms[own_later])
        else:
            usual_ms = median(overhead_ms[rows]) if usual_later_ms is None else usual_later_ms
        overhead_share = safe_divide(np.minimum(overhead_ms[rows], usual_ms), duration[rows])[:, None]
        work = tasks.parts_ms[rows] * (1 - overhead_share)
        fixed = (tasks.parts_ms[rows] * overhead_share).mean(axis=0)
        fixed[cpu] += (work[:, cpu] * constant[rows]).mean()
        work[:, cpu] *= 1 - constant[rows]
        fixed += (work * per_task[rows, None]).mean(axis=0)
        work *= 1 - per_task[rows, None]
        divided = divisible[rows]
        of_volumes = [columns[name][rows] for name in joined.amounts]
        whole = _between(edges, [*work.T, tasks.pipeline_wait_ms[rows], divided, *of_volumes])
        parts = np.ascontiguousarray(whole[:, : work.shape[1]]) + fixed
        origin = rows[edges[:-1].astype(np.int64)]
        launch, placement = tasks.launch_ms[origin], tasks.placement[origin]
        worker, host = (np.where(placement == AT_HOME, each[origin], -1) for each in (tasks.worker, tasks.host))
        unknown, stage = np.full(len(parts), -1), np.full(len(parts), number)
        finish, upstream = launch + parts.sum(axis=1), whole[:, work.shape[1]]
        amounts = dict(zip(joined.amounts, whole.T[work.shape[1] + 2 :], strict=True))
        amounts["overhead_ms"] = np.full(len(parts), fixed.sum())
        amounts["total_cpu_ms"] = whole[:, work.shape[1] + 1] + (on_cpu[rows] - divided).mean()
        joined.add(Tasks(unknown, stage, worker, host, launch, finish, parts, placement, upstream, unknown), amounts)
    return joined.execution(execution)


class _Joined:
    """The tasks of all stages and their volumes, in columns of their final length.

    `amounts` are the volumes that are not 0 everywhere; `overhead_ms` and `total_cpu_ms` are always among them.
    """

    def __init__(self, count: int, tasks: Tasks, columns: Mapping[str, Floats | Ints]) -> None:
        self._count, self._filled = count, 0
        self._tasks = {
            name: np.empty((count, *values.shape[1:]), values.dtype)
            for name in Tasks.__dataclass_fields__
            for values in [getattr(tasks, name)]
        }
        self.amounts = {
            name: np.empty(count)
            for name, values in columns.items()
            if name in ("overhead_ms", "total_cpu_ms") or values.any()
        }

    def add(self, tasks: Tasks, amounts: Mapping[str, Floats | Ints]) -> None:
        """Add the tasks of the next stage."""
        rows = slice(self._filled, self._filled + len(tasks))
        for name, column in self._tasks.items():
            column[rows] = getattr(tasks, name)
        for name, column in self.amounts.items():
            column[rows] = amounts[name]
        self._filled = rows.stop

    def execution(self, execution: Execution) -> Execution:
        """The execution with the tasks in order of their launch; each column is released when it is in order."""
        order = np.argsort(self._tasks["launch_ms"], kind="stable")
        tasks = {name: self._tasks.pop(name)[order] for name in list(self._tasks)}
        volumes: dict[str, Any] = {}
        for name in Volumes.__dataclass_fields__:
            is_whole = getattr(execution.volumes, name).dtype.kind == "i"
            if name not in self.amounts:
                volumes[name] = np.zeros(self._count, np.int64 if is_whole else np.float64)
                continue
            values = self.amounts.pop(name)[order]
            volumes[name] = np.rint(values).astype(np.int64) if is_whole else values
        return replace(execution, tasks=Tasks(**tasks), volumes=Volumes(**volumes))


def with_cpu_time(execution: Execution, ratio: Floats) -> Execution:
    """The execution with the CPU time of tasks, and their waits for a CPU, multiplied by `ratio`, (tasks,)."""
    tasks, cpu = execution.tasks, execution.names.index(CPU)
    parts = tasks.parts_ms.copy()
    parts[:, cpu] *= ratio
    volumes = replace(execution.volumes, total_cpu_ms=execution.volumes.total_cpu_ms * ratio)
    finish = tasks.launch_ms + parts.sum(axis=1)
    return replace(execution, tasks=replace(tasks, parts_ms=parts, finish_ms=finish), volumes=volumes)


def _between(edges: Floats, columns: Sequence[Floats | Ints]) -> Floats:
    """Sums between edges of a line on which each value is spread evenly over a length of 1, (edges - 1, columns)."""
    sums = np.zeros((len(columns[0]) + 1, len(columns)))
    np.cumsum(np.stack(columns, axis=1, dtype=np.float64), axis=0, out=sums[1:])
    # As np.interp() does for one column.
    place = np.minimum(edges.astype(np.int64), len(sums) - 2)
    reached = (sums[place + 1] - sums[place]) * (edges - place)[:, None] + sums[place]
    reached[edges >= len(sums) - 1] = sums[-1]
    found: Floats = np.diff(reached, axis=0)
    return found
