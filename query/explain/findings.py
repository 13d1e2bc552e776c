"""What cost time on the critical path, and what to try: one rule a function, each `(terms, facts) → findings`.

A rule states its evidence and what would contradict it, and looks for both; a cause that is contradicted is not told.
A cost is the most that the finding can have cost: the time it held the critical path, or what would be left of it at
best.  What the words for a basis mean is said in query.answers.values.Basis.  Findings of one kind are told as one,
whose cost is their sum (added_up).  The rules hold of any framework and are told in its words (wording.Terms); what to
try is the framework's where it knows better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexes.resources import CPU, DISK, NET, OTHER
from query.answers.values import Basis, Cause, Finding
from query.explain.facts import Detail, HostTime, Neighbours
from query.explain.wording import Terms, counted
from query.frameworks import Vocabulary, either, plural, with_article
from query.model.capacity import STARVED
from query.model.execution import most_spilling_ms

SKEW = 2.0
"""A group is skewed where its longest unit takes this many times the median."""

FEWEST_FOR_SKEW = 3

MORE = 1.5
"""What explains a straggler, or marks a slow host, is this many times what is usual."""

MOST_TIMES = 100
"""What is more times as much as this is told by itself: the other is next to nothing."""

HELD_BACK = 0.5
"""Share of a quota's periods in which it was used up, while units waited for a CPU, from which on it is the cause."""

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


COMMITTING = "committing"
"""The rule of time in which the coordinator alone puts in place what units wrote; a framework finds it (Rules.more)."""


def coordinator(terms: Terms, alone_ms: Mapping[Cause, float], other_ms: Mapping[Cause, float]) -> list[Finding]:
    """What held the run up while workers were there and no unit ran."""
    words = terms.words
    workers = words.workers
    unknown = other_ms.get("coordinator", 0.0)
    unseen = f" ({unknown / 1000:.1f} s of it waiting or unknown)" if unknown > 0.1 * alone_ms["coordinator"] else ""
    none = " and ".join(f"no {each}" for each in (words.scope, *words.scopes[1:]))
    doing = f": {words.coordinating}" if words.coordinating else ""
    advice = terms.advice("coordinator", f"look at what the {words.coordinator} does then")
    return [
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
            f"the {words.coordinator} alone{doing}, while no {words.unit} ran{unseen}",
            "measured",
            f"{advice[:1].lower()}{advice[1:]}; more or faster {workers} do not shorten this",
        ),
    ]


ON_LANES = ("idle slots", "short of CPUs")
"""Rules whose advice is about lanes."""

SEE = "record samples to see what it did"
"""What to do about a unit of which nothing more is known."""

NAMED = 2
"""Groups of one finding that are named, those of the largest costs …"""

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
    named = "; ".join(f"{each.group}: {each.what} ({each.cost_ms / 1000:.1f} s)" for each in parts[:NAMED])
    rest = len(parts) - NAMED
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


@dataclass(frozen=True)
class Why:
    """What explains a straggler, as far as is known: a word for it, the clause, what to do, and how it is known."""

    kind: str
    what: str
    advice: str
    basis: Basis


def straggler(terms: Terms, detail: Detail, hosts: Sequence[HostTime]) -> list[Part]:
    """A group whose longest unit takes much longer than those like it, and why.

    Evidence: it takes SKEW times the median, of those with something to read where most units have nothing.  What read
    anew what was to be in memory is explained by that (reading_anew).
    """
    facts, unit = detail.facts, terms.words.unit
    if detail.longest.anew:
        return []
    usual_ms = _usual_ms(detail)
    if detail.with_data < FEWEST_FOR_SKEW or facts.longest_ms <= SKEW * usual_ms:
        return []
    excess_ms = facts.longest_ms - usual_ms
    times = f"{facts.longest_ms / usual_ms:.1f} times the median" if usual_ms > 0 else "far more than the median"
    why = next(each for each in _reasons(terms, detail, hosts, excess_ms) if each is not None)
    what = f"its longest {unit} ({unit} {detail.longest.unit_id}) takes {times}: {why.what}"
    many = f"have {with_article(unit)} that takes much longer than most"
    cost_ms = min(excess_ms, facts.path_ms)
    return [Part("straggler", why.kind, cost_ms, _group(detail), what, why.basis, why.advice, many)]


def _usual_ms(detail: Detail) -> float:
    """What a unit takes; where most units have nothing to read, one of those that have."""
    return detail.siblings.loaded_ms if detail.with_data < detail.facts.units else detail.facts.median_ms


def _group(detail: Detail) -> str:
    return f"{detail.facts.id} {detail.facts.name}"


def _reasons(terms: Terms, detail: Detail, hosts: Sequence[HostTime], excess_ms: float) -> Iterator[Why | None]:
    """Reasons for a straggler in the order of their evidence's strength; the last always holds."""
    yield _more_data(terms, detail, excess_ms)
    yield _collections(terms, detail, excess_ms)
    yield _slow_node(terms, detail, hosts, excess_ms)
    yield _first_of_its_worker(terms, detail, excess_ms)
    yield _more_of_a_resource(terms, detail, excess_ms)
    yield _unexplained(detail, excess_ms)


def _more_data(terms: Terms, detail: Detail, excess_ms: float) -> Why | None:
    """Evidence: it read as many times the median as it took.  Contradicted by others that read as much, sooner."""
    longest, siblings, usual = detail.longest, detail.siblings, detail.facts.median_bytes
    duration_ms = longest.duration_ms
    slower = duration_ms / max(duration_ms - excess_ms, 1e-9)
    if longest.read_bytes <= LITTLE_BYTES or longest.read_bytes <= max(MORE, slower / 2) * usual:
        return None
    if siblings.alike and siblings.alike_ms < duration_ms / SKEW:
        return None
    times = f"{longest.read_bytes / usual:.1f} times the median" if usual > 0 else "most read nothing"
    advice = f"spread what is read more evenly over the {terms.words.units}"
    if terms.rules.skew is not None:
        advice = terms.rules.skew(detail)
    return Why("data", f"it read {longest.read_bytes / _MIB:.0f} MiB, {times}", advice, "measured")


def _collections(terms: Terms, detail: Detail, excess_ms: float) -> Why | None:
    """Evidence: collections stopped it for half of what it took longer, beyond what they stopped others for."""
    gc_ms, words = detail.longest.gc_ms, terms.words
    if gc_ms - detail.median_gc_ms <= excess_ms / 2:
        return None
    what = f"its {words.worker} collected garbage for {gc_ms / 1000:.1f} s"
    return Why("garbage", what, f"more memory per {words.worker}", "measured")


def _slow_node(terms: Terms, detail: Detail, hosts: Sequence[HostTime], excess_ms: float) -> Why | None:
    """Evidence: units on its node take longer on a resource than elsewhere, and it had half its excess on that one.

    Contradicted by a longest unit whose time went elsewhere than its node's does.
    """
    longest, words = detail.longest, terms.words
    for host in hosts:
        if host.group != detail.facts.id or host.host != longest.host or not _is_slow(host):
            continue
        if longest.resource_ms[host.resource] - detail.median_resource_ms[host.resource] < excess_ms / 2:
            continue
        device = terms.device(host.resource)
        return Why(
            "node",
            f"{words.units} on {host.host} spend "
            + _so_long(host.median_ms, host.others_ms, 1, device, "on other nodes"),
            f"look at {host.host}: its {terms.name(host.resource)} is slower than its peers'",
            "modelled",
        )
    return None


def _first_of_its_worker(terms: Terms, detail: Detail, excess_ms: float) -> Why | None:
    """Evidence: nothing had ended on its worker when it began; a new process loads and compiles code.

    That takes CPU time, and every first unit of a worker has to: contradicted by CPU time that makes up less than half
    of what it took longer, and by other firsts of its group that took no such time.  It is modelled where CPU time and
    other firsts bear it out, else guessed.
    """
    longest, siblings, words = detail.longest, detail.siblings, terms.words
    if not longest.first:
        return None
    cpu_ms = None if longest.cpu_ms is None else longest.cpu_ms - (detail.median_cpu_ms or 0.0)
    if cpu_ms is not None and cpu_ms < excess_ms / 2:
        return None
    if siblings.firsts and siblings.firsts_ms < longest.duration_ms - excess_ms / 2:
        return None
    sure = cpu_ms is not None and siblings.firsts > 0
    return Why(
        "first",
        f"it was the first on {words.worker} {longest.worker_id}, which "
        + ("had yet to load and compile code" if sure else "may have had to load and compile code"),
        f"keep {words.workers} alive between runs" if sure else SEE,
        "modelled" if sure else "guessed",
    )


def _more_of_a_resource(terms: Terms, detail: Detail, excess_ms: float) -> Why | None:
    """Evidence: half of what it took longer was on one resource.  The CPU counts where its time was measured."""
    longest, usual = detail.longest, detail.median_resource_ms
    extra = {name: ms - usual[name] for name, ms in longest.resource_ms.items() if name != OTHER}
    name = max(extra, key=lambda each: extra[each])
    if extra[name] <= excess_ms / 2:
        return None
    return Why(
        name,
        f"not for its data; {extra[name] / 1000:.1f} s of it more on {terms.device(name)} than usual",
        "compare the node it ran on with its peers" if name != CPU else "look at what its rows make it compute",
        "measured" if name == CPU and longest.cpu_ms is not None else "modelled",
    )


def _waited_ms(detail: Detail) -> float:
    """How much longer than usual the longest unit of a group took without more to read or to compute, in ms."""
    longest, usual_ms = detail.longest, _usual_ms(detail)
    if longest.cpu_ms is None or longest.duration_ms <= SKEW * usual_ms:
        return 0.0
    if longest.read_bytes > max(LITTLE_BYTES, MORE * detail.facts.median_bytes):
        return 0.0
    return max(longest.duration_ms - usual_ms - longest.cpu_ms, 0.0)


def _unexplained(detail: Detail, excess_ms: float) -> Why:
    """What is left: it waited, where CPU time says that it did not compute."""
    longest, advice = detail.longest, SEE
    if longest.cpu_ms is None or longest.cpu_ms > longest.duration_ms - excess_ms / 2:
        return Why("unknown", "for no reason that the log tells", advice, "measured")
    cpu, whole = longest.cpu_ms / 1000, longest.duration_ms / 1000
    what = f"it computed for {cpu:.1f} of its {whole:.1f} s and waited, for what the log does not say"
    return Why("waited", what, advice, "measured")


def _is_slow(host: HostTime) -> bool:
    """Whether units on a host spend clearly more time on a resource, though they read no more than the others do."""
    data = host.median_bytes / host.others_bytes if host.others_bytes > 0 else 1.0
    return (
        host.resource != OTHER
        and host.median_ms > MORE * host.others_ms * max(data, 1.0)
        and host.median_ms - host.others_ms > 0.2 * host.others_duration_ms
    )


def _so_long(own_ms: float, others_ms: float, groups: int, device: str, others: str) -> str:
    """How much longer units are on a device than others; times that are sums over so many groups, ms.

    Beside next to nothing there is no ratio worth a word: then the time itself is told.
    """
    if own_ms > MOST_TIMES * others_ms:
        return f"{own_ms / groups / 1000:.1f} s each on {device}, and next to none {others}"
    return f"{own_ms / others_ms:.1f} times as long on {device} as {others}"


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
        own_ms, peers_ms = sum(each.median_ms for each in slow), sum(each.others_ms for each in slow)
        spent = _so_long(own_ms, peers_ms, len(slow), terms.device(resource), "on its peers")
        found.append(
            Finding(
                "slow hosts",
                cost,
                f"{terms.words.units} on {host} spend {spent}, in {counted(len(slow), terms.words.group)}",
                "modelled",
                f"check {host}: a slow or crowded {terms.name(resource)}, other jobs, a throttled instance",
            )
        )
    return found


def idle_slots(terms: Terms, detail: Detail) -> list[Part]:
    """Slots without work while a group was on the path: too few units, or a last wave that is half empty.

    Evidence: slots were free while it ran, whatever else ran then; units that read next to nothing and ended at once
    are none to share its work.  Contradicted where the framework knows that there is nothing to share out, by a
    longest unit that waited and by time that went to starting units: neither divides.
    """
    facts, words = detail.facts, terms.words
    starting = min(facts.starting_ms / facts.unit_ms, 1.0) if facts.unit_ms > 0 else 0.0
    path_ms = (facts.path_ms - _waited_ms(detail)) * (1 - starting)
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
        if were_free(detail):
            kind = "free"
            what += f", more than after their last {words.unit}: {words.lanes} were free while {words.units} waited"
        elif is_uneven(detail):
            what += f"; the {words.unit} that read most read {facts.skew_bytes:.1f} times the median"
    advice = idle_advice(terms.words, detail) if terms.rules.idle is None else terms.rules.idle(detail)
    if advice is None or cost <= 0:
        return []
    return [Part("idle slots", kind, cost, _group(detail), what, "modelled", advice, many)]


def idle_advice(words: Vocabulary, detail: Detail) -> str:
    """What to do about lanes that a group left idle, in any framework."""
    units = words.units
    if detail.with_data < detail.facts.slots:
        return f"more, smaller {units} would use the idle {words.lanes}"
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
        what += f" ({facts.queued_ms / 1000:.1f} s of it to scheduling)"
    advice = terms.advice("starting units", f"fewer, larger {words.units}")
    many = f"have {words.units} so short that starting them takes long"
    return [Part("starting units", "", facts.path_ms * share, _group(detail), what, "measured", advice, many)]


def spilling(terms: Terms, details: Sequence[Detail], spilled_by: Sequence[str]) -> list[Finding]:
    """Memory that did not suffice, so that rows went to disk; `spilled_by` are names of operators, worst first.

    Evidence: bytes that were spilled.  It cost at most the time on disk and of unknown cause, and no more than writing
    and reading back those bytes takes (most_spilling_ms).
    """
    groups = [detail for detail in details if detail.facts.spill_bytes and detail.facts.unit_ms > 0]
    if not groups:
        return []
    spilled = sum(each.facts.spill_bytes for each in groups)
    cost = 0.0
    for each in groups:
        facts = each.facts
        moved_ms = float(most_spilling_ms(facts.spill_bytes, each.spill_memory_bytes))
        on_disk_ms = facts.resource_ms[DISK] + min(facts.resource_ms[OTHER], moved_ms)
        cost += facts.path_ms * min(on_disk_ms / facts.unit_ms, 1.0)
    worst = max((each.facts for each in groups), key=lambda each: each.spill_bytes)
    by = f", mostly by {spilled_by[0]}" if spilled_by else ""
    what = f"{spilled / _MIB:.0f} MiB were spilled to disk for want of memory, most in {worst.id} {worst.name}{by}"
    words = terms.words
    neutral = f"more memory per {words.worker}, fewer {words.lanes}, or smaller {words.units}"
    advice = terms.advice("spilling", neutral)
    if all(terms.rules.spills_apart(each.what, each.facts.scope) for each in groups):
        neutral = f"more memory for what computes for the {words.units}, or smaller {words.units}"
        advice = terms.advice("delegates spilling", neutral)
    return [Finding("spilling", cost, what, "modelled", advice)]


def collecting_garbage(terms: Terms, details: Sequence[Detail]) -> list[Finding]:
    """Heaps so full that collecting garbage takes a good part of the units' time."""
    found = [each.facts for each in details if each.facts.gc_ms > GC * each.facts.unit_ms > 0]
    if not found:
        return []
    words = terms.words
    cost = sum(each.path_ms * min(each.gc_ms / each.unit_ms, 1.0) for each in found)
    worst = max(found, key=lambda each: each.gc_ms)
    share = worst.gc_ms / worst.unit_ms
    what = f"garbage collection took {100 * share:.0f} % of {words.unit} time in {worst.id} {worst.name}"
    if len(found) > 1:
        what += f", and a tenth or more in {len(found) - 1} other" + ("s" if len(found) > 2 else "")
    advice = f"more memory per {words.worker}, or fewer {words.lanes}"
    return [Finding("garbage", cost, what, "measured", advice)]


def reading_anew(terms: Terms, details: Sequence[Detail]) -> list[Finding]:
    """Memory that had no room for what workers were to keep, so that units read and computed it again.

    Evidence: units that read files for what others of their group found in memory.  It cost at most what their groups
    took longer than if all units were as quick as the quickest that found it.
    """
    found = [each for each in details if each.anew and each.facts.unit_ms > 0]
    cost = sum(each.facts.path_ms * min(each.anew_ms / each.facts.unit_ms, 1.0) for each in found)
    if cost <= 0:
        return []
    words, worst = terms.words, max(found, key=lambda each: each.anew_ms)
    what = (
        f"{worst.anew} of {worst.facts.units} {words.units} of {_group(worst)} read anew what {words.workers} were to"
        " keep in memory, for it was not there"
    )
    if len(found) > 1:
        what += f"; so did {counted(sum(each.anew for each in found) - worst.anew, words.unit)}"
        what += f" of {counted(len(found) - 1, 'other')}"
    neutral = f"more memory per {words.worker} or more {words.workers}, so that there is room for all of it"
    return [Finding("kept", cost, what, "modelled", terms.advice("kept", neutral))]


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
    what = (
        f"{words.units} had no CPU for {ready_ms / 1000:.1f} of the {cpu_ms / 1000:.1f} s in which they could have"
        " computed"
    )
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


def odd_use(terms: Terms, details: Sequence[Detail], limits: Collection[str]) -> list[Part]:
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
            if moved is None or resource in limits or time_ms <= 0.1 * facts.unit_ms:
                continue
            if moved / (time_ms / 1000) >= SLOW_BPS:
                continue
            what = (
                f"{time_ms / 1000:.1f} s of {terms.words.unit} time on"
                f" {terms.device(resource)} for {moved / _MIB:.1f} MiB"
            )
            advice = _ODD_ADVICE.get(resource, "something else than data: many small transfers, or waiting in them")
            cost, many = facts.path_ms * time_ms / facts.unit_ms, f"use {terms.device(resource)} and hardly move data"
            found.append(Part("odd use", resource, cost, _group(detail), what, "modelled", advice, many))
    return found


_ODD_ADVICE = {
    DISK: "something else than data: many small files, metadata, a disk that is slow to answer or shared",
    NET: "something else than data: connections, retries, name look-ups, a service that is slow to answer",
}
