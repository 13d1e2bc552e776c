"""Units and hosts that take much longer than those like them, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.answers.values import Basis, Finding
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.parts import LITTLE_BYTES, MORE, SEE, SKEW, Part, group_name, usual_unit_ms
from crystalperf.query.explain.hosts import HostTime
from crystalperf.query.explain.wording import Terms
from crystalperf.query.frameworks import with_article
from crystalperf.query.model.amounts import counted, lasting, part_of, volume

FEWEST_FOR_SKEW = 3


MOST_TIMES = 100
"""What is more times as much as this is told by itself: the other is next to nothing."""


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
    usual_ms = usual_unit_ms(detail)
    if detail.with_data < FEWEST_FOR_SKEW or facts.longest_ms <= SKEW * usual_ms:
        return []
    excess_ms = facts.longest_ms - usual_ms
    times = f"{facts.longest_ms / usual_ms:.1f} times the median" if usual_ms > 0 else "far more than the median"
    why = next(each for each in _reasons(terms, detail, hosts, excess_ms) if each is not None)
    what = f"its longest {unit} ({unit} {detail.longest.unit_id}) takes {times}: {why.what}"
    many = f"have {with_article(unit)} that takes much longer than most"
    cost_ms = min(excess_ms, facts.path_ms)
    return [Part("straggler", why.kind, cost_ms, group_name(detail), what, why.basis, why.advice, many)]


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
    return Why("data", f"it read {volume(longest.read_bytes)}, {times}", advice, "measured")


def _collections(terms: Terms, detail: Detail, excess_ms: float) -> Why | None:
    """Evidence: collections stopped it for half of what it took longer, beyond what they stopped others for."""
    gc_ms, words = detail.longest.gc_ms, terms.words
    if gc_ms - detail.median_gc_ms <= excess_ms / 2:
        return None
    what = f"its {words.worker} collected garbage for {lasting(gc_ms)}"
    return Why("garbage", what, f"more memory per {words.worker}", "measured")


def _slow_node(terms: Terms, detail: Detail, hosts: Sequence[HostTime], excess_ms: float) -> Why | None:
    """Evidence: units on its node take longer on a resource than elsewhere, and it had half its excess on that one.

    Contradicted by a longest unit whose time went elsewhere than its node's does.
    """
    longest, words = detail.longest, terms.words
    for host in _slow_ones([each for each in hosts if each.group == detail.facts.id]):
        if host.host != longest.host:
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
        f"not for its data: {lasting(extra[name])} more on {terms.device(name)} than usual",
        "compare the node it ran on with its peers" if name != CPU else "look at what its rows make it compute",
        "measured" if name == CPU and longest.cpu_ms is not None else "modelled",
    )


def _unexplained(detail: Detail, excess_ms: float) -> Why:
    """What is left: it waited, where CPU time says that it did not compute."""
    longest, advice = detail.longest, SEE
    if longest.cpu_ms is None or longest.cpu_ms > longest.duration_ms - excess_ms / 2:
        return Why("unknown", "for no reason that the log tells", advice, "measured")
    computed = part_of(longest.cpu_ms, longest.duration_ms, "its")
    what = f"it computed for {computed} and waited, for what the log does not say"
    return Why("waited", what, advice, "measured")


def _is_slow(host: HostTime) -> bool:
    """Whether units on a host spend clearly more time on a resource, though they read no more than the others do."""
    data = host.median_bytes / host.others_bytes if host.others_bytes > 0 else 1.0
    return (
        host.resource != OTHER
        and host.median_ms > MORE * host.others_ms * max(data, 1.0)
        and host.median_ms - host.others_ms > 0.2 * host.others_duration_ms
    )


def _slow_ones(hosts: Sequence[HostTime]) -> list[HostTime]:
    """Hosts that are slow for a group, by resource; where most hosts would be, it is the others that had less to do."""
    slow = [each for each in hosts if _is_slow(each)]
    among = Counter((each.group, each.resource) for each in hosts)
    many = Counter((each.group, each.resource) for each in slow)
    most = {key for key, count in many.items() if count > 1 and 2 * count > among[key]}
    return [each for each in slow if (each.group, each.resource) not in most]


def _so_long(own_ms: float, others_ms: float, groups: int, device: str, others: str) -> str:
    """How much longer units are on a device than others; times that are sums over so many groups, ms.

    Beside next to nothing there is no ratio worth a word: then the time itself is told.
    """
    if own_ms > MOST_TIMES * others_ms:
        return f"{lasting(own_ms / groups)} each on {device}, and next to none {others}"
    return f"{own_ms / others_ms:.1f} times as long on {device} as {others}"


def slow_hosts(terms: Terms, hosts: Sequence[HostTime], details: Sequence[Detail]) -> list[Finding]:
    """A host on which a resource is slower than on its peers, in most groups that use it: a malfunction (§4.2)."""
    by_id = {detail.facts.id: detail.facts for detail in details}
    used: dict[tuple[str, str], list[HostTime]] = {}
    slow_ones = {(each.group, each.host, each.resource) for each in _slow_ones(hosts)}
    for each in hosts:
        if each.others_ms > 0.1 * each.others_duration_ms or _is_slow(each):
            used.setdefault((each.host, each.resource), []).append(each)
    found = []
    for (host, resource), rows in used.items():
        slow = [each for each in rows if (each.group, host, resource) in slow_ones]
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
