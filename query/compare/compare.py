"""Runs of a job against each other: whether the difference is noise, and the parts that sum to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import SettingError
from crystalperf.query.compare.accounts import Account
from crystalperf.query.compare.causes import CauseEffect, Sides, effects, same_plan, totals
from crystalperf.query.compare.functions import SampledFunctions, function_changes
from crystalperf.query.compare.matching import Pair, matched
from crystalperf.query.compare.noise import Measure, difference, kind_of
from crystalperf.query.compare.parts import part_of
from crystalperf.query.compare.pooling import pooled, typical
from crystalperf.query.compare.reading import Accounts, accounts, checked, of_one_kind
from crystalperf.query.compare.reading import Given as Given
from crystalperf.query.compare.settings import setting_changes
from crystalperf.query.compare.steps import StepSides, compared_steps, pooled_step, step_parts
from crystalperf.query.compare.streams import (
    compared_streams,
    pooled_stream,
    stream_doubts,
    stream_parts,
    stream_settings,
)
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.comparison import (
    INCOMPLETE,
    ChangedSlots,
    Collected,
    ComparedRun,
    ComparedStage,
    Comparison,
    ComputeWait,
    DifferentJobs,
    NotCompared,
    NotSucceeded,
    OneSideSampled,
    OperatorChange,
    Part,
    PausesLeftOut,
    PredictedChange,
    Side,
    TaskOverhead,
    Unexplained,
)
from crystalperf.query.results.refusals import RefusedError

if TYPE_CHECKING:
    from crystalperf.query.diagnose.comparer import Comparer, StreamAccount

SMALL = 0.005
"""Parts below this share of the longer runtime, or a hundredth of the difference, are not named."""

SAME_JOB = 0.3
"""Minimum share of the stages' time in stages with a counterpart for runs to be of the same job."""

PREDICTED = ("workers", "cores", "memory")
"""Settings that logs record, so that the runs before predict the runtime with those of the runs after."""

Recall = Callable[[Given, Sequence[Given], float], PredictedChange | None]
"""The prediction that was made of a run before those after began, which took so long, ms; None if there is none."""


def compared(
    before: Sequence[Given],
    after: Sequence[Given],
    progress: Callable[[str], None] = lambda _: None,
    recall: Recall = lambda *_: None,
) -> Comparison:
    """The comparison of two sides, each of one run or several of the same job.

    `recall` has a prediction that was made before the runs after; without one, it is computed now.  Raises InputError
    if the runs are of different frameworks, or if one is given twice.
    """
    checked(before, after)
    read = of_one_kind([[accounts(each, progress) for each in side] for side in (before, after)])
    progress("matching stages")
    one, other = (pooled([each.stages for each in side]) for side in read)
    times = [[each.runtime_ms for each in side] for side in read]
    first = before[typical(times[0])]
    header = first.run.header()
    comparer = get(header.framework).comparer
    settings = setting_changes(one.properties, other.properties, comparer)
    sides, pairs = Sides(one, other, comparer, settings), matched(one, other)
    change_ms = median(times[1]) - median(times[0])
    least_ms = max(SMALL * max(map(median, times)), 0.01 * abs(change_ms))
    steps, streams = _steps(read, times), _streams(read, times)
    whole = steps is None and streams is None
    operators = _operator_changes(sides) if whole else ()
    if steps is not None:
        parts = with_rest(step_parts(steps, least_ms), change_ms)
    elif streams is not None:
        parts = with_rest(stream_parts(*streams, least_ms), change_ms)
    else:
        parts = _parts(sides, effects(sides, pairs), operators, least_ms)
    progress("predicting the resources of the runs after")
    predicted = None if streams else recall(first, after, other.runtime_ms) or _predicted(first, one, other)
    last = after[typical(times[1])]
    expected_ms = _expected_ms(first, last, one, other, predicted) if whole else None
    return Comparison(
        before=_side(before, times[0], one, read[0]),
        after=_side(after, times[1], other, read[1]),
        difference=difference(times[0], times[1], kind_of(header.framework, _measure(steps, streams))),
        measure=header.measure if streams is None else streams[0].measure or header.measure,
        scope=first.scope,
        step=None if steps is None else compared_steps(steps),
        stream=None if streams is None else compared_streams(*streams),
        parts=_with_prediction(parts, expected_ms, change_ms),
        stages=() if streams else _compared_stages(pairs, comparer),
        settings=(*stream_settings(*streams), *settings) if streams else settings,
        operators=operators,
        predicted=predicted,
        not_compared=(
            *_not_compared((*before, *after), pairs if whole else ()),
            *(stream_doubts(*streams) if streams else ()),
            *_unlike_samples(before, after),
            *(_pauses(before, after) if whole else ()),
        ),
        before_wait_ms={} if streams else one.wait_ms,
        after_wait_ms={} if streams else other.wait_ms,
        words=first.run.execution(first.scope).words,
        functions=function_changes(_functions(read[0]), _functions(read[1])),
    )


def _functions(read: Sequence[Accounts]) -> list[SampledFunctions]:
    return [each.functions for each in read if each.functions is not None]


def _measure(steps: StepSides | None, streams: tuple[StreamAccount, StreamAccount] | None) -> Measure:
    """The measure of the compared times, for their usual spread."""
    if streams is not None:
        return "throughput" if streams[0].measure == "throughput" else "latency"
    return "runtime" if steps is None else "step"


def _steps(read: Sequence[Sequence[Accounts]], times: Sequence[Sequence[float]]) -> StepSides | None:
    """Both sides' mean steps; None for runs whose stages have tasks that do the same."""
    found = [[each.step for each in side if each.step is not None] for side in read]
    if not all(found):
        return None
    return StepSides(*(pooled_step(side, median(own)) for side, own in zip(found, times, strict=True)))


def _streams(
    read: Sequence[Sequence[Accounts]], times: Sequence[Sequence[float]]
) -> tuple[StreamAccount, StreamAccount] | None:
    """Both sides' streams; None for runs that are not streams."""
    found = [[each.stream for each in side if each.stream is not None] for side in read]
    if not all(found):
        return None
    one, other = (pooled_stream(side, median(own)) for side, own in zip(found, times, strict=True))
    return one, other


def _operator_changes(sides: Sides) -> tuple[OperatorChange, ...]:
    """The operators of which plans of the same name have more or fewer, by query."""
    found = []
    one, other = (_operators_by_name(each, sides.comparer) for each in (sides.before, sides.after))
    for scope in [each for each in one if each in other]:
        for name in sorted({*one[scope], *other[scope]}):
            if one[scope][name] != other[scope][name]:
                found.append(OperatorChange(scope, name, one[scope][name], other[scope][name]))
    return tuple(found)


def _operators_by_name(account: Account, comparer: Comparer) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for scope, operators in account.plans.items():
        counts = found.setdefault(account.scopes.get(scope, scope), Counter())
        counts.update(each for each in operators if each not in comparer.adapters)
    return found


def _parts(
    sides: Sides, found: Sequence[CauseEffect], operators: tuple[OperatorChange, ...], least_ms: float
) -> list[Part]:
    """The parts, without those below `least_ms`, which are part of the unexplained rest."""
    parts = []
    for (cause, subject), of_cause in totals(found).items():
        if cause != "unexplained" and abs(sum(each.ms for each in of_cause)) >= least_ms:
            parts.append(part_of(cause, subject, of_cause, sides, operators))
    return with_rest(parts, sides.after.runtime_ms - sides.before.runtime_ms)


def with_rest(parts: Sequence[Part], change_ms: float) -> list[Part]:
    """The parts, with the unexplained rest of a difference."""
    return [*parts, Unexplained(change_ms - sum(each.ms for each in parts), "measured", ())]


def _ranked(parts: Sequence[Part], change_ms: float) -> tuple[Part, ...]:
    """Those in the direction of the difference first, the largest first; the unexplained rest last."""
    sign = -1.0 if change_ms < 0 else 1.0
    return tuple(sorted(parts, key=lambda each: (isinstance(each, Unexplained), -sign * each.ms)))


def _with_prediction(parts: Sequence[Part], expected_ms: float | None, change_ms: float) -> tuple[Part, ...]:
    """The parts, with effects of fewer or more slots that the account of a stage shows elsewhere.

    A worker with fewer slots often has less CPU, too, for collecting garbage, compiling, and starting tasks.  So other
    time without a measured cause belongs to the slots, as far as a prediction expects it: that of the side with more
    slots for the resources of the other side, so that swapped sides have the opposite parts.
    """
    slots = next((each for each in parts if isinstance(each, ChangedSlots)), None)
    if slots is None or expected_ms is None:
        return _ranked(parts, change_ms)
    gap_ms = expected_ms - slots.ms
    moved, found = 0.0, list[Part]()
    for each in sorted(parts, key=lambda part: part.kind):
        take_ms = 0.0
        if isinstance(each, ComputeWait | TaskOverhead | Collected | Unexplained) and slots.ms * gap_ms > 0:
            take_ms = _within(each.ms, gap_ms - moved)
        moved += take_ms
        if each is not slots and (take_ms != each.ms or isinstance(each, Unexplained)):
            found.append(replace(each, ms=each.ms - take_ms))
    return _ranked([*found, replace(slots, ms=slots.ms + moved)], change_ms)


def _expected_ms(
    first: Given, last: Given, one: Account, other: Account, found: PredictedChange | None
) -> float | None:
    """How much longer the runs after are by their resources, as the side with more slots predicts it."""
    if other.slots <= one.slots:
        return None if found is None or found.predicted_ms is None else found.predicted_ms - one.runtime_ms
    back = _predicted(last, other, one)
    return None if back is None or back.predicted_ms is None else other.runtime_ms - back.predicted_ms


def _within(ms: float, most_ms: float) -> float:
    """The part of a time that is in the same direction as another and not longer; 0 if it is in the other direction."""
    return math.copysign(min(abs(ms), abs(most_ms)), ms) if ms * most_ms > 0 else 0.0


def _predicted(first: Given, before: Account, after: Account) -> PredictedChange | None:
    """The prediction of the typical run before for the resources of those after; None if logs show no difference."""
    words = {inner: word for word, inner in reversed(list(first.run.header().vocabulary.settings.items()))}
    texts = []
    for key in PREDICTED:
        one, other = before.resources.get(key), after.resources.get(key)
        if one and other and one != other:
            texts.append(f"{words.get(key, key)}={other:.0f}{'B' if key == 'memory' else ''}")
    if not texts:
        return None
    try:
        found = first.run.predict(texts, scope=first.scope, path=False)
    except RefusedError as error:
        return PredictedChange(tuple(texts), None, None, after.runtime_ms, (error.refusal,))
    except SettingError:
        return None
    return PredictedChange(tuple(texts), found.predicted_ms, found.interval_ms, after.runtime_ms, found.refused)


def _side(given: Sequence[Given], times_ms: Sequence[float], one: Account, read: Sequence[Accounts]) -> Side:
    runs = []
    for each, time_ms in zip(given, times_ms, strict=True):
        header, outcome = each.run.header(), each.run.debug(each.scope).outcome
        status = "unknown" if outcome is None else outcome.status
        runs.append(ComparedRun(str(each.run.path), each.name, header.name, header.app_id, time_ms, status))
    return Side(
        tuple(runs),
        one.version,
        median(times_ms),
        one.workers,
        one.slots or None,
        one.memory_bytes,
        median(each.stages.input_bytes for each in read),
    )


def _compared_stages(pairs: Sequence[Pair], comparer: Comparer) -> tuple[ComparedStage, ...]:
    found = []
    for one, other in pairs:
        some = one or other
        assert some is not None
        found.append(
            ComparedStage(
                before=one.id if one else None,
                after=other.id if other else None,
                name=some.name,
                before_ms=one.wall_ms if one else 0.0,
                after_ms=other.wall_ms if other else 0.0,
                before_resource_ms=one.resource_ms if one else {},
                after_resource_ms=other.resource_ms if other else {},
                before_tasks=one.tasks if one else 0.0,
                after_tasks=other.tasks if other else 0.0,
                before_bytes=one.read_bytes if one else 0.0,
                after_bytes=other.read_bytes if other else 0.0,
                same_plan=one is not None and other is not None and same_plan(one, other, comparer.adapters),
            )
        )
    return tuple(sorted(found, key=lambda each: -abs(each.after_ms - each.before_ms)))


def _unlike_samples(before: Sequence[Given], after: Sequence[Given]) -> Iterator[NotCompared]:
    sampled = [[each.run.execution(each.scope).has_samples for each in side] for side in (before, after)]
    if (all(sampled[0]) and not any(sampled[1])) or (all(sampled[1]) and not any(sampled[0])):
        yield OneSideSampled(after=sampled[1][0])


def _pauses(before: Sequence[Given], after: Sequence[Given]) -> Iterator[NotCompared]:
    one, other = (median(each.run.execution(each.scope).clock.left_out_ms for each in side) for side in (before, after))
    if max(one, other) > 0:
        yield PausesLeftOut(one, other)


def _not_compared(given: Sequence[Given], pairs: Sequence[Pair]) -> Iterator[NotCompared]:
    cut = False
    for each in given:
        outcome = each.run.debug(each.scope).outcome
        if outcome is not None and outcome.status in INCOMPLETE:
            cut = True
            yield NotSucceeded(each.name, outcome.status)
    whole = sum(each.wall_ms for pair in pairs for each in pair if each)
    both = sum(each.wall_ms for pair in pairs if all(pair) for each in pair if each)
    if whole > 0 and both < SAME_JOB * whole and not cut:  # a log without an end lacks the stages after it
        yield DifferentJobs(both / whole)
