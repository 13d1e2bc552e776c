"""What a changed world would make of a run (paper §5).

    1  replay the recorded units on the recorded slots: how far off is the model itself
    2  effects of the changed world, one after the other (query.simulate.effects): other slots, units cut anew, memory,
       speeds and bandwidths (Algorithms 1 and 2)
    3  replay again, slot order kept by the replay itself, until the sharing of devices and the schedule agree

The prediction is the recorded runtime times the ratio of the two replays, so that no change predicts no change.
Resource use is sequential within a unit (§4.1), speeds and bandwidths are constant (footnotes 9 and 10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.resources import NET, Resource, with_other
from crystalperf.query.execution.execution import Execution, Steady
from crystalperf.query.execution.scenario import World
from crystalperf.query.predict.interval import MOST_APART, interval, variances
from crystalperf.query.predict.limits import NOTICED, beyond, crosses_anew, lost, unseen, unseen_spills
from crystalperf.query.predict.priors import waits_unknown
from crystalperf.query.predict.resource_breakdown import path_parts
from crystalperf.query.predict.scenario_replay import Answer, Question, Unchanged, direction, replay_unchanged
from crystalperf.query.results.answers import GroupPrediction, Prediction
from crystalperf.query.results.assumptions import Assumption, BetweenEnds, CacheMisses, NoInterval, OtherPredictor
from crystalperf.query.results.refusals import (
    BandwidthUnknown,
    Refusal,
    RefusedError,
    SpillTimeUnknown,
    TimeUnknown,
)
from crystalperf.query.simulate.caching import anew, concerned, more_room, spared_share, with_room
from crystalperf.query.simulate.replay import Replayed
from crystalperf.query.simulate.transfers import MODEL, Physics
from crystalperf.query.simulate.warmup import NOTICED as COLD_NOTICED
from crystalperf.query.trace.plugins import entries
from crystalperf.query.trace.records import Floats

ROOM_KNOWN = 1.15
"""What workers have room for is known within this factor (docs/model.md)."""

NARROW = 1.25
"""Bounds that are no farther apart, most over least, make an answer: a usual range is wider."""


def _without_answer(execution: Execution, world: World, base: Unchanged) -> Prediction:
    """A prediction with all but what is predicted."""
    return Prediction(
        scope=execution.scope.text,
        measure=execution.measure,
        setting=world.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.replayed.makespan_ms,
        predicted_ms=None,
        groups=_groups(execution, base.replayed, None),
        words=execution.words,
    )


def _interval(
    question: Question, told: _Told, predicted_ms: float, others: Sequence[Question], steady: Steady | None
) -> tuple[tuple[float, float], Mapping[str, float]]:
    """The range of a prediction, ms, and the share of each source in it; `others` bound what workers have room for."""
    execution = question.execution
    sides = told.sides(question, [each.answer(told.physics).ms for each in others])
    if steady is not None:
        low, high = (execution.runtime_ms * each / steady.before_ms for each in steady.ends_ms)
        sides = min(low, predicted_ms), max(high, predicted_ms)
    variance = variances(
        execution.runtime_ms,
        question.base.replayed.makespan_ms,
        predicted_ms,
        question.world,
        execution.evidence,
        execution.resources,
        bytes_known=told.ends is not None,
    )
    return interval(predicted_ms, variance, ends_ms=sides)


def predict(
    execution: Execution,
    world: World,
    *,
    base: Unchanged | None = None,
    replans: bool = True,
    physics: Physics = MODEL,
    path: bool = True,
) -> Prediction:
    """The runtime of a scope in a changed world; a question that cannot be answered says why in `refused`.

    `base` is replay_unchanged() of the scope, where several questions share it.  `replans` is whether the framework
    may cut its units anew for other slots; without, units stay as recorded, as in the paper.  `physics` are the terms
    of the model that hold.  `path` is whether to tell what the predicted runtime goes to (resource_ms), a quarter of
    the work.
    """
    base = base or replay_unchanged(execution)
    execution = replace(execution, recorded=world.recorded)  # what the user states included
    known = _without_answer(execution, world, base)
    execution, assumed = _lent(execution, world, base, physics)
    tight, room = execution, more_room(execution, world)
    if room > 1 and anew(execution).any():
        execution, assumed = with_room(execution, room), (*assumed, _cache_misses(execution, room))
    if world.changes and (refusal := execution.planner.unbounded_reason(execution.properties) or lost(execution)):
        return known.with_refusal(refusal)
    question = Question(execution, world, base, replans)
    try:
        told = _told(question, physics)
    except RefusedError as error:
        return known.with_refusal(error.refusal, _bound_of(error, execution, world))
    if isinstance(told, _Bounds):
        return known.with_refusal(told.why, told.ms)
    predicted = told.ms
    parts_ms = _path_parts(question, told.answers, predicted) if path else None
    steady = execution.planner.steady(execution, world) if physics is MODEL else None
    if steady is not None:  # the recorded run changes as the settled one does
        changed = execution.runtime_ms * steady.after_ms / steady.before_ms
        if parts_ms is not None:
            parts_ms *= changed / predicted if predicted > 0 else 1.0
        predicted = changed
        known = replace(known, settled_step_ms=(steady.before_ms, steady.after_ms))
    unsure = world.unchecked(execution.planner.checked_settings(execution))
    if predicted > 0 and not unsure:  # a run that was cut before anything ran takes no time, whatever it has
        rooms = [room / ROOM_KNOWN, room * ROOM_KNOWN] if execution is not tight else []
        others = [question.of(with_room(tight, max(each, 1.0))) for each in rooms]
        likely, shares = _interval(question, told, predicted, others, steady)
        known = replace(known, interval_ms=likely, interval_shares=shares)
    assumed += (*told.answers[0].state.assumptions, *told.assumptions, *(() if steady is None else steady.assumptions))
    return replace(
        known,
        predicted_ms=predicted,
        work_ratio=_work_ratio(execution, world),
        resource_ms={} if parts_ms is None else dict(zip(with_other(execution.names), parts_ms.tolist(), strict=True)),
        groups=told.groups,
        assumptions=(*assumed, NoInterval(unsure)) if unsure else assumed,
    )


def _bound_of(error: RefusedError, execution: Execution, world: World) -> tuple[float | None, float | None] | None:
    """The bounds of a refusal, ms; none where several settings change, for the others may bring or cost more."""
    if error.low is None and error.high is None:
        return None
    if len(world.changes) > 1:
        return None, None
    least, most = (None if ratio is None else ratio * execution.runtime_ms for ratio in (error.low, error.high))
    return least, most


@dataclass(frozen=True)
class _Bounds:
    """A question that gets bounds and no answer, ms, and why; None for a bound that nothing gives."""

    why: Refusal
    ms: tuple[float | None, float | None]


@dataclass(frozen=True)
class _Told:
    """What is told of a question, ms: of one replay, or the middle of two between which nothing decides."""

    ms: float
    answers: list[Answer]
    groups: tuple[GroupPrediction, ...]
    physics: Physics
    ends: list[Answer] | None
    """What the changed bandwidths come to at least and at most; None where none changes."""
    others_ms: tuple[float, ...] = ()
    """What else it may come to."""
    assumptions: tuple[Assumption, ...] = ()

    def sides(self, question: Question, others_ms: Sequence[float]) -> tuple[float, float]:
        """The least and the most that other physics, and what is open, come to."""
        every = [self.ms, *self.others_ms, *others_ms, *(each.ms for each in self.ends or ())]
        if self.physics.cold and len(self.answers) == 1 and self.answers[0].fixed_point.cold_share > COLD_NOTICED:
            warm = question.answer(replace(self.physics, cold=False))
            every += [warm.ms, self.ms**2 / warm.ms]
        return min(every), max(every)


def _told(question: Question, physics: Physics) -> _Told | _Bounds:
    """What is told of a question.  Raises RefusedError."""
    execution, world, base = question.execution, question.world, question.base
    is_model, ends, unstated = physics == MODEL, None, _unstated(execution, world)
    link_bps = base.carried_bps() if is_model and _asks_for_link(execution, world) else None
    if unstated and is_model and _is_told(execution, world):
        ends = question.ends(link_bps)
    between = None
    if ends is not None and any(each.name != NET or link_bps is None for each in unstated):
        between = ends
        if link_bps is not None and any(each.name == NET for each in unstated):
            between = question.both(link_bps)
    if between is not None:
        answer = between[0]  # it is between the two, whatever the model says
    else:
        physics = replace(physics, link_bps=link_bps) if link_bps else physics
        answer = question.answer(physics)
    if out_of_range := beyond(execution, world):
        kept = replace(question, replans=False).answer()
        most_ms = min(answer.ms, kept.ms)  # cut anew, units may get too small to gain from so many slots
        return _Bounds(out_of_range, _outside(execution, world, most_ms))
    if found := unseen(execution, world):
        wholes = [question.of(_all_on(execution, each.name)).answer().ms for each, _ in found]
        unknown = TimeUnknown(float(max(share for _, share in found)))
        return _Bounds(unknown, (min(answer.ms, *wholes), max(answer.ms, *wholes)))
    others_ms, assumptions = [answer.ms], list[Assumption]()
    for why, other_ms in _otherwise(question):
        if abs(other_ms - answer.ms) > NOTICED * execution.runtime_ms:
            others_ms.append(other_ms)
            assumptions.append(BetweenEnds(why))
            if max(others_ms) > NARROW * min(others_ms):
                return _Bounds(why, (min(others_ms), max(others_ms)))
    if ends is None and is_model:
        ends = question.ends()
    if ends is not None and unstated and ends[1].ms > MOST_APART * ends[0].ms:
        return _Bounds(BandwidthUnknown(tuple(each.device for each in unstated)), (ends[0].ms, ends[1].ms))
    answers = [answer] if between is None else between
    groups = [_groups(execution, base.replayed, each) for each in answers]
    if between is None:
        ms = math.sqrt(min(others_ms) * max(others_ms))
        mine = _times(groups[0], ms / answer.ms if answer.ms > 0 else 1.0)
        return _Told(ms, answers, mine, physics, ends, tuple(others_ms), tuple(assumptions))
    ms = math.sqrt(between[0].ms * between[1].ms)
    return _Told(ms, answers, _between(*groups), physics, ends, tuple(others_ms), tuple(assumptions))


def _otherwise(question: Question) -> Iterator[tuple[Refusal, float]]:
    """What else a question may well come to, ms, and why that is not known."""
    execution, world = question.execution, question.world
    if spilled := unseen_spills(execution, world):
        yield SpillTimeUnknown(), question.of(spilled).answer().ms
    if world.changes and (told := execution.planner.other_bound(execution, world)) is not None:
        why, end = told
        yield why, replace(question, world=end).answer().ms


def _lent(
    execution: Execution, world: World, base: Unchanged, physics: Physics
) -> tuple[Execution, tuple[Assumption, ...]]:
    """The execution with what its log leaves open shared out, where that makes an answer of the question.

    Bounds hold whatever such time was, so they come of the log as it is.  What another CPU does to time that nobody saw
    is told by the run's own units alone.
    """
    if not world.changes or not (physics.borrowed and physics.bytes):
        return execution, ()
    if world.ratio("cpu_speed") != 1 and waits_unknown(execution) > 0:
        return execution, ()
    if beyond(execution, world) is not None:
        return execution, ()
    lent, said = base.lent()
    lent = replace(lent, recorded=execution.recorded)  # what the user states is of this question
    return (execution, ()) if unseen(lent, world) else (lent, said)


def _path_parts(question: Question, answers: Sequence[Answer], predicted_ms: float) -> Floats:
    """What a predicted runtime goes to along its critical path, (resources + 1,); the mean of several replays."""
    execution, world = question.execution, question.world
    found = np.sum([path_parts(each.state, each.fixed_point, execution, world) for each in answers], axis=0)
    whole_ms = float(found.sum())
    parts: Floats = found * (predicted_ms / whole_ms) if whole_ms > 0 else found
    return parts


def _cache_misses(execution: Execution, room: float) -> CacheMisses:
    """The units that read again what had no room in memory, and those left with room for `room` times as much."""
    misses = int(anew(execution).sum())
    left = round(misses * (1.0 - spared_share(execution, room)))
    return CacheMisses(misses, int(concerned(execution).sum()), float(room), left)


def _is_told(execution: Execution, world: World) -> bool:
    """Whether a question is within the model's range, and unknown time is not what it is about."""
    return beyond(execution, world) is None and not unseen(execution, world)


def _unstated(execution: Execution, world: World) -> list[Resource]:
    """The devices whose bandwidth changes and is not known of the recorded run."""
    return [
        each
        for each in execution.resources
        if each.unit == "bytes per second"
        and world.ratio(each.setting) != 1
        and not execution.recorded.get(each.setting)
    ]


def _asks_for_link(execution: Execution, world: World) -> bool:
    """Whether something changes and nobody stated how fast the network was."""
    stated = any(each.name == NET and execution.recorded.get(each.setting) for each in execution.resources)
    return bool(world.ratios) and not stated


def _between(least: tuple[GroupPrediction, ...], most: tuple[GroupPrediction, ...]) -> tuple[GroupPrediction, ...]:
    """Groups halfway between two predictions, as their ratio goes."""
    return tuple(
        replace(low, predicted_ms=math.sqrt((low.predicted_ms or 0.0) * (high.predicted_ms or 0.0)))
        for low, high in zip(least, most, strict=True)
    )


def _times(groups: tuple[GroupPrediction, ...], factor: float) -> tuple[GroupPrediction, ...]:
    """Groups so many times as long as predicted."""
    return tuple(
        each if each.predicted_ms is None else replace(each, predicted_ms=each.predicted_ms * factor) for each in groups
    )


def predicted_by(name: str, execution: Execution, world: World, base: Unchanged) -> Prediction:
    """What the model of another package makes of a scope in a changed world, ms; without an interval.

    Raises SettingError where there is no predictor of that name.
    """
    known = entries("predictors")
    if name not in known:
        if not known:
            raise SettingError(f"'{name}' is no predictor; no package brings one in")
        raise SettingError(f"'{name}' is no predictor; known are {', '.join(known)}")
    return Prediction(
        scope=execution.scope.text,
        measure=execution.measure,
        setting=world.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.replayed.makespan_ms,
        predicted_ms=float(known[name](replace(execution, recorded=world.recorded), world)),
        work_ratio=_work_ratio(execution, world),
        assumptions=(OtherPredictor(name),),
        words=execution.words,
    )


def _work_ratio(execution: Execution, world: World) -> float:
    """How many times the recorded work a changed world does: each worker of a training has a batch of its own."""
    return world.ratio("input") * (world.ratio("workers") if execution.measure == "step time" else 1.0)


def _outside(execution: Execution, world: World, predicted_ms: float) -> tuple[float | None, float | None]:
    """What holds beyond the model's range: more slots gain no more than the replay says, fewer gain nothing; what has
    never crossed the network may take any time there."""
    better, worse = direction(world)
    if better:
        most_ms = None if crosses_anew(execution, world) else execution.runtime_ms
        return min(predicted_ms, execution.runtime_ms), most_ms
    return (execution.runtime_ms, None) if worse else (None, None)


def _all_on(execution: Execution, resource: str) -> Execution:
    """The execution, all of its unexplained time being time on a resource."""
    parts = execution.units.parts_ms.copy()
    parts[:, execution.names.index(resource)] += parts[:, -1]
    parts[:, -1] = 0.0
    return replace(execution, units=replace(execution.units, parts_ms=parts))


def _groups(execution: Execution, base: Replayed, answer: Answer | None) -> tuple[GroupPrediction, ...]:
    """Every group's recorded length, and that times the ratio of the two replays' lengths of it."""
    found = []
    if answer is not None:
        before_ms = _lengths(base, execution)
        after_ms = _lengths(answer.replayed, answer.state.execution)
    for node_id, node in execution.dag.nodes.items():
        if node.group is None:
            continue
        recorded, predicted = node.end_ms - node.start_ms, None
        if answer is not None:
            before, after = before_ms[node.group], after_ms[node.group]
            predicted = recorded * after / before if before > 0 else recorded
        found.append(GroupPrediction(node_id, node.name, recorded, predicted))
    return tuple(found)


def _lengths(replayed: Replayed, execution: Execution) -> list[float]:
    """From the first launch to the last end of each group's units, ms."""
    group, count = execution.units.group, len(execution.dag.groups)
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, group, replayed.launch_ms)
    np.maximum.at(last, group, replayed.finish_ms)
    lengths: list[float] = (last - first).tolist()
    return lengths
