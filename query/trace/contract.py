"""The contract of a framework's reader: the trace of one run.

A reader returns a Trace; later steps do not depend on the log's format:

    workers        processes or devices, each with the slots that tasks run on
    stages         attempts of a set of tasks that do the same to other data
    tasks          each holds a slot from launch to finish
    dependencies   which stage waits for which, and how: barrier, pipelined, order or transfer
    scopes         the named intervals of the run: queries, jobs, steps
    bounds         the part of each task's time that the framework itself measured

Tables are columns of arrays, because a run may have millions of tasks; `rows` makes one of a few values.  Their columns
are those of the run part of indexes/schema.sql, except those that samples and the analysis fill; missing columns are
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import Resource, known
from crystalperf.query.trace.records import Columns, Floats, Problem, RunTables, objects

EdgeKind = Literal["barrier", "pipelined", "order", "transfer"]
"""How a stage waits for another.

barrier     none of its tasks starts before all of the other's have ended
pipelined   both run; it starts after the other has started and ends after it, by as much as it did in the run
order       like a barrier, because they share a slot
transfer    a barrier, and then bytes cross a device before it starts
"""

Measure = Literal["makespan", "step time", "latency", "throughput"]
"""The figure of merit of a run, which answers are about.

latency     the time of one record through a stream
throughput  records per time, for a stream at its limit, whose latency only shows the depth of its buffers
"""


MOVED = ("input_bytes", "output_bytes", "remote_read_bytes", "local_read_bytes", "exchange_write_bytes")
"""Columns of tasks that a resource's device may move."""


@frozen
class Worker:
    """A process or device that runs tasks; a row of `workers`."""

    worker_id: str
    slots: int | None
    host: str | None = None
    kind: Literal["worker", "driver"] = "worker"
    cores: int | None = None
    memory_bytes: int | None = None
    added_ms: float = 0.0
    removed_ms: float | None = None
    removed_reason: str | None = None


@frozen
class Scope:
    """A named interval of the run; a row of `scopes`."""

    scope_id: str
    kind: str
    start_ms: float
    end_ms: float | None
    name: str | None = None
    parent_id: str | None = None
    call_site: str | None = None
    status: Literal["succeeded", "failed", "unfinished"] = "succeeded"
    error: str | None = None


@frozen
class Stage:
    """An attempt of a set of like tasks; a row of `stages`.

    `submit_ms` is when a driver released it, None if it depends on its dependencies only.
    """

    stage_id: str
    task_count: int
    first_launch_ms: float | None
    end_ms: float | None
    name: str | None = None
    scope_id: str | None = None
    io_kinds: str | None = None
    call_site: str | None = None
    priority: int = 0
    pool: str | None = None
    submit_ms: float | None = None
    status: Literal["succeeded", "failed", "skipped", "unfinished"] = "succeeded"
    failure: str | None = None


@frozen
class Task:
    """A task of work, which holds a slot of a worker from launch to finish; a row of `tasks`.

    `measured_ms` is the time by resource that the framework itself measured; `likely_ms` is further likely time, which
    counts only without samples (see Bounds).
    """

    task_id: int
    stage_id: str
    worker_id: str
    launch_ms: float
    finish_ms: float
    host: str | None = None
    status: Literal["succeeded", "failed", "killed", "unfinished"] = "succeeded"
    reason: str | None = None
    recomputed: bool = False
    pipeline_wait_ms: float | None = None
    input_bytes: int | None = None
    output_bytes: int | None = None
    remote_read_bytes: int | None = None
    exchange_write_bytes: int | None = None
    peak_memory_bytes: int | None = None
    own_ms: float | None = None
    own_cpu_ms: float | None = None
    fetch_wait_ms: float | None = None
    scheduler_delay_ms: float | None = None
    starting_ms: float | None = None
    overhead_ms: float | None = None
    local_read_bytes: int | None = None
    measured_ms: Mapping[str, float] = field(default_factory=dict)
    likely_ms: Mapping[str, float] = field(default_factory=dict)


@frozen
class Edge:
    """A dependency between stages; a row of `dependencies`."""

    source: str
    target: str
    kind: EdgeKind
    why: str
    resource: str | None = None


@frozen
class Bounds:
    """Bounds on the tasks' time by resource from the framework's measurements, in ms; samples and labels decide the
    rest.

    `slot_ms`, (tasks,), is the time a task held its slot, NaN if it was not measured: then all of its time is unknown.
    The others are (tasks, resources + 1), the last column `other`.  `floor_ms` was measured on a resource while the
    slot was held.  `likely_ms` is likely on it, and counts only without samples.  `outside_ms` passed before and after
    the slot was held.
    """

    slot_ms: Floats
    floor_ms: Floats
    likely_ms: Floats
    outside_ms: Floats


@frozen
class Trace:
    """One run, as its framework records it.

    `run` is the one row of `runs`; the other tables have the names and columns of schema.sql's run part.  `raw` are
    the framework's own tables, described by its package; only SQL and that package read them.
    `task_threads` has the name of each task's thread, in the order of tasks, if the framework names threads after their
    work.  `task_functions` has, in the same order, the innermost function of each task that the trace itself names:
    (class or path of a Python file, name, line), None if unknown.  If its label says that the code is on a device, so
    is the sum of the task's `likely_ms` (query.attribution.stated_functions).  Both are empty if unknown.
    """

    run: Mapping[str, Any]
    workers: Columns
    stages: Columns
    tasks: Columns
    bounds: Bounds
    dependencies: Columns = field(default_factory=dict)
    scopes: Columns = field(default_factory=dict)
    operators: Columns = field(default_factory=dict)
    operator_stages: Columns = field(default_factory=dict)
    operator_metrics: Columns = field(default_factory=dict)
    stage_inputs: Columns = field(default_factory=dict)
    resources: tuple[Resource, ...] = field(default_factory=known)
    problems: tuple[Problem, ...] = ()
    raw: RunTables = field(default_factory=dict)
    task_threads: tuple[str, ...] = ()
    task_functions: tuple[tuple[str, str, int] | None, ...] = ()

    def __post_init__(self) -> None:
        for resource in self.resources:
            if unknown := [each for each in resource.moves if each not in MOVED]:
                raise ValueError(f"resource {resource.name}: no column {unknown[0]}; tasks have {', '.join(MOVED)}")
        count = len(self.tasks.get("task_id", ()))
        for name, values in (("task_threads", self.task_threads), ("task_functions", self.task_functions)):
            if len(values) not in (0, count):
                raise ValueError(f"{name} has {len(values)} values for {count} tasks; give one for each, or none")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the run's resources, in the order of a resource vector."""
        return tuple(each.name for each in self.resources)

    def without_tasks(self) -> Trace:
        """The same run without its tasks, which take hundreds of MB for a million tasks."""
        none = np.empty((0, len(self.resources) + 1))
        return replace(
            self, tasks={}, bounds=Bounds(none[:, 0], none, none, none), raw={}, task_threads=(), task_functions=()
        )

    def tables(self) -> RunTables:
        """The tables to write to the run file unchanged: all but `runs` and those that the analysis completes."""
        own = ("workers", "scopes", "dependencies", "operators", "operator_stages", "operator_metrics", "stage_inputs")
        return {**{name: getattr(self, name) for name in own}, "resources": rows(self.resources), **self.raw}


def of_rows(  # noqa: PLR0913 - the tables of a trace
    run: Mapping[str, Any],
    workers: Sequence[Worker],
    stages: Sequence[Stage],
    tasks: Sequence[Task],
    edges: Sequence[Edge] = (),
    scopes: Sequence[Scope] = (),
    *,
    more_resources: Sequence[Resource] = (),
    problems: Sequence[Problem] = (),
) -> Trace:
    """A trace from rows of values, for readers of small runs.

    `run` needs app_id, framework, started_at_ms and duration_ms.  `more_resources` are the run's own, in addition to
    those of every run.  Raises ValueError if a task has time on a resource that the run does not have.
    """
    resources = (*known(), *more_resources)
    names = [each.name for each in resources]
    floor, likely, outside = np.zeros((3, len(tasks), len(names) + 1))
    for row, task in enumerate(tasks):
        for parts, times in ((floor, task.measured_ms), (likely, task.likely_ms)):
            for name, ms in times.items():
                if name not in names:
                    raise ValueError(f"task {task.task_id}: measured on {name}, which is not a resource of the run")
                parts[row, names.index(name)] = ms
    lasting = np.array([each.finish_ms - each.launch_ms for each in tasks], dtype=np.float64)
    # Waiting for a pipelined neighbour uses no resource, and was measured too.
    floor[:, -1] = [each.pipeline_wait_ms or 0.0 for each in tasks]
    defaults = {"measure": "makespan", "complete": True, "properties": {}, "libraries": []}
    return Trace(
        run={**defaults, **run},
        workers=rows(workers),
        stages=rows(stages),
        tasks={name: values for name, values in rows(tasks).items() if name not in ("measured_ms", "likely_ms")},
        bounds=Bounds(lasting, floor, likely, outside),
        dependencies=rows(edges),
        scopes=rows(scopes),
        resources=resources,
        problems=tuple(problems),
    )


def rows(values: Sequence[Any]) -> Columns:
    """Frozen dataclass values of one type as columns; empty for no values."""
    if not values:
        return {}
    return {name: objects([getattr(each, name) for each in values]) for name in values[0].__dataclass_fields__}
