"""The parts that groups add to a finding, and one finding of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crystalperf.query.answers.values import Basis, Finding
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.wording import Terms
from crystalperf.query.model.amounts import counted, lasting

SKEW = 2.0
"""A group is skewed where its longest unit takes this many times the median."""

MORE = 1.5
"""What explains a straggler, or marks a slow host, is this many times what is usual."""

LITTLE_BYTES = 1 << 20
"""A unit that reads less has nothing worth sharing out."""

ON_LANES = ("idle slots", "short of CPUs")
"""Advisor whose advice is about lanes."""

SEE = "record samples to see what it did"
"""What to do about a unit of which nothing more is known."""

NAMED = 2
"""Groups of one finding that are named, those of the largest costs …"""

NAMED_SHARE = 0.25
"""… from this share of the largest on …"""

NEXT_ADVICE = 0.25
"""… and its second advice is told from this share of its cost."""


@dataclass(frozen=True)
class Part:
    """What one group adds to a finding.

    `kind` says of which finding it is a part; told of several groups, `many` comes before them, with their number.
    """

    rule: str
    kind: str
    cost_ms: float
    group: str
    what: str
    basis: Basis
    advice: str
    many: str


def added_up(terms: Terms, parts: Sequence[Part]) -> list[Finding]:
    """One finding for the parts of a kind, whose cost is their sum: groups are on the path at different times."""
    kinds: dict[tuple[str, str, Basis], list[Part]] = {}
    for each in parts:
        kinds.setdefault((each.rule, each.kind, each.basis), []).append(each)
    return [_together(terms, sorted(each, key=lambda part: -part.cost_ms)) for each in kinds.values()]


def _together(terms: Terms, parts: Sequence[Part]) -> Finding:
    """The finding of parts of one kind, the largest first."""
    first, cost_ms = parts[0], sum(each.cost_ms for each in parts)
    if len(parts) == 1:
        return Finding(first.rule, cost_ms, f"{first.group}: {first.what}", first.basis, first.advice)
    shown = [each for each in parts[:NAMED] if each.cost_ms >= NAMED_SHARE * first.cost_ms]
    named = "; ".join(f"{each.group}: {each.what} ({lasting(each.cost_ms)})" for each in shown)
    rest = len(parts) - len(shown)
    more = f"; and {counted(rest, 'other')}" if rest > 0 else ""
    advices: dict[str, list[Part]] = {}
    for each in parts:
        advices.setdefault(each.advice, []).append(each)
    costs = {each: sum(part.cost_ms for part in of) for each, of in advices.items()}
    advice, *others = sorted(costs, key=lambda each: -costs[each])
    if others and costs[others[0]] >= NEXT_ADVICE * cost_ms:
        advice += f"; for {advices[others[0]][0].group.split()[0]}: {others[0]}"
    what = f"{counted(len(parts), terms.words.group)} {first.many}: {named}{more}"
    return Finding(first.rule, cost_ms, what, first.basis, advice)


def on_a_device(terms: Terms, found: Sequence[Finding], unmodelled: str | None) -> list[Finding]:
    """Findings as they are; where a device computed that is not modelled, advice on lanes says so."""
    if unmodelled is None:
        return list(found)
    words = terms.words
    caution = f" (the {unmodelled} is not modelled: {words.units} that wait for it gain nothing by more {words.lanes})"
    return [replace(each, advice=each.advice + caution) if each.rule in ON_LANES else each for each in found]


def usual_unit_ms(detail: Detail) -> float:
    """What a unit takes; where most units have nothing to read, one of those that have."""
    return detail.siblings.loaded_ms if detail.with_data < detail.facts.units else detail.facts.median_ms


def group_name(detail: Detail) -> str:
    return f"{detail.facts.id} {detail.facts.name}"
