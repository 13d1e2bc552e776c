"""Three recommendations for a run: what could be changed (query.advise.candidates), ranked by what each saves.

What a change saves is what predict says of it, or at most the cost of the finding that it answers.  They are ranked by
that, of which a bound counts half, and so does what has to be bought; what keeps a run from its end comes before all.
To record samples comes last, for it shortens nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crystalperf.query.advise.usual_what_ifs import NOTICEABLE, happens_once
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import Debug, Header, Prediction, WhatIf
from crystalperf.query.results.recommendations import Recommendation, RecordSamples, Saving

if TYPE_CHECKING:
    from crystalperf.query.results.recommendations import Candidate

MOST = 3

LEAST_MS = 1000.0
"""So is what saves less than a second."""

UNSEEN_SHARE = 0.1
"""Samples are worth recording where time of unknown cause takes this share of the path."""

_BOUND = 0.5
_BOUGHT = 0.5

Asked = Callable[[str], Prediction | WhatIf | None]
"""A what-if, KEY=VALUE → its answer; None where the question makes no sense for the run."""


def ranked(candidates: Sequence[Candidate], debug: Debug, header: Header, ask: Asked) -> tuple[Recommendation, ...]:
    """At most three, the most worthwhile first; none where nothing shortens the run noticeably.

    Where what the log lacks could change the bottleneck, only what keeps the run from its end is recommended.
    """
    least_ms = max(NOTICEABLE * debug.runtime_ms, LEAST_MS if happens_once(debug, header) else 0.0)
    first = [each.recommendation for each in candidates if each.comes_first]
    if not debug.conclusive:  # what is missing may be the very time that a change would save
        return tuple(first[:MOST])
    answers: dict[str, Prediction | WhatIf | None] = {}
    rest: list[tuple[float, Recommendation]] = []
    for each in candidates:
        if each.comes_first or (each.at_most_ms is not None and each.at_most_ms < least_ms):
            continue
        if each.what_if is not None and each.what_if not in answers:
            answers[each.what_if] = ask(each.what_if)
        saving = _saving(each, debug.runtime_ms, answers)
        worth_ms = saving.ms if saving.ms is not None else _BOUND * saving.range_ms[1] if saving.range_ms else 0.0
        if worth_ms < (least_ms if saving.ms is not None else _BOUND * least_ms):
            continue
        found = replace(each.recommendation, saving=saving)
        rest.append((worth_ms * (_BOUGHT if found.price == "machine" else 1.0), found))
    rest.sort(key=lambda each: -each[0])
    best = _distinct([*first, *(found for _, found in rest)])[:MOST]
    if len(best) < MOST and _worth_recording(debug, header):
        best.append(_record_samples(header))
    return tuple(best)


def _saving(candidate: Candidate, runtime_ms: float, answers: Mapping[str, Prediction | WhatIf | None]) -> Saving:
    """What a change saves, and within what: by the what-if where it is answered, else up to what is known at most."""
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
    """Without those that change the same thing as one before them."""
    kept: list[Recommendation] = []
    seen: set[Hashable] = set()
    for each in found:
        if not each.changes & seen:
            kept.append(each)
            seen |= each.changes
    return kept


def _worth_recording(debug: Debug, header: Header) -> bool:
    unseen_ms = debug.other_ms.get("unknown", 0.0)
    can = get(header.framework).takes_samples
    return can and not header.has_samples and unseen_ms >= UNSEEN_SHARE * debug.runtime_ms


def _record_samples(header: Header) -> RecordSamples:
    return RecordSamples(price="record", because="samples", saving=Saving("measured"), framework=header.framework_title)
