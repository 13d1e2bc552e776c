"""Thresholds that findings share, and the sum of several stages' contributions as one finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import (
    IdleSlots,
    IdleStage,
    OddUse,
    OddUseStage,
    StageCost,
    StageFinding,
    StartingStage,
    StartingTasks,
    Straggler,
    StragglerStage,
)
from crystalperf.query.results.kinds import Basis

SKEW = 2.0
"""A stage is skewed if its longest task takes this many times the median."""

MORE = 1.5
"""Minimum ratio to the usual value for an explanation of a straggler, or for a slow host."""

LITTLE_BYTES = 1 << 20
"""A task that reads less has too little data to divide."""

NEXT_ADVICE = 0.25
"""A finding has a second advice from this share of its cost."""

_FINDINGS: Mapping[type[StageCost], type[StageFinding]] = {
    IdleStage: IdleSlots,
    StragglerStage: Straggler,
    StartingStage: StartingTasks,
    OddUseStage: OddUse,
}


def sum_of_stages(stages: Sequence[StageCost]) -> list[StageFinding]:
    """One finding for the stages of each kind.  Their costs add up: stages are on the path at different times."""
    kinds: dict[tuple[type[StageCost], str, Basis], list[StageCost]] = {}
    for each in stages:
        kinds.setdefault((type(each), each.variant, each.basis), []).append(each)
    return [_together(_FINDINGS[type(each[0])], sorted(each, key=lambda one: -one.cost_ms)) for each in kinds.values()]


def _together(kind: type[StageFinding], stages: Sequence[StageCost]) -> StageFinding:
    """The finding of stages of one kind, the largest first."""
    cost_ms = sum(each.cost_ms for each in stages)
    by_advice: dict[Advice, list[StageCost]] = {}
    for each in stages:
        by_advice.setdefault(each.advice, []).append(each)
    costs = {each: sum(stage.cost_ms for stage in of) for each, of in by_advice.items()}
    advice, *others = sorted(costs, key=lambda each: -costs[each])
    other = by_advice[others[0]][0] if others and costs[others[0]] >= NEXT_ADVICE * cost_ms else None
    return kind(cost_ms, stages[0].basis, advice, tuple(stages), other)


def on_a_device(found: Sequence[StageFinding], unmodelled: str | None) -> list[StageFinding]:
    """The findings; if a device without a model computed for tasks, findings of idle slots name it."""
    if unmodelled is None:
        return list(found)
    return [replace(each, unmodelled=unmodelled) if isinstance(each, IdleSlots) else each for each in found]


def usual_task_ms(detail: StageStats) -> float:
    """The usual duration of a task, ms: the median, or that of tasks with work if most tasks have nothing to read."""
    return detail.siblings.loaded_ms if detail.with_data < detail.facts.tasks else detail.facts.median_ms
