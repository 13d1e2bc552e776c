"""What cost time on the critical path, and what to try: one rule a function, each `(terms, facts) → findings`.

A cost is the most that the finding can have cost: the time it held the critical path, or what would be left of it at
best.  `measured` costs are times of the log; `modelled` ones assume how the work would spread; `label` ones rest on
what the index says of the code.  The rules hold of any framework and are told in its words (wording.Terms); what to
try is the framework's where it knows better.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from indexes.resources import CPU, DISK, NET, OTHER
from query.answers.values import Cause, Finding
from query.explain.facts import Detail, HostTime, Longest, Neighbours
from query.explain.wording import Terms, counted
from query.frameworks import plural
from query.model.capacity import STARVED

SKEW = 2.0
"""A group is skewed where its longest unit takes this many times the median."""

FEWEST_FOR_SKEW = 3

MORE = 1.5
"""What explains a straggler, or marks a slow host, is this many times what is usual."""

IDLE = 0.2
"""Idle slots are worth a word from this share of a group's slot time."""

STARTING = 0.2
"""So is starting units, from this share of their time …"""

GC = 0.1
"""… and garbage collection."""

LITTLE_BYTES = 1 << 20
"""A unit that reads less has nothing worth sharing out."""

SLOW_BPS = 1e6
"""A device that moves less than this while it is used is used for something else than moving data."""

_MIB = 2**20


def coordinator(
    terms: Terms, alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float], first_worker_ms: float | None
) -> list[Finding]:
    """What held the run up while no unit ran."""
    words = terms.words
    workers = words.workers
    since = "" if not first_worker_ms else f"; the first was ready after {first_worker_ms / 1000:.1f} s"
    unknown = other_ms.get("coordinator", 0.0)
    unseen = f" ({unknown / 1000:.1f} s of it waiting or unknown)" if unknown > 0.1 * alone_ms["coordinator"] else ""
    none = " and ".join(f"no {each}" for each in (words.scope, *words.scopes[1:]))
    return [
        Finding(
            "no worker",
            alone_ms["no worker"],
            f"waiting for {workers}: none was there to run anything{since}",
            "measured",
            terms.advice(
                "no worker", "let the cluster manager start them sooner, or keep an application for several runs"
            ),
        ),
        Finding(
            "no scope",
            alone_ms["no scope"],
            f"{none} was under way: the program itself, its start and its end",
            "measured",
            f"look at what the program does between its {plural(words.scope)}; {workers} do not shorten this",
        ),
        Finding(
            "coordinator",
            alone_ms["coordinator"],
            f"the {words.coordinator} alone: planning, listing files, submitting, collecting, while no {words.unit}"
            f" ran{unseen}",
            "measured",
            f"fewer and larger {plural(words.scope)}, fewer files; more or faster {workers} do not shorten this",
        ),
    ]


def straggler(terms: Terms, detail: Detail, hosts: Sequence[HostTime]) -> list[Finding]:
    """A group whose longest unit takes much longer than most, and why: data, node or a resource."""
    facts, unit = detail.facts, terms.words.unit
    if facts.units < FEWEST_FOR_SKEW or facts.longest_ms <= SKEW * facts.median_ms:
        return []
    cost = min(facts.longest_ms - facts.median_ms, facts.path_ms)
    times = f"{facts.longest_ms / facts.median_ms:.1f} times the median"
    if facts.median_ms <= 0:
        times = "far more than the median"
    why, advice = _why(terms, detail, hosts)
    what = f"{facts.id} {facts.name}: its longest {unit} ({unit} {detail.longest.unit_id}) takes {times}: {why}"
    return [Finding("straggler", cost, what, "measured", advice)]


def _why(terms: Terms, detail: Detail, hosts: Sequence[HostTime]) -> tuple[str, str]:
    facts, longest, words = detail.facts, detail.longest, terms.words
    excess = facts.longest_ms - facts.median_ms
    slower = facts.longest_ms / facts.median_ms if facts.median_ms > 0 else np.inf
    if longest.read_bytes > LITTLE_BYTES and longest.read_bytes > max(MORE, slower / 2) * facts.median_bytes:
        more = longest.read_bytes / facts.median_bytes if facts.median_bytes > 0 else np.inf
        times = f"{more:.1f} times the median" if np.isfinite(more) else "most read nothing"
        advice = f"spread what is read more evenly over the {words.units}"
        if terms.rules.skew is not None:
            advice = terms.rules.skew(detail)
        return f"it read {longest.read_bytes / _MIB:.0f} MiB, {times}", advice
    if longest.gc_ms > excess / 2:
        return (
            f"its {words.worker} collected garbage for {longest.gc_ms / 1000:.1f} s",
            f"more memory per {words.worker}",
        )
    for host in hosts:
        if host.group == facts.id and host.host == longest.host and _is_slow(host):
            device = terms.device(host.resource)
            return (
                f"{words.units} on {host.host} spend {host.median_ms / max(host.others_ms, 1e-9):.1f} times as"
                f" long on {device} as on other nodes",
                f"look at {host.host}: its {device} is slower than its peers'",
            )
    if longest.nth == 1:
        return (
            f"it was the first on {words.worker} {longest.worker_id}, which had yet to load and compile code",
            f"keep {words.workers} alive between runs; it is not the data",
        )
    more_of = _most_excess(longest, detail.median_resource_ms)
    if more_of is not None:
        name, extra = more_of
        return (
            f"not for its data; {extra / 1000:.1f} s of it more on {terms.device(name)} than usual",
            "compare the node it ran on with its peers" if name != CPU else "look at what its rows make it compute",
        )
    return "for no reason that the log tells", "record samples to see what it did"


def _most_excess(longest: Longest, usual: Mapping[str, float]) -> tuple[str, float] | None:
    extra = {name: ms - usual[name] for name, ms in longest.resource_ms.items()}
    name = max(extra, key=lambda each: extra[each])
    return None if name == OTHER or extra[name] <= 0 else (name, extra[name])


def _is_slow(host: HostTime) -> bool:
    """Whether units on a host spend clearly more time on a resource, though they read no more than the others do."""
    data = host.median_bytes / host.others_bytes if host.others_bytes > 0 else 1.0
    return (
        host.resource != OTHER
        and host.median_ms > MORE * host.others_ms * max(data, 1.0)
        and host.median_ms - host.others_ms > 0.2 * host.others_duration_ms
    )


def slow_hosts(terms: Terms, hosts: Sequence[HostTime], details: Sequence[Detail]) -> list[Finding]:
    """A host on which a resource is slower than on its peers, in most groups that use it: a malfunction (§4.2)."""
    by_id = {detail.facts.id: detail.facts for detail in details}
    used: dict[tuple[str, str], list[HostTime]] = {}
    for each in hosts:
        if each.others_ms > 0.1 * each.others_duration_ms or _is_slow(each):
            used.setdefault((each.host, each.resource), []).append(each)
    found = []
    for (host, resource), rows in used.items():
        slow = [each for each in rows if _is_slow(each)]
        weight = sum(each.median_ms * each.units for each in slow)
        if not slow or weight < 0.5 * sum(each.median_ms * each.units for each in rows):
            continue
        cost = 0.0
        for each in slow:
            facts = by_id.get(each.group)
            if facts is not None and facts.median_ms > 0:
                share = (each.median_ms - each.others_ms) / (each.others_duration_ms + each.median_ms - each.others_ms)
                cost += facts.path_ms * share
        times = sum(each.median_ms for each in slow) / max(sum(each.others_ms for each in slow), 1e-9)
        device = terms.device(resource)
        found.append(
            Finding(
                "slow hosts",
                cost,
                f"{terms.words.units} on {host} spend {times:.1f} times as long on {device} as on its peers, in"
                f" {counted(len(slow), terms.words.group)}",
                "label",
                f"check {host}: a slow or crowded {device}, other jobs, a throttled instance",
            )
        )
    return found


def idle_slots(terms: Terms, detail: Detail) -> list[Finding]:
    """Slots without work while a group was on the path: too few units, or a last wave that is half empty."""
    facts, words = detail.facts, terms.words
    if facts.slots < 2 or facts.length_ms <= 0 or facts.path_ms <= 0:
        return []
    units, lanes = counted(facts.units, words.unit), f"{facts.slots} {words.lanes}"
    if facts.units < facts.slots:
        cost = facts.path_ms * (1 - facts.units / facts.slots)
        what = f"{facts.id} {facts.name}: {units} for {lanes}"
    else:
        idle = facts.idle_ms / (facts.slots * facts.length_ms)
        if idle < IDLE:
            return []
        cost = facts.path_ms * idle
        what = (
            f"{facts.id} {facts.name}: {units} on {lanes} ({facts.waves:.1f} waves) leave {idle:.0%} of the"
            f" {words.lanes}' time idle"
        )
        if is_uneven(detail):
            what += f"; the {words.unit} that read most read {facts.skew_bytes:.1f} times the median"
    advice = _idle_advice(terms, detail) if terms.rules.idle is None else terms.rules.idle(detail)
    return [] if advice is None else [Finding("idle slots", cost, what, "modelled", advice)]


def _idle_advice(terms: Terms, detail: Detail) -> str:
    """What holds of any framework."""
    units = terms.words.units
    if detail.facts.units < detail.facts.slots:
        return f"more, smaller {units} would use the idle {terms.words.lanes}"
    if is_uneven(detail):
        return f"spread what is read more evenly over the {units}"
    return f"smaller {units} even out the last wave"


def is_uneven(detail: Detail) -> bool:
    """Whether one unit of a group reads clearly more than most."""
    skew = detail.facts.skew_bytes
    return skew is not None and skew > MORE


def starting_units(terms: Terms, detail: Detail) -> list[Finding]:
    """Units so short that handing them out takes a good part of their time."""
    facts, words = detail.facts, terms.words
    share = facts.starting_ms / facts.unit_ms if facts.unit_ms > 0 else 0.0
    if share < STARTING or facts.units <= facts.slots:
        return []
    what = (
        f"{facts.id} {facts.name}: {share:.0%} of its {words.units}' time went to scheduling and unpacking them"
        f" ({facts.queued_ms / 1000:.1f} s of scheduler delay over {facts.units} {words.units})"
    )
    advice = terms.advice("starting units", f"fewer, larger {words.units}")
    return [Finding("starting units", facts.path_ms * share, what, "measured", advice)]


def spilling(terms: Terms, details: Sequence[Detail], spilled_by: Sequence[str]) -> list[Finding]:
    """Memory that did not suffice, so that rows went to disk; `spilled_by` are names of operators, worst first."""
    groups = [detail.facts for detail in details if detail.facts.spill_bytes]
    spilled = sum(each.spill_bytes for each in groups)
    if not spilled:
        return []
    cost = sum(each.path_ms * each.resource_ms[DISK] / each.unit_ms for each in groups if each.unit_ms > 0)
    worst = max(groups, key=lambda each: each.spill_bytes)
    by = f", mostly by {spilled_by[0]}" if spilled_by else ""
    what = f"{spilled / _MIB:.0f} MiB were spilled to disk for want of memory, most in {worst.id} {worst.name}{by}"
    words = terms.words
    neutral = f"more memory per {words.worker}, fewer {words.lanes}, or smaller {words.units}"
    return [Finding("spilling", cost, what, "modelled", terms.advice("spilling", neutral))]


def collecting_garbage(terms: Terms, details: Sequence[Detail]) -> list[Finding]:
    """Heaps so full that collecting garbage takes a good part of the units' time."""
    found = [each.facts for each in details if each.facts.gc_ms > GC * each.facts.unit_ms > 0]
    if not found:
        return []
    words = terms.words
    cost = sum(each.path_ms * min(each.gc_ms / each.unit_ms, 1.0) for each in found)
    worst = max(found, key=lambda each: each.gc_ms)
    share = worst.gc_ms / worst.unit_ms
    what = f"garbage collection took {share:.0%} of {words.unit} time in {worst.id} {worst.name}"
    if len(found) > 1:
        what += f", and a tenth or more in {len(found) - 1} other" + ("s" if len(found) > 2 else "")
    advice = f"more memory per {words.worker}, or fewer {words.lanes}"
    return [Finding("garbage", cost, what, "measured", advice)]


def short_of_cpus(
    terms: Terms, details: Sequence[Detail], neighbours: Sequence[Neighbours], cores_per_slot: float
) -> list[Finding]:
    """Units that could have run and had no CPU: for other programs on the machine, a quota, or too many slots.

    `cores_per_slot` is the most that workers were seen to use, inf where they were at no limit.  A unit for which
    another process computes has none itself.
    """
    mine = [each for each in details if each.ready_ms > 0 and not terms.rules.delegates(each)]
    ready_ms = sum(each.ready_ms for each in mine)
    cpu_ms = sum(each.facts.resource_ms[CPU] for each in mine)
    if cpu_ms < STARVED * (cpu_ms - ready_ms) or not ready_ms:
        return []
    words = terms.words
    cost = sum(each.facts.path_ms * each.ready_ms / each.facts.unit_ms for each in mine)
    waited = f"{ready_ms / 1000:.1f} s of {words.unit} time, {ready_ms / cpu_ms:.0%} of their CPU time"
    what = f"{words.units} could have run but had no CPU for {waited}"
    advice = []
    if np.isfinite(cores_per_slot):
        what += f"; {words.workers} never got more than {cores_per_slot:.2f} cores a {words.lane}"
        advice.append(f"a larger CPU limit for each {words.worker}, or fewer {words.lanes} on it")
    crowds = {each.group: each for each in neighbours}
    crowded = [(each.ready_ms * crowd.crowded, crowd) for each in mine if (crowd := crowds.get(each.facts.id))]
    crowded_ms = sum(ms for ms, _ in crowded)
    if crowded_ms >= ready_ms / 2:
        others = sum(ms * crowd.others_cores for ms, crowd in crowded) / crowded_ms
        processors = sum(ms * crowd.processors for ms, crowd in crowded) / crowded_ms
        what += f"; their machines were full, and other programs used {others:.1f} of {processors:.0f} cores"
        advice.append("run it without its neighbours: all answers here take them for granted")
    what_to_do = "; or ".join(advice) or f"fewer {words.lanes} than cores"
    return [Finding("short of CPUs", cost, what, "measured", what_to_do)]


def wasted(terms: Terms, unit_ms: float, units: int, reason: str | None, slots: int) -> list[Finding]:
    """Work that was thrown away: units that failed, or were killed as a copy was faster or their group was over."""
    if units == 0 or slots == 0:
        return []
    unit = terms.words.unit
    what = f"{counted(units, f'failed or killed {unit}')} ran for {unit_ms / 1000:.1f} s of {unit} time"
    if reason:
        what += f"; most often: {reason}"
    return [Finding("wasted", unit_ms / slots, what, "modelled", terms.advice("wasted", "look at why they ended"))]


def odd_use(terms: Terms, details: Sequence[Detail], limits: Collection[str]) -> list[Finding]:
    """Time on a device that hardly moved data: a misconfiguration as a rule (§4.2, §7.5).

    `limits` are the resources that hold the run up: a device that is slow because it is full is no sign of a
    misconfiguration.
    """
    found = []
    for detail in details:
        facts = detail.facts
        if facts.path_ms <= 0 or terms.rules.own_device(detail):
            continue
        for resource, moved in detail.moved_bytes.items():
            time_ms = facts.resource_ms[resource]
            if resource in limits or time_ms <= 0.1 * facts.unit_ms or moved / (time_ms / 1000) >= SLOW_BPS:
                continue
            what = (
                f"{facts.id} {facts.name}: {time_ms / 1000:.1f} s of {terms.words.unit} time on"
                f" {terms.device(resource)} for {moved / _MIB:.1f} MiB"
            )
            advice = _ODD_ADVICE.get(resource, "something else than data: many small transfers, or waiting in them")
            found.append(Finding("odd use", facts.path_ms * time_ms / facts.unit_ms, what, "label", advice))
    return found


_ODD_ADVICE = {
    DISK: "something else than data: many small files, metadata, a disk that is slow to answer or shared",
    NET: "something else than data: connections, retries, name look-ups, a service that is slow to answer",
}
