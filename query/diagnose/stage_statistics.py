"""Statistics of each stage's tasks: waves, skew, idle slots, and disagreements between labels and measurements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, DISK, NET, Resource, with_other
from crystalperf.query import sql
from crystalperf.query.execution.dag import AT_HOME, StageRun
from crystalperf.query.execution.execution import Execution, policy_of
from crystalperf.query.execution.intervals import Level
from crystalperf.query.execution.load import max_concurrent
from crystalperf.query.execution.slots import Slots
from crystalperf.query.results.answers import Debug, Disagreement, Parts, PathItem, StageFacts
from crystalperf.query.results.findings import StageCost
from crystalperf.query.simulate.caching import cache_miss_ms, cache_misses
from crystalperf.query.trace.arrays import medians, members
from crystalperf.query.trace.records import Floats, uses_of

FULL = 0.9
"""Utilization from which on a machine has no CPU to spare …"""

OTHERS = 0.25
"""… and is contended if other applications' processes have this share of it."""

FEWEST_SAMPLES = 20
"""Minimum samples of a stage for comparing its labels with measurements …"""

WORTH = 0.01
"""… and its minimum share of the task time."""

CLEARLY = 0.10
"""Labels and measurements disagree if they differ by more than this share of the tasks' running time."""

_MAY_MOVE = {DISK: ("spill_disk_bytes", "read_bytes"), NET: ("input_bytes",)}
"""Bytes that may cross a device, in addition to those that always do: spilled bytes, reads of exchanged data, which
may come from disk, and input, which may be remote."""


@frozen
class Longest:
    """The longest task of a stage.

    `first` is whether no task had ended on its worker when it began; `cpu_ms` is its measured CPU time, None if the
    log has none.  `cache_misses` is whether it had a cache miss: it read files instead of data cached by its worker.
    """

    task_id: int
    worker_id: str
    host: str
    duration_ms: float
    read_bytes: float
    gc_ms: float
    resource_ms: Parts
    first: bool = False
    cpu_ms: float | None = None
    cache_misses: bool = False


@frozen
class StagePeers:
    """Other tasks of a stage, for comparison with its longest: their number by kind, and their median duration in ms.

    firsts  tasks that began when no task had ended on their workers
    alike   tasks that read at least two thirds of what the longest read
    loaded  tasks that read a row, with or without the longest; if rows are unknown, the smallest set of tasks that read
            95 % of the stage's bytes
    """

    firsts: int = 0
    firsts_ms: float = 0.0
    alike: int = 0
    alike_ms: float = 0.0
    loaded: int = 0
    loaded_ms: float = 0.0


@frozen
class StageStats:
    """Statistics of a stage for findings, in addition to its facts; times and bytes are sums over its tasks.

    `own_ms` is the time in which tasks ran their own code, with `own_cpu_ms` of measured CPU time and `fetch_wait_ms`
    of waiting for other workers' data.  `cpu_wait_ms` is CPU wait: time attributed to the CPU beyond the measured CPU
    time.  `moved_bytes` are the bytes that may have crossed a resource's device, for resources that move bytes; None if
    the log has none.  `uses` and `place` are the framework's words for what the stage reads and writes, and its place
    in the user's program; `operators` are the plan's operators that ran in it, `details` their descriptions.
    `median_cpu_ms` is None if the log has no CPU time; `median_starting` is the median share of a task's time that
    starting took.  `settings` are the run's.  `cache_misses` tasks had cache misses, which cost all tasks at most
    `cache_miss_ms`.  `data_local` tasks ran where their data are, and were bound to that place; `on_busiest` tasks ran
    on the worker with the most tasks.  `alone_ms` is for how long the longest ran after all others.  `delegates` is
    whether other processes compute for its tasks, `spills_apart` whether those processes spill when their own memory is
    short, instead of the worker.
    """

    facts: StageFacts
    longest: Longest
    own_ms: float
    own_cpu_ms: float
    cpu_wait_ms: float
    fetch_wait_ms: float
    read_bytes: int
    moved_bytes: Mapping[str, int | None]
    median_resource_ms: Parts
    uses: frozenset[str]
    place: str
    operators: tuple[str, ...]
    details: tuple[str, ...]
    siblings: StagePeers = StagePeers()
    median_gc_ms: float = 0.0
    median_cpu_ms: float | None = None
    median_starting: float = 1.0
    spill_memory_bytes: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    cache_misses: int = 0
    cache_miss_ms: float = 0.0
    data_local: int = 0
    on_busiest: int = 0
    alone_ms: float = 0.0
    delegates: bool = False
    spills_apart: bool = False

    @property
    def with_data(self) -> int:
        """The number of tasks with work: all, unless half or more read almost nothing and ended sooner."""
        facts, others = self.facts, self.siblings
        empty = facts.median_bytes * 100 < facts.most_bytes and facts.median_ms * 2 < others.loaded_ms
        return others.loaded if empty and 0 < others.loaded <= facts.tasks / 2 else facts.tasks


@frozen
class Diagnosis:
    """The answer to `debug` for a scope, with the statistics of all stages and their contributions to findings, for
    recommendations."""

    debug: Debug
    details: Sequence[StageStats] = ()
    stages: Sequence[StageCost] = ()


@frozen
class CpuContention:
    """CPU contention: other applications on the machines of a stage while its tasks ran.

    `contended_share` is the share of the tasks' time in which their machines were fully used and other applications had
    a good part of that; `others_cores` are the cores these used then, of `processors`.
    """

    stage: str
    contended_share: float
    others_cores: float
    processors: float


def named(parts_ms: Floats, names: Sequence[str]) -> Parts:
    """One row of times by resource, (resources and other,), as a mapping by name."""
    return dict(zip(with_other(names), (float(each) for each in parts_ms), strict=True))


_COUNTED = (
    *(
        "tasks",
        "median_ms",
        "longest_ms",
        "median_bytes",
        "most_bytes",
        "task_ms",
        "starting_ms",
        "scheduler_delay_ms",
        "gc_ms",
    ),
    "spill_bytes",
)
"""Columns of stage_facts.sql that are fields of StageFacts."""

_SUMMED = (
    *("own_ms", "own_cpu_ms", "fetch_wait_ms", "read_bytes", "median_gc_ms", "median_cpu_ms", "median_starting"),
    "spill_memory_bytes",
)
"""Columns of stage_facts.sql that are fields of Detail."""

_SIBLINGS = ("firsts", "firsts_ms", "alike", "alike_ms", "loaded", "loaded_ms")
"""Columns of stage_facts.sql that are fields of Siblings."""


def stage_stats(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> list[StageStats]:
    """Statistics of each stage with a task in the scope, in order of launch."""
    tasks, slots, names = execution.tasks, execution.slots, execution.names
    rows, plans = _sums(connection, execution), _operators(connection)
    described = connection.execute("SELECT stage_id, io_kinds, coalesce(call_site, '') FROM stages").fetchall()
    uses_of_stage = {stage_id: (uses_of(what), place) for stage_id, what, place in described}
    on_path, stages = _on_path_ms(path), execution.dag.stages
    ready = np.maximum(tasks.parts_ms[:, names.index(CPU)] - execution.volumes.total_cpu_ms, 0.0)
    missed, missed_ms = cache_misses(execution), cache_miss_ms(execution)
    is_patient = policy_of(execution).patience_ms > 0
    idle_ms, found = _idle_ms(execution), []
    medians_ms = medians(tasks.stage, tasks.parts_ms, len(stages))
    for number, own in enumerate(members(tasks.stage, len(stages))):
        stage = stages[number]
        if (row := rows.get(stage.stage_id)) is None:
            continue
        parts = tasks.parts_ms[own]
        most_slots, stage_idle_ms = _usable(stage, slots, idle_ms[number], float(tasks.duration_ms[own].sum()))
        # Shown in the user's slots, each of which may be several slots; its idle time is then that of all its slots.
        shown = execution.planner.shown_slots(most_slots, execution.properties) or most_slots
        facts = StageFacts(
            id=stage.stage_id,
            name=stage.name,
            scope=stage.scope_id,
            slots=shown,
            length_ms=stage.end_ms - stage.start_ms,
            path_ms=on_path[stage.stage_id],
            idle_ms=stage_idle_ms * (shown / most_slots if most_slots else 1.0),
            resource_ms=named(parts.sum(axis=0), names),
            **{name: row[name] for name in _COUNTED},
        )
        longest = int(np.flatnonzero(tasks.task_id[own] == row["longest_task"])[0])
        uses, place = uses_of_stage.get(stage.stage_id, (frozenset(), ""))
        operators, details = plans.get(stage.stage_id, ((), ()))
        found.append(
            StageStats(
                facts=facts,
                longest=_longest(row, named(parts[longest], names), bool(missed[own][longest])),
                cpu_wait_ms=float(ready[own].sum()),
                moved_bytes={each.name: row[f"moved_{each.name}"] for each in execution.resources if each.moves},
                median_resource_ms=named(medians_ms[number], names),
                uses=uses,
                place=place,
                operators=operators,
                details=details,
                siblings=StagePeers(*(row[each] or 0 for each in _SIBLINGS)),
                settings=execution.properties,
                cache_misses=int(missed[own].sum()),
                cache_miss_ms=float(missed_ms[own].sum()),
                data_local=int((tasks.placement[own] == AT_HOME).sum()) if is_patient else 0,
                on_busiest=int(np.bincount(tasks.worker[own] + 1).max()),
                alone_ms=_alone_ms(tasks.launch_ms[own], tasks.finish_ms[own], longest),
                delegates=number in execution.delegating,
                spills_apart=number in execution.spilling_in_helpers,
                **{name: row[name] for name in _SUMMED},
            )
        )
    return found


def _usable(stage: StageRun, slots: Slots, idle_ms: float, task_ms: float) -> tuple[int, float]:
    """The most slots that a stage could use at a time, and their time without a task, ms."""
    most_slots, usable = _most_slots(slots, stage.start_ms, stage.end_ms), stage.demand.usable
    if usable is None or usable >= most_slots:
        return most_slots, idle_ms
    free_ms = usable * (stage.end_ms - stage.start_ms) - task_ms
    return max(usable, 1), min(max(free_ms, 0.0), idle_ms)


def _on_path_ms(path: Sequence[PathItem]) -> Mapping[str, float]:
    """Time of each stage on the critical path, ms; 0 for stages that are not on it."""
    found = defaultdict[str, float](float)
    for item in path:
        found[item.id] += item.end_ms - item.start_ms
    return found


def _idle_ms(execution: Execution) -> list[float]:
    """The slot time without a task while each stage ran, (stages,), ms."""
    tasks, slots = execution.tasks, execution.slots
    taken = Level(tasks.launch_ms, tasks.finish_ms)
    present = Level(slots.available_ms, np.minimum(slots.until_ms, execution.scope.end_ms))
    start_ms, end_ms = (
        np.array([getattr(each, name) for each in execution.dag.stages]) for name in ("start_ms", "end_ms")
    )
    idle_ms: list[float] = np.maximum(
        present.over(start_ms, end_ms)[:, 0] - taken.over(start_ms, end_ms)[:, 0], 0.0
    ).tolist()
    return idle_ms


def _alone_ms(launch_ms: Floats, finish_ms: Floats, longest: int) -> float:
    """For how long a task ran after all others of its stage had ended, ms."""
    others_ms = float(np.delete(finish_ms, longest).max(initial=-np.inf))
    return max(float(finish_ms[longest]) - max(others_ms, float(launch_ms[longest])), 0.0)


def _longest(row: Mapping[str, Any], resource_ms: Parts, cache_misses: bool) -> Longest:
    """The longest task of a row of stage_facts.sql."""
    return Longest(
        task_id=row["longest_task"],
        worker_id=row["longest_worker"] or "?",
        host=row["longest_host"] or "?",
        duration_ms=row["longest_ms"],
        read_bytes=row["longest_read_bytes"],
        gc_ms=row["longest_gc_ms"],
        resource_ms=resource_ms,
        first=row["longest_first"],
        cpu_ms=row["longest_cpu_ms"],
        cache_misses=cache_misses,
    )


def _sums(connection: duckdb.DuckDBPyConnection, execution: Execution) -> dict[str, dict[str, Any]]:
    """The rows of stage_facts.sql by stage."""
    moved = ", ".join(f"{_moved(each)} AS moved_{each.name}" for each in execution.resources if each.moves)
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    cursor = connection.execute(sql.text("stage_facts").format(moved=moved), bounds)
    columns = [each[0] for each in cursor.description]
    return {row[0]: dict(zip(columns, row, strict=True)) for row in cursor.fetchall()}


def _moved(resource: Resource) -> str:
    """SQL: the bytes of a stage's tasks that may have crossed the resource's device; NULL if none were logged."""
    columns = (*resource.moves, *_MAY_MOVE.get(resource.name, ()))
    known = f"coalesce({', '.join(columns)}) IS NOT NULL"
    return f"sum({' + '.join(f'coalesce({each}, 0)' for each in columns)}) FILTER ({known})::BIGINT"


def neighbours(connection: duckdb.DuckDBPyConnection, start_ms: float, end_ms: float) -> list[CpuContention]:
    """CPU contention of each stage that ran on contended machines in an interval, as far as recordings measured it."""
    if not sql.has_rows(connection, "loads"):
        return []
    rows = connection.execute(sql.text("neighbours").format(full=FULL, others=OTHERS), [start_ms, end_ms]).fetchall()
    return [CpuContention(*row) for row in rows]


def _most_slots(slots: Slots, start_ms: float, end_ms: float) -> int:
    """The maximum number of slots available at one time in an interval."""
    present = (slots.available_ms < end_ms) & (slots.until_ms > start_ms)
    came, went = slots.available_ms[present], slots.until_ms[present]
    if not (went < end_ms).any():
        return len(came)
    return max_concurrent(zip(np.maximum(came, start_ms).tolist(), went.tolist(), strict=True))


def disagreements(
    connection: duckdb.DuckDBPyConnection, execution: Execution, details: Sequence[StageStats]
) -> tuple[Disagreement, ...]:
    """Stages whose labels give a resource a share of running time that the measurements exclude.

    CPU time and garbage collection are measured as cpu, waiting for other workers' data as net; the remaining time is
    an upper bound for disk, and so on.
    """
    if not sql.has_rows(connection, "samples"):
        return ()
    names = execution.names
    sums = ", ".join(f"sum(weight_ms * stacks.{name})" for name in names)
    rows = connection.execute(
        f"""
        SELECT stage_id, count(*), {sums}
        FROM samples JOIN stacks USING (stack_id) JOIN tasks USING (task_id)
        WHERE attributed_depth IS NOT NULL AND thread IS NOT NULL AND time_ms BETWEEN ? AND ?
        GROUP BY ALL
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()
    labelled = {row[0]: np.array(row[2:], dtype=np.float64) for row in rows if row[1] >= FEWEST_SAMPLES}
    all_ms = sum(detail.facts.task_ms for detail in details)
    found = []
    for detail in details:
        label = labelled.get(detail.facts.id)
        if label is None or label.sum() <= 0 or detail.own_ms <= 0 or detail.facts.task_ms < WORTH * all_ms:
            continue
        cpu = min(detail.own_cpu_ms / detail.own_ms, 1.0)
        least = {CPU: cpu, NET: min(detail.fetch_wait_ms / detail.own_ms, 1.0 - cpu)}
        for name, share in zip(names, label / label.sum(), strict=True):
            low = least.get(name, 0.0)
            high = 1.0 - sum(value for other, value in least.items() if other != name)
            if share > high + CLEARLY or share < low - CLEARLY:
                found.append((Disagreement(detail.facts.id, name, float(share), low, high), detail.facts.task_ms))
    ranked = sorted(found, key=lambda each: -each[1] * _distance(each[0]))
    return tuple(each for each, _ in ranked)


def _distance(each: Disagreement) -> float:
    return max(each.label_share - each.at_most_share, each.at_least_share - each.label_share)


def _operators(
    connection: duckdb.DuckDBPyConnection,
) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names and descriptions of the operators that ran in each stage."""
    rows = connection.execute(
        """
        SELECT stage_id, list(name), list(coalesce(detail, ''))
        FROM operators JOIN operator_stages USING (scope_id, node_id)
        GROUP BY stage_id
        """
    ).fetchall()
    return {stage_id: (tuple(names), tuple(texts)) for stage_id, names, texts in rows}
