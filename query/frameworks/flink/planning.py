"""Flink's planner: another parallelism, and other slots.

The job sets a vertex's parallelism, not the cluster: other slots alone only let more or fewer subtasks run at once.
With another parallelism a vertex's records are spread over other subtasks.  The log does not record how, so each new
subtask gets an equal segment of the recorded subtasks' work, in their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import TASKS, Scenario, called_by, tasks_of
from crystalperf.query.frameworks import Planned
from crystalperf.query.frameworks.flink.assumptions import (
    HotSubtask,
    ParallelismKept,
    ParallelismLimited,
    RecordsRespread,
    SingleSubtasksKept,
    SlotsForSubtasks,
)
from crystalperf.query.frameworks.flink.refusals import EndlessStream, ParallelismOutOfRange, SubtasksForInputUnknown
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.simulate.repartition import with_tasks
from crystalperf.query.trace.arrays import median

SKEWED = 2.0
"""A subtask with this many times the median's time has one large key, which more subtasks do not divide."""

MAX_SUBTASKS = "max-parallelism."
"""Before a vertex' id: the setting with its maximum number of subtasks."""

SHARING = "slot_sharing"
"""The setting with the number of vertices that have a subtask each in one slot."""

UNPLACED = "unplaced"
"""The setting that marks a run without names of TaskManagers."""

STOPPED = "stopped"
"""The setting that marks a stream that was stopped."""

MAX_RATIO = 16
"""Maximum ratio of parallelism to the recorded one, or the reverse: beyond it the recording does not show how records
would spread."""


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """The configured slots of each TaskManager, if the cluster's configuration was collected."""
    slots = properties.get("taskmanager.numberOfTaskSlots", "")
    return {"cores": float(slots)} if slots.isdigit() and int(slots) > 0 else {}


def shown_slots(slots: int | None, properties: Mapping[str, str]) -> int | None:
    """Slots of a TaskManager, each of which takes a subtask of every vertex of a pipeline; 0 if no TaskManager is
    named."""
    if UNPLACED in properties:
        return 0
    return None if slots is None else math.ceil(slots / int(properties.get(SHARING, "1")))


def unbounded_reason(properties: Mapping[str, str]) -> Refusal | None:
    """The refusal to predict the runtime of an unbounded stream; None for any other job."""
    return EndlessStream() if STOPPED in properties else None


def replan(execution: Execution, scenario: Scenario, wanted: bool) -> Planned | Refusal:
    """The run with the subtasks of another parallelism; a refusal beyond the model's range."""
    if scenario.ratio("input") != 1:
        return SubtasksForInputUnknown()
    assumed: list[Assumption] = []
    counts = _counts(execution, scenario) if wanted else {}
    full = {number for number in counts if counts[number] == _most(execution, number)}
    for number, count in counts.items():
        had = int((execution.tasks.stage == number).sum())
        if max(count / had, had / count) > MAX_RATIO:
            return ParallelismOutOfRange(execution.dag.stages[number].name, had, count, MAX_RATIO)
    if scenario.ratio("cores") != 1 or scenario.ratio("workers") != 1:
        assumed.append(ParallelismKept())
    assumed += _at_their_limit(execution, scenario)
    if not counts:
        return Planned(execution, tuple(assumed))
    skewed = [
        execution.dag.stages[number].name for number, count in counts.items() if _skewed(execution, number, count)
    ]
    assumed.append(RecordsRespread(len(counts)))
    if skewed:
        assumed.append(HotSubtask(skewed[0]))
    assumed += [ParallelismLimited(execution.dag.stages[number].name, counts[number]) for number in sorted(full)]
    kept = [each.name for number, each in enumerate(execution.dag.stages) if number not in counts]
    if kept and scenario.ratio("tasks") != 1:
        assumed.append(SingleSubtasksKept(tuple(kept)))
    slots = _slots(execution, counts)
    if slots > 1:
        assumed.append(SlotsForSubtasks(max(counts.values())))
    return Planned(with_tasks(execution, counts), tuple(assumed), slots)


def _at_their_limit(execution: Execution, scenario: Scenario) -> list[Assumption]:
    """The vertices for which the scenario asks more subtasks, and which have their maximum already."""
    found: list[Assumption] = []
    for number, stage in enumerate(execution.dag.stages):
        own = (each for each in called_by(stage.stage_id, stage.name) if scenario.ratio(f"{TASKS}{each}") > 1)
        most, recorded = _most(execution, number), int((execution.tasks.stage == number).sum())
        if next(own, None) is not None and most is not None and most <= recorded:
            found.append(ParallelismLimited(stage.name, most))
    return found


def _slots(execution: Execution, counts: Mapping[int, int]) -> float:
    """The factor by which more concurrent subtasks of a pipeline multiply the slots; 1 if the slots are known."""
    if "cores" in configured(execution.properties) or int(execution.properties.get(SHARING, "1")) < 2:
        return 1.0
    return max(1.0, *(count / int((execution.tasks.stage == number).sum()) for number, count in counts.items()))


def _most(execution: Execution, number: int) -> int | None:
    """The maximum subtasks of a vertex; None if not recorded."""
    stated = execution.properties.get(f"{MAX_SUBTASKS}{execution.dag.stages[number].stage_id}", "")
    return int(stated) if stated.isdigit() else None


def _counts(execution: Execution, scenario: Scenario) -> dict[int, int]:
    """Subtasks by the vertex's number, for vertices whose parallelism changes."""
    recorded = np.bincount(execution.tasks.stage, minlength=len(execution.dag.stages))
    widest = int(recorded.max(initial=1))
    named = any(key.startswith(TASKS) for key in scenario.ratios)
    found = {}
    for number, stage in enumerate(execution.dag.stages):
        ratio = tasks_of(scenario, stage.stage_id, stage.name)
        if not named and recorded[number] == 1 and widest > 1:
            continue  # a global sort or aggregate, or a source of one file
        count = max(round(float(recorded[number]) * ratio), 1)
        count = min(count, max(_most(execution, number) or count, int(recorded[number])))
        if count != recorded[number]:
            found[number] = count
    return found


def _skewed(execution: Execution, number: int, count: int) -> bool:
    members = execution.tasks.stage == number
    own = (execution.tasks.duration_ms - execution.tasks.pipeline_wait_ms)[members]
    return count > len(own) > 1 and bool(own.max() > SKEWED * median(own))
