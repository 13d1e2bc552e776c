"""Flink's part in a search for a configuration: parallelism by vertex, slots and TaskManagers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import duckdb
import numpy as np

from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import TASKS
from crystalperf.query.execution.tunable import Knob, Tunable, Values
from crystalperf.query.frameworks.flink.advise import TIMEOUT
from crystalperf.query.frameworks.flink.planning import MAX_SUBTASKS, configured
from crystalperf.query.results.recommendations import SettingChange
from crystalperf.query.results.tuning import NotTuned, Unmodelled, ValueNotRecorded

SLOTS = "taskmanager.numberOfTaskSlots"
TASK_MANAGERS = "number of TaskManagers"
"""Not a setting: who starts the cluster starts them."""

PARALLELISM = "setParallelism"
"""The call by which a program sets the parallelism of a vertex' operators, before the vertex' name."""

MOST_VERTICES = 6
"""Maximum vertices with a knob of their own, the busiest first."""

_PARALLELISM = (0.5, 2.0, 3.0, 4.0)
"""Parallelism to try, times the recorded one."""


def tunable(_connection: duckdb.DuckDBPyConnection, execution: Execution) -> Tunable:
    """The part of a Flink job that a search may change."""
    counts = _counts(execution)
    knobs, missing = _of_cluster(execution)
    per_worker = execution.recorded.get("cores") or 1.0
    slots = knobs[0].recorded * per_worker if knobs else float(max(counts.values(), default=1))
    vertices = [_of_vertex(execution, vertex, count, slots) for vertex, count in _tuned(execution, counts)]
    knobs += [each for each in vertices if each.values]
    known = {each.key: each for each in knobs}

    def changes(key: str, values: Values) -> Sequence[SettingChange]:
        knob = known[key]
        return [SettingChange(knob.name, round(knob.recorded), round(values[key]))]

    widest = max(counts.values(), default=1)
    kept = widest if widest > slots else 0  # the log does not name all slots

    def is_possible(values: Values) -> bool:
        """Whether each subtask of the widest vertex has a slot."""
        there = values.get("workers", 1.0) * values.get("cores", per_worker) if "workers" in known else slots
        subtasks = (values.get(f"{TASKS}{vertex}", float(count)) for vertex, count in counts.items())
        return max(subtasks, default=1.0) <= max(there, kept)

    memory = [
        Unmodelled(each) for each in ("taskmanager.memory.process.size", "taskmanager.memory.managed.size", TIMEOUT)
    ]
    return Tunable(tuple(knobs), (*missing, *memory), changes, is_possible, slots_cost=False)


def _of_cluster(execution: Execution) -> tuple[list[Knob], list[NotTuned]]:
    """The knobs of a cluster whose slots are known."""
    workers, cores = (execution.recorded.get(key) for key in ("workers", "cores"))
    if not workers or not cores or "cores" not in configured(execution.properties):
        return [], [ValueNotRecorded(SLOTS), ValueNotRecorded(TASK_MANAGERS)]
    found = [Knob("workers", workers, name=TASK_MANAGERS)]
    if not _knows_cpu(execution):  # more slots may wait for the CPU
        return found, [Unmodelled(SLOTS)]
    return [*found, Knob("cores", cores, name=SLOTS)], []


def _knows_cpu(execution: Execution) -> bool:
    """Whether the CPU that the slots of a TaskManager share is known."""
    if execution.stream is not None:
        return all(math.isfinite(each.most_cores) for each in execution.stream.places)
    return math.isfinite(execution.slots.cpu_limit())


def _counts(execution: Execution) -> dict[str, int]:
    """The subtasks of each vertex, by its id."""
    if execution.stream is not None:
        return {each.id: each.slots for each in execution.stream.stations}
    recorded = np.bincount(execution.tasks.stage, minlength=len(execution.dag.stages))
    return {each.stage_id: int(count) for each, count in zip(execution.dag.stages, recorded, strict=True) if count}


def _tuned(execution: Execution, counts: dict[str, int]) -> list[tuple[str, int]]:
    """The vertices to tune, the busiest first: not those with one subtask next to wider ones, such as a global sort."""
    if execution.stream is not None:
        busy = {each.id: each.busiest for each in execution.stream.stations}
    else:
        own_ms = execution.tasks.duration_ms - execution.tasks.pipeline_wait_ms
        sums = np.bincount(execution.tasks.stage, own_ms, minlength=len(execution.dag.stages))
        busy = {each.stage_id: float(ms) for each, ms in zip(execution.dag.stages, sums, strict=True)}
    widest = max(counts.values(), default=1)
    several = [(vertex, count) for vertex, count in counts.items() if count > 1 or widest == 1]
    return sorted(several, key=lambda each: -busy.get(each[0], 0.0))[:MOST_VERTICES]


def _of_vertex(execution: Execution, vertex: str, count: int, slots: float) -> Knob:
    most = execution.properties.get(f"{MAX_SUBTASKS}{vertex}", "")
    limit = int(most) if most.isdigit() else math.inf
    values = {max(round(each * count), 1) for each in _PARALLELISM} | {round(slots)}
    name = next(each.name for each in execution.dag.stages if each.stage_id == vertex)
    kept = sorted(float(each) for each in values if each <= limit and each != count)
    return Knob(f"{TASKS}{vertex}", float(count), tuple(kept), name=f"{PARALLELISM} of {name}")
