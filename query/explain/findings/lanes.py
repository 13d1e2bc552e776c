"""Lanes without work, units too short for them, and units that had none of a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.answers.values import Finding
from crystalperf.query.explain.facts import Detail, Neighbours
from crystalperf.query.explain.findings.parts import LITTLE_BYTES, MORE, SKEW, Part, group_name, usual_unit_ms
from crystalperf.query.explain.wording import Terms
from crystalperf.query.frameworks import Vocabulary, either
from crystalperf.query.model.amounts import counted, lasting, part_of
from crystalperf.query.model.capacity import STARVED

HELD_BACK = 0.5
"""Share of a quota's periods in which it was used up, while units waited for a CPU, from which on it is the cause."""

IDLE = 0.2
"""Idle slots are worth a word from this share of a group's slot time."""

STARTING = 0.2
"""So is starting units, from this share of their time …"""


def _waited_ms(detail: Detail) -> float:
    """How much longer than usual the longest unit of a group took without more to read or to compute, in ms."""
    longest, usual_ms = detail.longest, usual_unit_ms(detail)
    if longest.cpu_ms is None or longest.duration_ms <= SKEW * usual_ms:
        return 0.0
    if longest.read_bytes > max(LITTLE_BYTES, MORE * detail.facts.median_bytes):
        return 0.0
    return max(longest.duration_ms - usual_ms - longest.cpu_ms, 0.0)


def idle_slots(terms: Terms, detail: Detail) -> list[Part]:
    """Slots without work while a group was on the path: too few units, or a last wave that is half empty.

    Evidence: slots were free while it ran, whatever else ran then; units that read next to nothing and ended at once
    are none to share its work.  Contradicted where the framework knows that there is nothing to share out, by a
    longest unit that waited and by time that went to starting units: neither divides.
    """
    facts, words = detail.facts, terms.words
    starting = min(facts.starting_ms / facts.unit_ms, 1.0) if facts.unit_ms > 0 else 0.0
    ran_ms = facts.path_ms - _waited_ms(detail)
    path_ms = ran_ms * (1 - starting)
    if facts.slots < 2 or facts.length_ms <= 0 or path_ms <= 0:
        return []
    idle = min(facts.idle_ms / (facts.slots * facts.length_ms), 1.0)
    lanes, busy = f"{facts.slots} {words.lanes}", detail.with_data
    if busy < facts.slots:
        kind, many = "few", f"have fewer {words.units} than {words.lanes}"
        cost = path_ms * min(1 - busy / facts.slots, idle)
        what = f"{counted(facts.units, words.unit)} for {lanes}"
        if busy < facts.units:
            kind, many = "empty", f"have {words.units} without anything to read"
            what = f"{busy} of {counted(facts.units, words.unit)} had something to read, for {lanes}"
    elif idle < IDLE:
        return []
    else:
        kind, many = "last wave", f"leave {words.lanes} idle"
        cost = path_ms * idle
        what = (
            f"{counted(facts.units, words.unit)} on {lanes} ({facts.waves:.1f} waves) leave {100 * idle:.0f} % of the"
            f" {words.lanes}' time idle"
        )
        if were_bound(detail):
            kind, many, cost = "bound", f"have {words.lanes} idle beside their data", ran_ms * idle
            what += (
                f": {words.units} waited for the {words.workers} that have their data{on_one(words, detail, ', and')}"
            )
        elif were_free(detail):
            kind = "free"
            what += f", more than after their last {words.unit}: {words.lanes} were free while {words.units} waited"
        elif is_uneven(detail):
            what += f"; the {words.unit} that read most read {facts.skew_bytes:.1f} times the median"
    advice = idle_advice(terms.words, detail) if terms.rules.idle is None else terms.rules.idle(detail)
    if advice is None or cost <= 0:
        return []
    return [Part("idle slots", kind, cost, group_name(detail), what, "modelled", advice, many)]


def idle_advice(words: Vocabulary, detail: Detail) -> str:
    """What to do about lanes that a group left idle, in any framework."""
    units = words.units
    if detail.with_data < detail.facts.slots:
        return f"more, smaller {units} would use the idle {words.lanes}"
    if were_bound(detail):
        return f"let {units} go to free {words.lanes}, or spread their data over all {words.workers}"
    if were_free(detail):
        return f"look at what kept waiting {units} from free {words.lanes}"
    if is_uneven(detail):
        return f"spread what is read more evenly over the {units}"
    return f"smaller {units} even out the last wave"


def were_free(detail: Detail) -> bool:
    """Whether lanes were idle while units of a group waited: a last wave leaves none idle for longer than its longest
    unit."""
    facts = detail.facts
    return facts.idle_ms > facts.slots * facts.longest_ms


def on_one(words: Vocabulary, detail: Detail, before: str) -> str:
    """How many of a group's units ran on one worker, where most did; else nothing."""
    most, units = detail.on_busiest, detail.facts.units
    return f"{before} {most} of {units} {words.units} ran on one {words.worker}" if most > units / 2 else ""


def were_bound(detail: Detail) -> bool:
    """Whether lanes were idle while units of a group waited for the workers that have their data."""
    return were_free(detail) and detail.at_home > detail.facts.units / 2


def is_uneven(detail: Detail) -> bool:
    """Whether one unit of a group reads clearly more than most."""
    skew = detail.facts.skew_bytes
    return skew is not None and skew > MORE


def starting_units(terms: Terms, detail: Detail) -> list[Part]:
    """Units so short that handing them out takes a good part of their time.

    Evidence: that share of their time was measured.  Contradicted by no more units than slots, of which each is handed
    out once, and where it was the start of few units, such as the first of their workers, that took so long.
    """
    facts, words = detail.facts, terms.words
    share = facts.starting_ms / facts.unit_ms if facts.unit_ms > 0 else 0.0
    if share < STARTING or detail.median_starting < STARTING or facts.units <= facts.slots:
        return []
    what = f"{100 * share:.0f} % of the time of its {facts.units} {words.units} went to scheduling and unpacking them"
    if facts.queued_ms:
        what += f" ({lasting(facts.queued_ms)} of it to scheduling)"
    advice = terms.advice("starting units", f"fewer, larger {words.units}")
    many = f"have {words.units} so short that starting them takes long"
    return [Part("starting units", "", facts.path_ms * share, group_name(detail), what, "measured", advice, many)]


def short_of_cpus(
    terms: Terms,
    details: Sequence[Detail],
    neighbours: Sequence[Neighbours],
    cores_per_slot: float,
    throttled: Mapping[str, float] | None = None,
) -> list[Finding]:
    """Units that could have run and had no CPU: for other programs on the machine, a quota, or too many slots.

    `cores_per_slot` is the most that workers were seen to use, inf where they were at no limit; `throttled` is, by
    group, in which share of the quota's periods meanwhile their container had used it up, where that was measured.  A
    unit for which another process computes has no CPU itself.
    """
    mine = [each for each in details if each.ready_ms > 0 and not terms.rules.delegates(each.what)]
    ready_ms = sum(each.ready_ms for each in mine)
    cpu_ms = sum(each.facts.resource_ms[CPU] for each in mine)
    if cpu_ms < STARVED * (cpu_ms - ready_ms) or not ready_ms:
        return []
    words = terms.words
    cost = sum(each.facts.path_ms * each.ready_ms / each.facts.unit_ms for each in mine)
    what = f"{words.units} had no CPU for {part_of(ready_ms, cpu_ms)} in which they could have computed"
    held_back = sum(each.ready_ms * (throttled or {}).get(each.facts.id, 0.0) for each in mine) / ready_ms
    if held_back >= HELD_BACK:  # whatever else was on the machine, this is what held them back
        share = f"{100 * held_back:.0f} %"
        what += f"; meanwhile containers of {words.workers} used up their CPU quota in {share} of its periods"
        return [Finding("short of CPUs", cost, what, "measured", f"a larger CPU limit for each {words.worker}")]
    causes = []  # what was seen, and what helps against it
    if np.isfinite(cores_per_slot):
        limit = f"{words.workers} got at most {cores_per_slot:.2f} cores a {words.lane}"
        causes.append((limit, f"a larger CPU limit for each {words.worker}"))
    crowds = {each.group: each for each in neighbours}
    crowded = [(each.ready_ms * crowd.crowded, crowd) for each in mine if (crowd := crowds.get(each.facts.id))]
    crowded_ms = sum(ms for ms, _ in crowded)
    if crowded_ms >= ready_ms / 2:
        others = sum(ms * crowd.others_cores for ms, crowd in crowded) / crowded_ms
        processors = sum(ms * crowd.processors for ms, crowd in crowded) / crowded_ms
        # A container sees its whole machine, and not whose the other containers on it are.
        beside = f"other programs or containers used {others:.1f} of their machines' {processors:.0f} cores"
        causes.append((beside, "machines that nothing else runs on"))
    what += f"; {' while '.join(seen for seen, _ in causes)}" if causes else ""
    fewer = f"fewer {words.lanes}" if causes else f"fewer {words.lanes} than cores"
    return [Finding("short of CPUs", cost, what, "measured", either([*(helps for _, helps in causes), fewer]))]
