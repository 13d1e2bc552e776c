"""Ranking of recommendations: the candidates (query.advise.candidates) that save time, the most important first.

The saving of a change is its prediction, or at most the cost of the finding that it addresses.  A saving that is only
an upper bound counts half, and so does one with more workers or memory; one with other machines counts a quarter,
because changes of the program and its settings are free.  Changes that a failed or unmeasured run needs first rank
above all.  The start, which every run has, ranks after these; then less memory, which shortens nothing; recording
samples is last, because it does not shorten the run by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crystalperf.query.advise.usual_what_ifs import NOTICEABLE, happens_once
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Debug, Header, Prediction, WhatIf
from crystalperf.query.results.findings import AtStart
from crystalperf.query.results.recommendations import (
    FollowAdvice,
    LessMemory,
    MoreMemory,
    MoreWorkers,
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

_BOUND = 0.5
_LARGER = 0.5
_BOUGHT = 0.25

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
    rest: list[tuple[bool, float, Recommendation]] = []
    if debug.stream is not None and debug.stream.at_limit:
        first += _higher_rates(candidates, predict)
    for each in candidates:
        if each.comes_first or (each.at_most_ms is not None and each.at_most_ms < least_ms):
            continue
        if each.what_if is not None and each.what_if not in answers:
            answers[each.what_if] = predict(each.what_if)
        saving = _saving(each, debug.runtime_ms, answers)
        worth_ms = saving.ms if saving.ms is not None else _BOUND * saving.range_ms[1] if saving.range_ms else 0.0
        if worth_ms < (least_ms if saving.ms is not None else _BOUND * least_ms):
            continue
        found = replace(each.recommendation, saving=saving)
        rest.append((_is_start(found), -_weight(found) * worth_ms, found))
    rest.sort(key=lambda each: each[:2])
    best = _distinct([*first, *(found for _, _, found in rest), *_cheaper(candidates, debug, predict)])
    if _worth_recording(debug, header):
        best.append(_record_samples(header))
    return tuple(best)


def _is_start(found: Recommendation) -> bool:
    """Whether it is about the start, which every run has."""
    return isinstance(found, FollowAdvice) and isinstance(found.finding, AtStart)


def _weight(found: Recommendation) -> float:
    """The weight of a saving by what it costs: changes of the program and of settings are free."""
    if found.price == "machine":
        return _BOUGHT
    return _LARGER if isinstance(found, MoreMemory | MoreWorkers) else 1.0


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
