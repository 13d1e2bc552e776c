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
from crystalperf.query.trace.arrays import before_any, members, safe_divide
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
    usual_later_ms = np.median(overhead_ms[later]) if later.any() else None
    divisible = on_cpu * (1 - constant) * (1 - per_task)
    columns = {name: getattr(volumes, name) for name in Volumes.__dataclass_fields__}
    pieces: list[Tasks] = []
    amounts: dict[str, list[Floats]] = {name: [] for name in columns}
    for number, rows in enumerate(members(tasks.stage, len(execution.dag.stages))):
        if number not in counts:
            pieces.append(tasks.select(rows))
            for name, values in columns.items():
                amounts[name].append(values[rows].astype(np.float64))
            continue
        edges = np.arange(counts[number] + 1) / counts[number] * len(rows)
        own_later = rows[later[rows]]
        if len(own_later):
            usual_ms = np.median(overhead_ms[own_later])
        else:
            usual_ms = np.median(overhead_ms[rows]) if usual_later_ms is None else usual_later_ms
        overhead_share = safe_divide(np.minimum(overhead_ms[rows], usual_ms), duration[rows])[:, None]
        work = tasks.parts_ms[rows] * (1 - overhead_share)
        fixed = (tasks.parts_ms[rows] * overhead_share).mean(axis=0)
        fixed[cpu] += (work[:, cpu] * constant[rows]).mean()
        work[:, cpu] *= 1 - constant[rows]
        fixed += (work * per_task[rows, None]).mean(axis=0)
        work *= 1 - per_task[rows, None]
        divided = divisible[rows]
        of_volumes = [each[rows] for each in columns.values()]
        whole = _between(edges, [*work.T, tasks.pipeline_wait_ms[rows], divided, *of_volumes])
        parts = np.ascontiguousarray(whole[:, : work.shape[1]]) + fixed
        origin = rows[edges[:-1].astype(np.int64)]
        launch, placement = tasks.launch_ms[origin], tasks.placement[origin]
        worker, host = (np.where(placement == AT_HOME, each[origin], -1) for each in (tasks.worker, tasks.host))
        unknown, stage = np.full(len(parts), -1), np.full(len(parts), number)
        finish, upstream = launch + parts.sum(axis=1), whole[:, work.shape[1]]
        pieces.append(Tasks(unknown, stage, worker, host, launch, finish, parts, placement, upstream, unknown))
        for name, values in zip(columns, whole.T[work.shape[1] + 2 :], strict=True):
            amounts[name].append(values)
        amounts["overhead_ms"][-1] = np.full(len(parts), fixed.sum())
        amounts["total_cpu_ms"][-1] = whole[:, work.shape[1] + 1] + (on_cpu[rows] - divided).mean()
    return _joined(execution, pieces, amounts)


def _joined(execution: Execution, pieces: Sequence[Tasks], amounts: Mapping[str, Sequence[Floats]]) -> Execution:
    """The execution with the tasks of all stages in order of their launch, and their volumes."""
    joined = Tasks(*(np.concatenate([getattr(each, name) for each in pieces]) for name in Tasks.__dataclass_fields__))
    order = np.argsort(joined.launch_ms, kind="stable")
    whole: dict[str, Any] = {name: np.concatenate(values)[order] for name, values in amounts.items()}
    for name, values in whole.items():
        if getattr(execution.volumes, name).dtype.kind == "i":
            whole[name] = np.rint(values).astype(np.int64)
    return replace(execution, tasks=joined.select(order), volumes=Volumes(**whole))


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
