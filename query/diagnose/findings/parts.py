"""Thresholds that findings share, and the sum of several stages' contributions as one finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crystalperf.query.diagnose.group_statistics import GroupStats
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import (
    IdleSlots,
    IdleStage,
    OddUse,
    OddUseStage,
    StageCost,
    StageFinding,
    StartingStage,
    StartingUnits,
    Straggler,
    StragglerStage,
)
from crystalperf.query.results.kinds import Basis

SKEW = 2.0
"""A group is skewed if its longest unit takes this many times the median."""

MORE = 1.5
"""Minimum ratio to the usual value for an explanation of a straggler, or for a slow host."""

LITTLE_BYTES = 1 << 20
"""A unit that reads less has too little data to divide."""

NEXT_ADVICE = 0.25
"""A finding has a second advice from this share of its cost."""

_FINDINGS: Mapping[type[StageCost], type[StageFinding]] = {
    IdleStage: IdleSlots,
    StragglerStage: Straggler,
    StartingStage: StartingUnits,
    OddUseStage: OddUse,
}


def added_up(stages: Sequence[StageCost]) -> list[StageFinding]:
    """One finding for the stages of each kind.  Their costs add up: groups are on the path at different times."""
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
    """The findings; if a device without a model computed for units, findings of idle slots name it."""
    if unmodelled is None:
        return list(found)
    return [replace(each, unmodelled=unmodelled) if isinstance(each, IdleSlots) else each for each in found]


def usual_unit_ms(detail: GroupStats) -> float:
    """The usual duration of a unit, ms: the median, or that of units with work if most units have nothing to read."""
    return detail.siblings.loaded_ms if detail.with_data < detail.facts.units else detail.facts.median_ms
