"""Ranking of recommendations: the candidates (query.advise.candidates) that save time, the most important first.

The saving of a change is its prediction, or at most the cost of the finding that it addresses; of such a bound, half
counts.  Changes that a failed or unmeasured run needs first rank above all.  The order of the others (`ordered`):

1. changes of the program, then of settings, then those that need machines or whose cause has yet to be found; a
   setting that saves OUTWEIGHS times as much as every change of the program comes before them;
2. in each of these classes, the largest saving first; of a guess, half counts.

Three kinds come after all others, in this order: a change that may make the run longer, by its range; a small saving,
of less than MINOR of the runtime or MINOR_OF_LARGEST of the largest; the start, which every run has.  Less memory,
which shortens nothing, comes after them; recording samples is last, because it does not shorten the run by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crystalperf.query.advise.usual_what_ifs import NOTICEABLE, happens_once
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Debug, Header, Prediction, WhatIf
from crystalperf.query.results.recommendations import (
    BOUND_WEIGHT,
    Cost,
    FasterDevice,
    FollowAdvice,
    LessMemory,
    Price,
    RaiseParallelism,
    Recommendation,
    RecordSamples,
    Saving,
)

if TYPE_CHECKING:
    from crystalperf.query.results.recommendations import Candidate

MIN_MS = 1000.0
"""A saving of less than a second is not worth a recommendation, unless the run is an excerpt of a longer one."""

MISSING_SHARE = 0.1
"""Samples are worth recording if time of unknown cause has this share of the critical path."""

MINOR = 0.02
"""A saving of less than this share of the runtime is small."""

MINOR_OF_LARGEST = 0.1
"""A saving of less than this share of the largest is small."""

OUTWEIGHS = 3.0
"""A setting that saves this many times as much as every change of the program comes before them: it takes a line."""

GUESS_WEIGHT = 0.5
"""The weight of a guessed saving."""

_CLASSES: Mapping[Price, int] = {"code": 0, "setting": 1, "machine": 2, "inspect": 2, "record": 3}

Predict = Callable[[str], Prediction | WhatIf | None]
"""A what-if, KEY=VALUE → its prediction; None if the setting is invalid for the run."""


def ranked(
    candidates: Sequence[Candidate], debug: Debug, header: Header, predict: Predict
) -> tuple[Recommendation, ...]:
    """All recommendations, the best first; empty if nothing shortens the run noticeably.

    If missing data could change the bottleneck, only candidates that come first are recommended.
    """
    least_ms = max(NOTICEABLE * debug.runtime_ms, MIN_MS if happens_once(debug, header) else 0.0)
    first = [each.recommendation for each in candidates if each.comes_first]
    if not debug.conclusive:  # the missing time may be the time that a change would save
        return tuple(first)
    answers: dict[str, Prediction | WhatIf | None] = {}
    rest: list[Recommendation] = []
    covered: set[str] = set()
    if debug.stream is not None and debug.stream.at_limit:
        first += _higher_rates(candidates, predict)
    for each in candidates:
        if each.comes_first or (each.at_most_ms is not None and each.at_most_ms < least_ms):
            continue
        if each.what_if is not None and each.what_if not in answers:
            answers[each.what_if] = predict(each.what_if)
        saving = _saving(each, debug.runtime_ms, answers)
        if saving.expected_ms < (least_ms if saving.ms is not None else BOUND_WEIGHT * least_ms):
            continue
        found = replace(each.recommendation, saving=saving)
        rest.append(replace(found, cost=_cost(found, each.what_if, debug, header)))
        covered |= each.covers
    rest = [each for each in rest if each.because not in covered]
    best = _distinct([*first, *ordered(rest, debug.runtime_ms), *_cheaper(candidates, debug, predict)])
    if _worth_recording(debug, header):
        best.append(_record_samples(header))
    return tuple(best)


def ordered(found: Sequence[Recommendation], runtime_ms: float) -> list[Recommendation]:
    """Recommendations with their savings, the most important first; see the top of this module."""
    sure = [each.saving.expected_ms for each in found if not each.saving.may_lengthen and not _is_start(each)]
    minor_ms = max(MINOR * runtime_ms, MINOR_OF_LARGEST * max(sure, default=0.0))
    of_code_ms = max((_worth_ms(each) for each in found if each.price == "code"), default=0.0)

    def key(each: Recommendation) -> tuple[bool, bool, bool, int, float]:
        is_minor = each.saving.expected_ms < minor_ms
        outweighs = each.price == "setting" and _worth_ms(each) >= OUTWEIGHS * of_code_ms
        rank = -1 if outweighs else _CLASSES[each.price]
        return _is_start(each), is_minor, each.saving.may_lengthen, rank, -_worth_ms(each)

    return sorted(found, key=key)


def _worth_ms(found: Recommendation) -> float:
    return found.saving.expected_ms * (GUESS_WEIGHT if found.saving.basis == "guessed" else 1.0)


def _is_start(found: Recommendation) -> bool:
    """Whether it is about the start, which every run has."""
    advice = found.finding.advice if isinstance(found, FollowAdvice) else None
    return advice is not None and advice.at_start


def _cost(found: Recommendation, what_if: str | None, debug: Debug, header: Header) -> Cost | None:
    """The cost of a change that needs machines, as if all that the run has at a time were reserved until its end; None
    if it needs none, or if its what-if does not change workers, cores, memory or devices by a factor."""
    key, _, value = (what_if or "").partition("=")
    if found.price != "machine" or not value.endswith("x"):
        return None
    now_s, then_s = (ms / 1e3 for ms in (debug.runtime_ms, debug.runtime_ms - (found.saving.ms or 0.0)))
    if isinstance(found, FasterDevice):
        return Cost("machine", header.workers * now_s, header.workers * then_s, other_machines=True)
    if not happens_once(debug, header):
        return None
    if key in ("workers", "cores") and (slots := _slots(header)):
        return Cost("core", slots * now_s, float(value[:-1]) * slots * then_s)
    change = next(iter(found.settings), None)
    if key == "memory" and change is not None and change.before_bytes and change.after_bytes:
        before, after = (header.workers * size / 2**30 for size in (change.before_bytes, change.after_bytes))
        return Cost("GiB", before * now_s, after * then_s)
    return None


def _slots(header: Header) -> float:
    """The slots of all workers that the run had at a time; 0 if unknown."""
    sizes = header.worker_sizes
    if sizes:
        return header.workers * sum(each.slots * each.workers for each in sizes) / sum(each.workers for each in sizes)
    return float(header.workers * (header.slots_per_worker or 0))


def _cheaper(candidates: Sequence[Candidate], debug: Debug, predict: Predict) -> list[Recommendation]:
    """Changes that free memory and, by their prediction, make the run not noticeably longer."""
    found: list[Recommendation] = []
    for each in candidates:
        if isinstance(each.recommendation, LessMemory):
            answer = None if each.what_if is None else predict(each.what_if)
            longest_ms = (1 + NOTICEABLE) * debug.runtime_ms
            if each.what_if is None or (answer and answer.predicted_ms and answer.predicted_ms <= longest_ms):
                found.append(each.recommendation)
    return found


def _higher_rates(candidates: Sequence[Candidate], predict: Predict) -> list[Recommendation]:
    """The changes that raise the highest rate of a stream at its limit noticeably, the most first."""
    found: list[tuple[float, Recommendation]] = []
    for each in candidates:
        if not isinstance(each.recommendation, RaiseParallelism) or each.what_if is None:
            continue
        answer = predict(each.what_if)
        stream = None if answer is None else answer.stream
        if stream is None or stream.max_per_s is None:
            continue
        before = stream.recorded_max_per_s or stream.recorded_per_s
        if stream.max_per_s < (1 + NOTICEABLE) * before:
            continue
        better = replace(
            each.recommendation,
            rate_per_s=(before, stream.max_per_s),
            rate_range_per_s=stream.max_per_s_interval,
            at_least=stream.is_lower_bound,
            saving=Saving("modelled"),
        )
        found.append((stream.max_per_s, better))
    return [each for _, each in sorted(found, key=lambda one: -one[0])]


def _saving(candidate: Candidate, runtime_ms: float, answers: Mapping[str, Prediction | WhatIf | None]) -> Saving:
    """The saving of a change with its range: from the what-if if it has a prediction, else up to the known bound."""
    if candidate.recommendation.saving.ms is not None:
        return candidate.recommendation.saving  # the framework's own estimate
    answer = None if candidate.what_if is None else answers[candidate.what_if]
    basis, most_ms = candidate.recommendation.saving.basis, candidate.at_most_ms
    if answer is not None and answer.predicted_ms is not None:
        gain_ms = runtime_ms - answer.predicted_ms
        if answer.interval_ms is None:
            return Saving(basis, gain_ms)
        low, high = answer.interval_ms
        return Saving(basis, gain_ms, (runtime_ms - high, runtime_ms - low))
    if answer is not None and answer.bound_ms is not None and answer.bound_ms[0] is not None:
        bound_ms = runtime_ms - answer.bound_ms[0]
        most_ms = bound_ms if most_ms is None else min(most_ms, bound_ms)
    return Saving(basis) if most_ms is None else Saving(basis, None, (0.0, most_ms))


def _distinct(found: Sequence[Recommendation]) -> list[Recommendation]:
    """The recommendations without those that change the same as an earlier one."""
    kept: list[Recommendation] = []
    seen: set[Hashable] = set()
    for each in found:
        if not each.changes & seen:
            kept.append(each)
            seen |= each.changes
    return kept


def _worth_recording(debug: Debug, header: Header) -> bool:
    missing_ms = debug.other_ms.get("unknown", 0.0)
    can = get(header.framework).takes_samples
    return can and not header.has_samples and missing_ms >= MISSING_SHARE * debug.runtime_ms


def _record_samples(header: Header) -> RecordSamples:
    return RecordSamples(price="record", because="samples", saving=Saving("measured"), framework=header.framework_title)
