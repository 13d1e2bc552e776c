"""Findings about stragglers and slow hosts, with their causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.findings.parts import LITTLE_BYTES, MORE, SKEW, usual_task_ms
from crystalperf.query.diagnose.hosts import HostTime, HostTimes
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.results.advice import (
    Advice,
    CompareHosts,
    InspectComputation,
    InspectHost,
    KeepWorkers,
    MoreMemory,
    RecordSamples,
    SpreadInput,
)
from crystalperf.query.results.answers import StageFacts
from crystalperf.query.results.findings import (
    CollectedGarbage,
    FirstOnWorker,
    MoreData,
    MoreOfResource,
    SlowHost,
    SlowHosts,
    StragglerCause,
    StragglerStage,
    Unexplained,
    Waited,
)
from crystalperf.query.results.kinds import Basis

Mask = NDArray[np.bool_]

FEWEST_FOR_SKEW = 3

FEW = 4
"""A stage of at most so many tasks is compared with the mean of its other tasks, because one task moves the median."""


@frozen
class Why:
    """The explanation of a straggler: its cause, the advice, and the basis."""

    cause: StragglerCause
    advice: Advice
    basis: Basis


def straggler(advisor: Advisor, detail: StageStats, slow: Sequence[HostTime]) -> list[StragglerStage]:
    """The straggler of a stage: a task that takes much longer than usual, with the cause; `slow` are its slow hosts.

    Evidence: it takes more than SKEW times the median, or that of tasks with work if most tasks have nothing to read;
    of few tasks, more than SKEW times the mean of the others.
    A longest task with a cache miss is explained by that (cache_miss_findings).
    """
    facts, longest = detail.facts, detail.longest
    if longest.cache_misses:
        return []
    few = 1 < facts.tasks <= FEW
    usual_ms = (facts.task_ms - facts.longest_ms) / (facts.tasks - 1) if few else usual_task_ms(detail)
    if facts.longest_ms <= SKEW * usual_ms:
        return []
    excess_ms = facts.longest_ms - usual_ms
    why: Why | None
    if detail.with_data >= FEWEST_FOR_SKEW:
        why = next(each for each in _reasons(advisor, detail, slow, excess_ms) if each is not None)
    else:  # two tasks, or few with input: only what the longest itself did counts as evidence
        measured = (
            _more_data(advisor, detail, excess_ms),
            _collections(detail, excess_ms),
            _more_of_a_resource(detail, excess_ms),
        )
        why = next((each for each in measured if each is not None), None) if few else None
    if why is None:
        return []
    return [
        StragglerStage(
            facts.id, facts.name, _cost_ms(detail, excess_ms, why.cause), why.basis, why.advice,
            task_id=longest.task_id, duration_ms=facts.longest_ms, usual_ms=usual_ms, cause=why.cause,
            alone_ms=min(detail.alone_ms, excess_ms, facts.path_ms), few=few,
        )
    ]  # fmt: skip


def _cost_ms(detail: StageStats, excess_ms: float, cause: StragglerCause) -> float:
    """The most that a stage gets shorter without a straggler, ms: its slots still have to do all other work.

    More data is work that other tasks would have to do, as in `skew=none`; any other excess would not be done at all.
    """
    facts = detail.facts
    left_ms = facts.task_ms - (0.0 if isinstance(cause, MoreData) else excess_ms)
    slots = min(facts.slots, facts.tasks) if isinstance(cause, MoreData) else facts.slots
    idle_ms = facts.length_ms - left_ms / max(slots, 1)
    return max(min(excess_ms, facts.path_ms, idle_ms), 0.0)


def _reasons(advisor: Advisor, detail: StageStats, slow: Sequence[HostTime], excess_ms: float) -> Iterator[Why | None]:
    """Explanations of a straggler, the strongest evidence first; the last always applies."""
    yield _more_data(advisor, detail, excess_ms)
    yield _collections(detail, excess_ms)
    yield _slow_node(detail, slow, excess_ms)
    yield _first_of_its_worker(detail, excess_ms)
    yield _more_of_a_resource(detail, excess_ms)
    yield _unexplained(detail, excess_ms)


def _more_data(advisor: Advisor, detail: StageStats, excess_ms: float) -> Why | None:
    """Data skew.  Evidence: it read at least half as many times the median as it took.

    Contradicted by tasks that read as much in less time.  Of few tasks, the mean of the others counts, not the median.
    """
    facts, longest, siblings = detail.facts, detail.longest, detail.siblings
    few = 1 < facts.tasks <= FEW
    usual = (detail.read_bytes - longest.read_bytes) / (facts.tasks - 1) if few else facts.median_bytes
    duration_ms = longest.duration_ms
    slower = duration_ms / max(duration_ms - excess_ms, 1e-9)
    if longest.read_bytes <= LITTLE_BYTES or longest.read_bytes <= max(MORE, slower / 2) * usual:
        return None
    if siblings.alike and siblings.alike_ms < duration_ms / SKEW:
        return None
    advice = SpreadInput() if advisor.skew_advice is None else advisor.skew_advice(detail)
    return Why(MoreData(longest.read_bytes, usual, few), advice, "measured")


def _collections(detail: StageStats, excess_ms: float) -> Why | None:
    """Evidence: garbage collection took more than half of the excess, beyond the median task's."""
    gc_ms = detail.longest.gc_ms
    if gc_ms - detail.median_gc_ms <= excess_ms / 2:
        return None
    return Why(CollectedGarbage(gc_ms), MoreMemory(fewer_slots=False), "measured")


def _slow_node(detail: StageStats, slow: Sequence[HostTime], excess_ms: float) -> Why | None:
    """Evidence: tasks on its host take longer on a resource than elsewhere, and half of its excess is on that resource.

    Contradicted if its excess is on another resource than its host's.
    """
    longest = detail.longest
    for host in slow:
        if (host.stage, host.host) != (detail.facts.id, longest.host):
            continue
        if longest.resource_ms[host.resource] - detail.median_resource_ms[host.resource] < excess_ms / 2:
            continue
        cause = SlowHost(host.host, host.resource, host.median_ms, host.others_ms)
        return Why(cause, InspectHost(host.host, host.resource), "modelled")
    return None


def _first_of_its_worker(detail: StageStats, excess_ms: float) -> Why | None:
    """Warm-up.  Evidence: no task had ended on its worker when it began; a new process loads and compiles code.

    Warm-up takes CPU time, in every first task of a worker.  So it is contradicted if CPU time is less than half of the
    excess, or if other first tasks of its stage took no such time.  The basis is modelled if CPU time and other first
    tasks confirm it, else guessed.
    """
    longest, siblings = detail.longest, detail.siblings
    if not longest.first:
        return None
    cpu_ms = None if longest.cpu_ms is None else longest.cpu_ms - (detail.median_cpu_ms or 0.0)
    if cpu_ms is not None and cpu_ms < excess_ms / 2:
        return None
    if siblings.firsts and siblings.firsts_ms < longest.duration_ms - excess_ms / 2:
        return None
    if cpu_ms is not None and siblings.firsts > 0:
        return Why(FirstOnWorker(longest.worker_id, confirmed=True), KeepWorkers(), "modelled")
    return Why(FirstOnWorker(longest.worker_id, confirmed=False), RecordSamples(), "guessed")


def _more_of_a_resource(detail: StageStats, excess_ms: float) -> Why | None:
    """Evidence: more than half of the excess was on one resource.  The basis is measured for CPU time of the log."""
    longest, usual = detail.longest, detail.median_resource_ms
    extra = {name: ms - usual[name] for name, ms in longest.resource_ms.items() if name != OTHER}
    name = max(extra, key=lambda each: extra[each])
    if extra[name] <= excess_ms / 2:
        return None
    return Why(
        MoreOfResource(name, extra[name]),
        CompareHosts() if name != CPU else InspectComputation(),
        "measured" if name == CPU and longest.cpu_ms is not None else "modelled",
    )


def _unexplained(detail: StageStats, excess_ms: float) -> Why:
    """The fallback: it waited, if its CPU time shows that it did not compute, else unexplained."""
    longest = detail.longest
    if longest.cpu_ms is None or longest.cpu_ms > longest.duration_ms - excess_ms / 2:
        return Why(Unexplained(), RecordSamples(), "measured")
    return Why(Waited(longest.cpu_ms, longest.duration_ms), RecordSamples(), "measured")


def _are_slow(times: HostTimes) -> Mask:
    """Whether tasks on a host spend clearly more time on a resource than others, relative to the data they read."""
    own, others = times.median_bytes, times.others_bytes
    data = np.maximum(np.divide(own, others, out=np.ones(len(own)), where=others > 0), 1.0)
    slow: Mask = (times.median_ms > MORE * times.others_ms * data) & (
        times.median_ms - times.others_ms > 0.2 * times.others_duration_ms
    )
    return slow


def _but_not_most(slow: Mask, times: HostTimes) -> Mask:
    """The slow hosts, without those of a stage most of whose hosts would be slow: then the others had less work."""
    numbers: dict[str, int] = {}
    stage = np.array([numbers.setdefault(row[0], len(numbers)) for row in times.rows], np.int64)
    among = np.bincount(stage)
    many = np.stack([np.bincount(stage, each, len(among)) for each in slow])
    return slow & ~((many > 1) & (2 * many > among))[:, stage]


def slow_ones(times: HostTimes) -> list[HostTime]:
    """The slow hosts of each stage, in order of the stages and hosts, and of the resources."""
    slow = _but_not_most(_are_slow(times), times)
    return [times.of(resource, row) for row, resource in np.argwhere(slow.T).tolist()]


def slow_hosts(times: HostTimes, slow: Sequence[HostTime], details: Sequence[StageStats]) -> list[SlowHosts]:
    """Hosts with a slower resource than their peers, in most stages that use it: a malfunction (paper §4.2).

    `slow` are the slow_ones().
    """
    by_id = {detail.facts.id: detail.facts for detail in details}
    used = (times.others_ms > 0.1 * times.others_duration_ms) | _are_slow(times)
    by_host: dict[tuple[str, int], list[HostTime]] = {}
    for each in slow:
        by_host.setdefault((each.host, times.resources.index(each.resource)), []).append(each)
    host_of = np.array([row[1] for row in times.rows])
    found = []
    for (host, resource), slow_there in by_host.items():
        rows = np.flatnonzero(used[resource] & (host_of == host)).tolist()
        tasks_ms = [float(times.median_ms[resource, row]) * times.rows[row][2] for row in rows]
        if sum(each.median_ms * each.tasks for each in slow_there) < 0.5 * sum(tasks_ms):
            continue
        found.append((rows[0], resource, _slow_host(slow_there, by_id)))
    return [finding for _, _, finding in sorted(found, key=lambda each: each[:2])]


def _slow_host(slow: Sequence[HostTime], stages: Mapping[str, StageFacts]) -> SlowHosts:
    """The finding about a host that was slow on one resource in these stages."""
    cost = 0.0
    for each in slow:
        facts = stages.get(each.stage)
        if facts is not None and facts.median_ms > 0:
            share = (each.median_ms - each.others_ms) / (each.others_duration_ms + each.median_ms - each.others_ms)
            cost += facts.path_ms * share
    host, resource = slow[0].host, slow[0].resource
    own_ms, others_ms = sum(each.median_ms for each in slow), sum(each.others_ms for each in slow)
    return SlowHosts(cost, "modelled", InspectHost(host, resource), host, resource, own_ms, others_ms, len(slow))
