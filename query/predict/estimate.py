"""Prediction of a run in a scenario (paper §5).

    1  replay the recorded tasks on the recorded slots: this shows the error of the model itself
    2  apply the effects of the scenario, one after the other (query.simulate.effects): other slots, repartitioned
       tasks, memory, speeds and bandwidths (Algorithms 1 and 2)
    3  replay again, which computes the order of slots, until contention and schedule agree (fixed point)

The prediction is the recorded runtime times the ratio of the two replays, so a scenario without changes predicts the
recorded runtime.  Resource use is sequential within a task (§4.1), speeds and bandwidths are constant (footnotes 9 and
10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import NET, Resource, with_other
from crystalperf.query.execution.execution import Execution, Steady
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.predict.interval import MAX_APART, interval, of_ends, variances
from crystalperf.query.predict.limits import NOTICED, adds_remote_reads, beyond, lost, missing_spills, unseen_resources
from crystalperf.query.predict.priors import unknown_cpu_wait_share
from crystalperf.query.predict.resource_breakdown import path_parts
from crystalperf.query.predict.scenario_replay import (
    Answer,
    PredictionRequest,
    SharedBaseline,
    direction,
    replay_baseline,
)
from crystalperf.query.results.answers import Prediction, StagePrediction
from crystalperf.query.results.assumptions import Assumption, BetweenEnds, CacheMisses, NoInterval
from crystalperf.query.results.refusals import (
    BandwidthUnknown,
    Refusal,
    RefusedError,
    SpillTimeUnknown,
    TimeUnknown,
)
from crystalperf.query.simulate.caching import (
    avoided_miss_share,
    cache_misses,
    in_stages_with_misses,
    memory_capacity_ratio,
    with_memory_capacity,
)
from crystalperf.query.simulate.replay import Replayed
from crystalperf.query.simulate.transfers import MODEL, PAPER, Physics
from crystalperf.query.simulate.warmup import NOTICED as COLD_NOTICED
from crystalperf.query.trace.records import Floats

CAPACITY_FACTOR = 1.15
"""Uncertainty factor of the memory capacity for cached data (docs/model.md)."""

NARROW = 1.25
"""Maximum ratio of two bounds that still gives a point estimate: a usual interval is wider."""


def _without_answer(execution: Execution, scenario: Scenario, base: SharedBaseline) -> Prediction:
    """A prediction with all fields except the predicted ones."""
    return Prediction(
        scope=execution.scope.text,
        measure=execution.measure,
        setting=scenario.describe(),
        runtime_ms=execution.runtime_ms,
        replayed_ms=base.replayed.makespan_ms,
        predicted_ms=None,
        stages=_stages(execution, base.replayed, None),
        words=execution.words,
    )


def _interval(
    question: PredictionRequest,
    estimate: _Estimate,
    predicted_ms: float,
    others: Sequence[PredictionRequest],
    steady: Steady | None,
) -> tuple[tuple[float, float], Mapping[str, float]]:
    """The interval of a prediction, ms, and the share of each source in it; `others` bound the memory capacity."""
    execution = question.execution
    sides = estimate.sides(question, [each.answer(estimate.physics).ms for each in others])
    if steady is not None:
        low, high = (execution.runtime_ms * each / steady.before_ms for each in steady.ends_ms)
        sides = min(low, predicted_ms), max(high, predicted_ms)
    if steady is None and (terms := execution.planner.ends(execution, question.scenario)) is not None:
        ends = {
            each.name: [question.with_scenario(one).answer().ms for one in (each.first, each.last)] for each in terms
        }
        return of_ends(predicted_ms, ends)
    variance = variances(
        execution.runtime_ms,
        question.base.replayed.makespan_ms,
        predicted_ms,
        question.scenario,
        execution.evidence,
        execution.resources,
        bytes_known=estimate.ends is not None,
    )
    return interval(predicted_ms, variance, ends_ms=sides)


def predict(
    execution: Execution,
    scenario: Scenario,
    *,
    base: SharedBaseline | None = None,
    replans: bool = True,
    physics: Physics = MODEL,
    path: bool = True,
    unverified: bool = False,
) -> Prediction:
    """The runtime of a scope in a scenario; if it cannot be predicted, `refused` says why.

    `base` is replay_baseline() of the scope, for several predictions to share.  `replans` is whether the framework may
    repartition tasks for other slots; without it, tasks stay as recorded, as in the paper.  `physics` are the terms of
    the model.  `path` is whether to compute the resource breakdown of the predicted runtime (resource_ms), a quarter of
    the work.  `unverified` is whether settings whose effect no rerun has verified have the interval of others, too.
    """
    base = base or replay_baseline(execution)
    execution = replace(execution, recorded=scenario.recorded)  # what the user states included
    known = _without_answer(execution, scenario, base)
    execution, assumed = _with_imputed_time(execution, scenario, base, physics)
    tight, capacity = execution, memory_capacity_ratio(execution, scenario)
    if capacity > 1 and cache_misses(execution).any():
        execution, assumed = with_memory_capacity(execution, capacity), (*assumed, _cache_misses(execution, capacity))
    if scenario.changes and (refusal := _refused(execution, scenario)):
        return known.with_refusal(refusal)
    question = PredictionRequest(execution, scenario, base, replans)
    try:
        estimate = _estimate(question, physics)
    except RefusedError as error:
        return known.with_refusal(error.refusal, _bound_of(error, execution, scenario))
    if isinstance(estimate, _Bounds):
        return known.with_refusal(estimate.why, estimate.ms)
    predicted = estimate.ms
    parts_ms = _path_parts(question, estimate.answers, predicted) if path else None
    steady = execution.planner.steady(execution, scenario) if physics is MODEL else None
    if steady is not None:  # the recorded run changes by the same factor as its steps after warm-up
        changed = execution.runtime_ms * steady.after_ms / steady.before_ms
        if parts_ms is not None:
            parts_ms *= changed / predicted if predicted > 0 else 1.0
        predicted = changed
        known = replace(known, steady_step_ms=(steady.before_ms, steady.after_ms))
    unsure = () if unverified else scenario.unchecked(execution.planner.checked_settings(execution))
    if predicted > 0 and not unsure:  # a log cut off before anything ran has a runtime of 0 in every scenario
        capacities = [capacity / CAPACITY_FACTOR, capacity * CAPACITY_FACTOR] if execution is not tight else []
        others = [question.of(with_memory_capacity(tight, max(each, 1.0))) for each in capacities]
        likely, shares = _interval(question, estimate, predicted, others, steady)
        known = replace(known, interval_ms=likely, interval_shares=shares)
    assumed += (*estimate.answers[0].state.assumptions, *estimate.assumptions)
    assumed += () if steady is None else steady.assumptions
    return replace(
        known,
        predicted_ms=predicted,
        work_ratio=work_ratio(execution, scenario),
        resource_ms={} if parts_ms is None else dict(zip(with_other(execution.names), parts_ms.tolist(), strict=True)),
        stages=estimate.stages,
        assumptions=(*assumed, NoInterval(unsure)) if unsure else assumed,
    )


def _refused(execution: Execution, scenario: Scenario) -> Refusal | None:
    """Why no scenario of the run, or not this one, can be predicted; None if it may be."""
    planner = execution.planner
    return planner.unbounded_reason(execution.properties) or lost(execution) or planner.refused(execution, scenario)


def _bound_of(
    error: RefusedError, execution: Execution, scenario: Scenario
) -> tuple[float | None, float | None] | None:
    """The bounds of a refusal, ms; unknown if several settings change, because the others may have larger effects."""
    if error.low is None and error.high is None:
        return None
    if len(scenario.changes) > 1:
        return None, None
    least, most = (None if ratio is None else ratio * execution.runtime_ms for ratio in (error.low, error.high))
    return least, most


@frozen
class _Bounds:
    """The bounds of a runtime without a prediction, ms, and why there is none; None for an unknown bound."""

    why: Refusal
    ms: tuple[float | None, float | None]


@frozen
class _Estimate:
    """A point estimate, ms: from one replay, or the middle of two bounds if nothing decides between them."""

    ms: float
    answers: list[Answer]
    stages: tuple[StagePrediction, ...]
    physics: Physics
    ends: list[Answer] | None
    """Predictions with the optimistic and the pessimistic effect of changed bandwidths; None if none changes."""
    others_ms: tuple[float, ...] = ()
    """Predictions under other plausible assumptions."""
    assumptions: tuple[Assumption, ...] = ()

    def sides(self, question: PredictionRequest, others_ms: Sequence[float]) -> tuple[float, float]:
        """The shortest and the longest runtime under other physics and other assumptions, ms."""
        every = [self.ms, *self.others_ms, *others_ms, *(each.ms for each in self.ends or ())]
        if self.physics.warmup and len(self.answers) == 1 and self.answers[0].fixed_point.cold_share > COLD_NOTICED:
            warm = question.answer(replace(self.physics, warmup=False))
            every += [warm.ms, self.ms**2 / warm.ms]
        return min(every), max(every)


def _estimate(question: PredictionRequest, physics: Physics) -> _Estimate | _Bounds:
    """The point estimate of a prediction request, or its bounds.  Raises RefusedError."""
    execution, scenario, base = question.execution, question.scenario, question.base
    is_model, ends, unstated = physics == MODEL, None, _unstated(execution, scenario)
    link_bps = base.carried_bps() if is_model and _needs_link_bound(execution, scenario) else None
    if unstated and is_model and _is_in_range(execution, scenario):
        ends = question.ends(link_bps)
    between = None
    if ends is not None and any(each.name != NET or link_bps is None for each in unstated):
        between = ends
        if link_bps is not None and any(each.name == NET for each in unstated):
            between = question.both(link_bps)
    if between is not None:
        answer = between[0]  # the estimate is between the two bounds
    else:
        physics = replace(physics, link_bps=link_bps) if link_bps else physics
        answer = question.answer(physics)
    if out_of_range := beyond(execution, scenario):
        kept = replace(question, replans=False).answer()
        most_ms = min(answer.ms, kept.ms)  # repartitioned tasks may be too small to gain from so many slots
        return _Bounds(out_of_range, _outside(execution, scenario, most_ms))
    if found := unseen_resources(execution, scenario):
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
    if ends is not None and unstated and ends[1].ms > MAX_APART * ends[0].ms:
        return _Bounds(BandwidthUnknown(tuple(each.device for each in unstated)), (ends[0].ms, ends[1].ms))
    answers = [answer] if between is None else between
    stages = [_stages(execution, base.replayed, each) for each in answers]
    if between is None:
        ms = math.sqrt(min(others_ms) * max(others_ms))
        scaled = _times(stages[0], ms / answer.ms if answer.ms > 0 else 1.0)
        return _Estimate(ms, answers, scaled, physics, ends, tuple(others_ms), tuple(assumptions))
    ms = math.sqrt(between[0].ms * between[1].ms)
    return _Estimate(ms, answers, _between(*stages), physics, ends, tuple(others_ms), tuple(assumptions))


def _otherwise(question: PredictionRequest) -> Iterator[tuple[Refusal, float]]:
    """Predictions under other plausible assumptions, ms, and why it is unknown which one holds."""
    execution, scenario = question.execution, question.scenario
    if spilled := missing_spills(execution, scenario):
        yield SpillTimeUnknown(), question.of(spilled).answer().ms
    if scenario.changes and (bound := execution.planner.other_bound(execution, scenario)) is not None:
        why, other = bound
        yield why, replace(question, scenario=other).answer().ms


def _with_imputed_time(
    execution: Execution, scenario: Scenario, base: SharedBaseline, physics: Physics
) -> tuple[Execution, tuple[Assumption, ...]]:
    """The execution with imputed time, if that makes a prediction possible.

    Bounds hold for every cause of unknown time, so they use the log without imputation.  The effect of another CPU on
    unknown time follows only from the run's own tasks, not from priors.
    """
    if not scenario.changes or not (physics.imputed and physics.bytes):
        return execution, ()
    if scenario.ratio("cpu_speed") != 1 and unknown_cpu_wait_share(execution) > 0:
        return execution, ()
    if beyond(execution, scenario) is not None:
        return execution, ()
    imputed, assumed = base.imputed()
    imputed = replace(imputed, recorded=execution.recorded)  # with the recorded values that the user states
    return (execution, ()) if unseen_resources(imputed, scenario) else (imputed, assumed)


def _path_parts(question: PredictionRequest, answers: Sequence[Answer], predicted_ms: float) -> Floats:
    """The resource breakdown of a predicted runtime along its critical path, (resources + 1,) in ms; the mean of
    several replays."""
    execution, scenario = question.execution, question.scenario
    found = np.sum([path_parts(each.state, each.fixed_point, execution, scenario) for each in answers], axis=0)
    whole_ms = float(found.sum())
    parts: Floats = found * (predicted_ms / whole_ms) if whole_ms > 0 else found
    return parts


def _cache_misses(execution: Execution, capacity: float) -> CacheMisses:
    """The number of cache misses, as recorded and with `capacity` times as much memory for cached data."""
    misses = int(cache_misses(execution).sum())
    left = round(misses * (1.0 - avoided_miss_share(execution, capacity)))
    return CacheMisses(misses, int(in_stages_with_misses(execution).sum()), float(capacity), left)


def _is_in_range(execution: Execution, scenario: Scenario) -> bool:
    """Whether a scenario is within the model's range, and does not change resources that may be the unknown time."""
    return beyond(execution, scenario) is None and not unseen_resources(execution, scenario)


def _unstated(execution: Execution, scenario: Scenario) -> list[Resource]:
    """The devices whose bandwidth changes in the scenario and is unknown in the recorded run."""
    return [
        each
        for each in execution.resources
        if each.unit == "bytes per second"
        and scenario.ratio(each.setting) != 1
        and not execution.recorded.get(each.setting)
    ]


def _needs_link_bound(execution: Execution, scenario: Scenario) -> bool:
    """Whether the scenario changes something, and the recorded bandwidth of the network is unknown."""
    stated = any(each.name == NET and execution.recorded.get(each.setting) for each in execution.resources)
    return bool(scenario.ratios) and not stated


def _between(least: tuple[StagePrediction, ...], most: tuple[StagePrediction, ...]) -> tuple[StagePrediction, ...]:
    """Stages with the geometric mean of two predictions."""
    return tuple(
        replace(low, predicted_ms=math.sqrt((low.predicted_ms or 0.0) * (high.predicted_ms or 0.0)))
        for low, high in zip(least, most, strict=True)
    )


def _times(stages: tuple[StagePrediction, ...], factor: float) -> tuple[StagePrediction, ...]:
    """Stages with their predicted length times a factor."""
    return tuple(
        each if each.predicted_ms is None else replace(each, predicted_ms=each.predicted_ms * factor) for each in stages
    )


def replay_ms(execution: Execution, scenario: Scenario, physics: Physics = PAPER) -> float:
    """The runtime of a scope in a scenario by the replay with these terms, ms; tasks stay as recorded.

    Raises RefusedError.
    """
    answer = predict(execution, scenario, replans=False, physics=physics, path=False)
    if answer.predicted_ms is None:
        raise RefusedError(answer.refused[0])
    return answer.predicted_ms


def work_ratio(execution: Execution, scenario: Scenario) -> float:
    """The factor on the recorded work in a scenario: in training, each worker has a batch of its own."""
    return scenario.ratio("input") * (scenario.ratio("workers") if execution.measure == "step time" else 1.0)


def _outside(execution: Execution, scenario: Scenario, predicted_ms: float) -> tuple[float | None, float | None]:
    """Bounds outside the model's range, ms: more slots save at most what the replay predicts, fewer save nothing; the
    time of data that have never crossed the network has no upper bound there."""
    better, worse = direction(scenario)
    if better:
        most_ms = None if adds_remote_reads(execution, scenario) else execution.runtime_ms
        return min(predicted_ms, execution.runtime_ms), most_ms
    return (execution.runtime_ms, None) if worse else (None, None)


def _all_on(execution: Execution, resource: str) -> Execution:
    """The execution with all unknown time attributed to one resource."""
    parts = execution.tasks.parts_ms.copy()
    parts[:, execution.names.index(resource)] += parts[:, -1]
    parts[:, -1] = 0.0
    return replace(execution, tasks=replace(execution.tasks, parts_ms=parts))


def _stages(execution: Execution, base: Replayed, answer: Answer | None) -> tuple[StagePrediction, ...]:
    """The recorded length of every stage, and its prediction: times the ratio of its lengths in the two replays."""
    found = []
    if answer is not None:
        before_ms = _lengths(base, execution)
        after_ms = _lengths(answer.replayed, answer.state.execution)
    for node_id, node in execution.dag.nodes.items():
        if node.stage is None:
            continue
        recorded, predicted = node.end_ms - node.start_ms, None
        if answer is not None:
            before, after = before_ms[node.stage], after_ms[node.stage]
            predicted = recorded * after / before if before > 0 else recorded
        found.append(StagePrediction(node_id, node.name, recorded, predicted))
    return tuple(found)


def _lengths(replayed: Replayed, execution: Execution) -> list[float]:
    """The length of each stage, from the first launch to the last end of its tasks, ms."""
    stage, count = execution.tasks.stage, len(execution.dag.stages)
    first, last = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(first, stage, replayed.launch_ms)
    np.maximum.at(last, stage, replayed.finish_ms)
    lengths: list[float] = (last - first).tolist()
    return lengths
