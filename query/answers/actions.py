"""Three things to do about a run: what could be changed (query.explain.chances), and what each brings.

What a change brings is what predict says of it, or at most the cost of the finding that it answers.  They are ranked by
that, of which a bound counts half, and so does what has to be bought; what keeps a run from its end comes before all.
To record samples comes last, for it shortens nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from crystalperf.query.answers.values import Action, Debug, Header, Prediction, WhatIf
from crystalperf.query.answers.whatifs import NOTICEABLE, happens_once
from crystalperf.query.frameworks.known import get

if TYPE_CHECKING:
    from crystalperf.query.explain.chances import Chance

MOST = 3

LEAST_MS = 1000.0
"""So is what brings less than a second."""

UNSEEN_SHARE = 0.1
"""Samples are worth recording where time of unknown cause takes this share of the path."""

_BOUND = 0.5
_BOUGHT = 0.5

Asked = Callable[[str], Prediction | WhatIf | None]
"""A what-if, KEY=VALUE → its answer; None where the question makes no sense for the run."""


def actions(chances: Sequence[Chance], debug: Debug, header: Header, ask: Asked) -> tuple[Action, ...]:
    """At most three, the most worthwhile first; none where nothing shortens the run noticeably.

    Where what the log lacks could change what holds the run up, only what keeps the run from its end is told.
    """
    least_ms = max(NOTICEABLE * debug.runtime_ms, LEAST_MS if happens_once(debug, header) else 0.0)
    first = [_action(each, None, None) for each in chances if each.comes_first]
    if not debug.conclusive:  # what is missing may be the very time that a change would save
        return tuple(first[:MOST])
    answers: dict[str, Prediction | WhatIf | None] = {}
    ranked: list[tuple[float, Action]] = []
    for each in chances:
        if each.comes_first or (each.at_most_ms is not None and each.at_most_ms < least_ms):
            continue
        if each.asks is not None and each.asks not in answers:
            answers[each.asks] = ask(each.asks)
        gain_ms, likely_ms = _gain(each, debug.runtime_ms, answers)
        worth_ms = gain_ms if gain_ms is not None else _BOUND * likely_ms[1] if likely_ms is not None else 0.0
        if worth_ms < (least_ms if gain_ms is not None else _BOUND * least_ms):
            continue
        ranked.append((worth_ms * (_BOUGHT if each.kind == "machine" else 1.0), _action(each, gain_ms, likely_ms)))
    ranked.sort(key=lambda each: -each[0])
    found = _distinct([*first, *(action for _, action in ranked)])[:MOST]
    if len(found) < MOST and _worth_recording(debug, header):
        found.append(_record(header))
    return tuple(found)


def _gain(
    chance: Chance, runtime_ms: float, answers: Mapping[str, Prediction | WhatIf | None]
) -> tuple[float | None, tuple[float, float] | None]:
    """What a change brings, and within what: by the what-if where it is answered, else up to what is known at most."""
    answer = None if chance.asks is None else answers[chance.asks]
    most_ms = chance.at_most_ms
    if answer is not None and answer.predicted_ms is not None:
        gain_ms = runtime_ms - answer.predicted_ms
        if answer.interval_ms is None:
            return gain_ms, None
        low, high = answer.interval_ms
        return gain_ms, (runtime_ms - high, runtime_ms - low)
    if answer is not None and answer.bound_ms is not None and answer.bound_ms[0] is not None:
        bound_ms = runtime_ms - answer.bound_ms[0]
        most_ms = bound_ms if most_ms is None else min(most_ms, bound_ms)
    return None, None if most_ms is None else (0.0, most_ms)


def _action(chance: Chance, gain_ms: float | None, likely_ms: tuple[float, float] | None) -> Action:
    return Action(
        kind=chance.kind,
        what=chance.what,
        gain_ms=gain_ms,
        gain_ms_range=likely_ms,
        basis=chance.basis,
        why=chance.why,
        lines=chance.lines,
    )


def _distinct(found: Sequence[Action]) -> list[Action]:
    """Without those that change the same thing as one before them: the same lines, setting or sentence."""
    kept: list[Action] = []
    seen: set[str] = set()
    for each in found:
        changed = {each.what, *(line.rpartition("=")[0] or line for line in each.lines)}
        if not changed & seen:
            kept.append(each)
            seen |= changed
    return kept


def _worth_recording(debug: Debug, header: Header) -> bool:
    unseen_ms = debug.other_ms.get("unknown", 0.0)
    can = get(header.framework).takes_samples
    return can and not header.has_samples and unseen_ms >= UNSEEN_SHARE * debug.runtime_ms


def _record(header: Header) -> Action:
    what = f"Record stack samples with the next run: {header.framework_title} does not measure what its time went to"
    return Action("record", what, None, None, "measured", "samples")
