"""Prediction of a stream that is processed in batches: the time of a batch, the latency of a row, the highest rate.

    rows of a batch   rate × interval: they arrived since the previous batch began
    time of a batch   fixed + rows × time of a row (query.execution.micro_batches)
    interval          that of the trigger or the source; if a batch takes longer, its own time
    latency           half of the interval, on average, until the row's batch begins, and the time of that batch

A stream sustains all rates at which the rows of a batch take longer to arrive than they add to its time.  Above that,
each batch is larger than the one before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.micro_batches import FARTHEST, FEW, Z90, BatchCost, MicroBatches
from crystalperf.query.execution.scenario import RATE, TRIGGER, Scenario
from crystalperf.query.predict.estimate import NARROW
from crystalperf.query.predict.interval import MAX_APART
from crystalperf.query.results.answers import BatchPrediction, Prediction, StagePrediction, StreamPrediction
from crystalperf.query.results.assumptions import (
    Assumption,
    BatchesUnlimited,
    NoInterval,
    OtherStreamsKept,
    RateProcessed,
    RecordsAlike,
    RowsEvenOverTasks,
    StateKept,
)
from crystalperf.query.results.refusals import (
    BatchesAlike,
    BatchStagesDiffer,
    NotModelledForStreams,
    RateBeyondMeasured,
    RateNearLimit,
    RateNotSustained,
    Refusal,
    RowTimeUncertain,
    TooFewBatches,
)

REPETITION_SD = 0.05
"""Relative standard deviation of the mean time of a batch between runs of one configuration."""

WAIT = "wait"
"""The part of a row's latency until its batch begins."""

_MODELLED = frozenset({RATE, TRIGGER, "tasks", "cores", "workers"})
_SLOTS = ("cores", "workers")


def is_about_batches(scenario: Scenario) -> bool:
    """Whether a scenario is about the batches of a stream, not about the runtime of the recorded ones."""
    return RATE in scenario.changes or TRIGGER in scenario.changes


@frozen
class _MeanBatch:
    """The batches of a scenario at a rate: rows, time of one, interval, latency of a row."""

    rows: float
    time_ms: float
    interval_ms: float

    @property
    def latency_ms(self) -> float:
        return self.interval_ms / 2 + self.time_ms


def predict_batches(execution: Execution, batches: MicroBatches, scenario: Scenario) -> Prediction:
    """The latency of a row, the time of a batch and the highest rate in a scenario; `refused` says if there is none."""
    recorded = _recorded(batches)
    modelled = _at_rate(batches.cost, batches.rate_per_s, batches.least_interval_ms) if len(batches) > 1 else None
    known = Prediction(
        scope=execution.scope.text,
        measure="latency",
        setting=scenario.describe(),
        runtime_ms=recorded.latency_ms,
        replayed_ms=(modelled or recorded).latency_ms,
        predicted_ms=None,
        stages=_stages(batches, recorded, None),
        words=execution.words,
    )
    if refusal := _beyond(execution, batches, scenario):
        return known.with_refusal(refusal)
    cost = batches.changed(scenario.ratio("tasks"), scenario.ratio("cores") * scenario.ratio("workers"))
    rate, least_ms = batches.rate_per_s * scenario.ratio(RATE), batches.least_interval_ms
    if TRIGGER in scenario.changes:
        least_ms = batches.interval_ms * scenario.ratio(TRIGGER)
    stream = _stream(batches, cost, rate)
    unsure = tuple(scenario.changes[key].word for key in _SLOTS if scenario.ratio(key) != 1)
    known = replace(known, stream=stream, assumptions=(*_assumed(batches, scenario), *_no_interval(unsure)))
    found = _at_rate(cost, rate, least_ms)
    most = stream.max_per_s or math.inf
    if found is None or rate >= most:
        if stream.is_lower_bound:
            return known.with_refusal(_unknown(batches) or RateBeyondMeasured(rate, most, FARTHEST))
        return known.with_refusal(RateNotSustained(rate, most, batches.query, "batches"))
    ends = [_at_rate(each, rate, least_ms) for each in cost.ends()]
    sides = [math.inf if each is None else each.latency_ms for each in ends]
    likely = _interval(found.latency_ms, sides, cost.mean_sd)
    unknown = _unknown(batches) if max(sides) > NARROW * min(sides) else None
    if unknown or likely[1] > MAX_APART * likely[0]:
        why = unknown or RateNearLimit(rate, most, stream.is_lower_bound)
        return known.with_refusal(why, (min(sides), max(sides) if math.isfinite(max(sides)) else None))
    times = [math.inf if each is None else each.time_ms for each in ends]
    assert stream.batch is not None
    batch = replace(
        stream.batch,
        rows=found.rows,
        time_ms=found.time_ms,
        time_range_ms=None if unsure else _interval(found.time_ms, times, cost.mean_sd),
        interval_ms=found.interval_ms,
        keeps_pace=found.time_ms <= least_ms if least_ms > 0 else None,
    )
    return replace(
        known,
        predicted_ms=found.latency_ms,
        interval_ms=None if unsure else likely,
        stages=_stages(batches, recorded, found),
        stream=replace(stream, batch=batch),
    )


def _recorded(batches: MicroBatches) -> _MeanBatch:
    if not len(batches):
        return _MeanBatch(0.0, 0.0, 0.0)
    time_ms = float(batches.time_ms.mean())
    interval_ms = batches.interval_ms if len(batches) > 1 else time_ms
    return _MeanBatch(float(batches.rows.mean()), time_ms, interval_ms)


def _at_rate(cost: BatchCost, rate_per_s: float, least_ms: float) -> _MeanBatch | None:
    found = cost.at_rate(rate_per_s / 1e3, least_ms)
    return None if found is None else _MeanBatch(rate_per_s / 1e3 * found[0], found[1], found[0])


def _beyond(execution: Execution, batches: MicroBatches, scenario: Scenario) -> Refusal | None:
    """Why a scenario cannot be predicted at all, or None."""
    left_out = execution.planner.excluded_settings(execution.properties)
    for key, value in scenario.changes.items():
        if key not in _MODELLED or key in left_out:
            return NotModelledForStreams(value.word)
    if len(batches) < FEW:
        return TooFewBatches(len(batches), FEW)
    repartitions = [scenario.changes[key].word for key in ("tasks", *_SLOTS) if scenario.ratio(key) != 1]
    if repartitions and (not batches.stages or not batches.slots):
        return BatchStagesDiffer(repartitions[0])
    if repartitions and batches.alike:
        return BatchesAlike(len(batches), float(batches.rows.mean()))
    return None


def _unknown(batches: MicroBatches) -> Refusal | None:
    """Why the time of a row is not known well; None if it is."""
    if batches.alike:
        return BatchesAlike(len(batches), float(batches.rows.mean()))
    low, high = batches.cost.row_range
    return RowTimeUncertain(len(batches), low, high) if high > MAX_APART * low else None


def _stream(batches: MicroBatches, cost: BatchCost, rate: float) -> StreamPrediction:
    """The rates before and after a change, and the recorded batches."""
    recorded = _recorded(batches)
    before, _ = batches.highest_rate(batches.cost)
    most, far = batches.highest_rate(cost)
    low, high = (1e3 / each if each > 0 else math.inf for each in reversed(cost.row_range))
    return StreamPrediction(
        recorded_per_s=batches.rate_per_s,
        rate_per_s=rate,
        recorded_max_per_s=before if math.isfinite(before) else None,
        max_per_s=most if math.isfinite(most) else None,
        max_per_s_interval=None if far else _interval(most, [low, high], 0.0),
        limit=batches.query,
        limit_kind="batches",
        limit_resource="",
        is_lower_bound=far,
        batch=BatchPrediction(batches.query, recorded.rows, recorded.time_ms, recorded.interval_ms),
    )


def _assumed(batches: MicroBatches, scenario: Scenario) -> Iterator[Assumption]:
    if scenario.ratio(RATE) != 1:
        yield RecordsAlike()
    yield StateKept()
    yield BatchesUnlimited()
    if batches.falls_behind:
        yield RateProcessed()
    if any(scenario.ratio(key) != 1 for key in ("tasks", *_SLOTS)):
        yield RowsEvenOverTasks()
    if scenario.ratio("tasks") != 1 and batches.repartitioned is not None:
        yield batches.repartitioned
    if batches.others:
        yield OtherStreamsKept(batches.others)


def _no_interval(unsure: tuple[str, ...]) -> tuple[Assumption, ...]:
    return (NoInterval(unsure),) if unsure else ()


def _interval(value: float, ends: list[float], sd: float) -> tuple[float, float]:
    """The 90 % interval of a value from its ends under other costs of a row, the standard error of the mean batch, and
    the difference of two runs."""
    width = Z90 * math.sqrt(sd**2 + 2 * REPETITION_SD**2)
    low, high = (abs(math.log(each / value)) if 0 < each < math.inf else math.inf for each in (min(ends), max(ends)))
    return value * math.exp(-math.hypot(width, low)), value * math.exp(math.hypot(width, high))


def _stages(batches: MicroBatches, recorded: _MeanBatch, found: _MeanBatch | None) -> tuple[StagePrediction, ...]:
    """The parts of a row's latency: the wait until its batch begins, and the parts of the batch."""
    if not len(batches):
        return ()
    parts = dict(batches.parts_ms)
    rest_ms = recorded.time_ms - sum(parts.values())
    if rest_ms > 0:
        parts["rest"] = rest_ms
    more_ms = 0.0 if found is None else found.time_ms - recorded.time_ms
    wait_ms = None if found is None else found.interval_ms / 2
    stages = [StagePrediction(WAIT, "until the batch begins", recorded.interval_ms / 2, wait_ms)]
    for name, ms in parts.items():
        after_ms = max(ms + (more_ms if name == batches.main else 0.0), 0.0)
        stages.append(StagePrediction(name, "", ms, None if found is None else after_ms))
    return tuple(stages)
