"""Findings about idle lanes, units that are too short, and units that waited for a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.findings.parts import LITTLE_BYTES, MORE, SKEW, usual_unit_ms
from crystalperf.query.diagnose.group_statistics import GroupStats, Neighbours
from crystalperf.query.execution.cpu_limits import STARVED
from crystalperf.query.results.advice import (
    Advice,
    FewerTasks,
    InspectTaskWaits,
    MoreCpu,
    MoreTasks,
    RelaxPlacement,
    SmallerTasks,
    SpreadInput,
)
from crystalperf.query.results.findings import IdleCause, IdleStage, ShortOfCpus, StartingStage

HELD_BACK = 0.5
"""A CPU quota is the cause of waiting from this share of throttled periods on, while units waited for a CPU."""

IDLE = 0.2
"""Idle slots are reported from this share of a group's slot time."""

STARTING = 0.2
"""Starting units is reported from this share of their time."""


def _waited_ms(detail: GroupStats) -> float:
    """How much longer than usual the longest unit of a group took, without more data or CPU time; ms."""
    longest, usual_ms = detail.longest, usual_unit_ms(detail)
    if longest.cpu_ms is None or longest.duration_ms <= SKEW * usual_ms:
        return 0.0
    if longest.read_bytes > max(LITTLE_BYTES, MORE * detail.facts.median_bytes):
        return 0.0
    return max(longest.duration_ms - usual_ms - longest.cpu_ms, 0.0)


def idle_slots(advisor: Advisor, detail: GroupStats) -> list[IdleStage]:
    """Idle slots while a group was on the critical path: too few units, or a last wave that is half empty.

    Evidence: slots were free while it ran, whatever else ran then; units that read almost nothing and ended at once
    do not count as units with work.  Contradicted if the framework knows that the work cannot be divided further; time
    in which the longest unit waited, and time of starting units, are subtracted, because more units do not divide them.
    """
    facts = detail.facts
    starting = min(facts.starting_ms / facts.unit_ms, 1.0) if facts.unit_ms > 0 else 0.0
    ran_ms = facts.path_ms - _waited_ms(detail)
    path_ms = ran_ms * (1 - starting)
    if facts.slots < 2 or facts.length_ms <= 0 or path_ms <= 0:
        return []
    idle = min(facts.idle_ms / (facts.slots * facts.length_ms), 1.0)
    cause = _idle_cause(detail, idle)
    if cause is None:
        return []
    cost_ms = path_ms * idle
    if cause in ("few-tasks", "empty-tasks"):
        cost_ms = path_ms * min(1 - detail.with_data / facts.slots, idle)
    elif cause == "bound-to-data":
        cost_ms = ran_ms * idle
    advice = idle_advice(detail) if advisor.idle_advice is None else advisor.idle_advice(detail)
    if advice is None or cost_ms <= 0:
        return []
    return [idle_stage(detail, cause, cost_ms, idle, advice)]


def idle_stage(detail: GroupStats, cause: IdleCause, cost_ms: float, idle_share: float, advice: Advice) -> IdleStage:
    """The finding of one group that left slots idle."""
    facts = detail.facts
    return IdleStage(
        facts.id,
        facts.name,
        cost_ms,
        "modelled",
        advice,
        cause=cause,
        tasks=facts.units,
        with_data=detail.with_data,
        slots=facts.slots,
        waves=facts.waves,
        idle_share=idle_share,
        skew_bytes=facts.skew_bytes if is_uneven(detail) else None,
        on_busiest=detail.on_busiest,
    )


def _idle_cause(detail: GroupStats, idle_share: float) -> IdleCause | None:
    """The cause of a group's idle slots; None if few were idle."""
    facts, busy = detail.facts, detail.with_data
    if busy < facts.slots:
        return "empty-tasks" if busy < facts.units else "few-tasks"
    if idle_share < IDLE:
        return None
    if were_bound(detail):
        return "bound-to-data"
    return "free-slots" if were_free(detail) else "last-wave"


def idle_advice(detail: GroupStats) -> Advice:
    """The advice for a group's idle slots, for any framework."""
    if detail.with_data < detail.facts.slots:
        return MoreTasks()
    if were_bound(detail):
        return RelaxPlacement()
    if were_free(detail):
        return InspectTaskWaits()
    return SpreadInput() if is_uneven(detail) else SmallerTasks()


def were_free(detail: GroupStats) -> bool:
    """Whether lanes were idle while units of a group waited: a last wave leaves lanes idle for at most the duration of
    its longest unit."""
    facts = detail.facts
    return facts.idle_ms > facts.slots * facts.longest_ms


def were_bound(detail: GroupStats) -> bool:
    """Whether lanes were idle while units of a group waited for the workers that have their data."""
    return were_free(detail) and detail.at_home > detail.facts.units / 2


def is_uneven(detail: GroupStats) -> bool:
    """Whether a group has data skew: one unit reads clearly more than the median unit."""
    skew = detail.facts.skew_bytes
    return skew is not None and skew > MORE


def starting_units(detail: GroupStats) -> list[StartingStage]:
    """Units so short that starting them takes a good part of their time.

    Evidence: the measured share of their time.  Contradicted if there are no more units than slots, or if only a few
    units took long to start, such as the first of each worker.
    """
    facts = detail.facts
    share = facts.starting_ms / facts.unit_ms if facts.unit_ms > 0 else 0.0
    if share < STARTING or detail.median_starting < STARTING or facts.units <= facts.slots:
        return []
    cost_ms = facts.path_ms * share
    return [
        StartingStage(
            facts.id, facts.name, cost_ms, "measured", FewerTasks(),
            tasks=facts.units, share=share, queued_ms=facts.queued_ms,
        )
    ]  # fmt: skip


def short_of_cpus(
    details: Sequence[GroupStats],
    neighbours: Sequence[Neighbours],
    cores_per_slot: float,
    throttled: Mapping[str, float] | None = None,
) -> list[ShortOfCpus]:
    """CPU wait: ready units without a CPU, because of other programs on the machine, a quota, or too many slots.

    `cores_per_slot` is the most that workers were seen to use, inf if they were at no limit; `throttled` is, by group,
    the share of the quota's periods in which its container was throttled, where that was measured.  Units whose work is
    delegated to another process do not count.
    """
    waiting = [each for each in details if each.ready_ms > 0 and not each.delegates]
    ready_ms = sum(each.ready_ms for each in waiting)
    cpu_ms = sum(each.facts.resource_ms[CPU] for each in waiting)
    if cpu_ms < STARVED * (cpu_ms - ready_ms) or not ready_ms:
        return []
    cost_ms = sum(each.facts.path_ms * each.ready_ms / each.facts.unit_ms for each in waiting)
    held_back = sum(each.ready_ms * (throttled or {}).get(each.facts.id, 0.0) for each in waiting) / ready_ms
    if held_back >= HELD_BACK:  # the quota is the cause, whatever else ran on the machine
        advice = MoreCpu(larger_limit=True, own_machines=False, slots="same")
        return [ShortOfCpus(cost_ms, "measured", advice, ready_ms, cpu_ms, throttled_share=held_back)]
    limit = cores_per_slot if np.isfinite(cores_per_slot) else None
    others, processors = _contention(waiting, ready_ms, neighbours) or (None, None)
    is_known = limit is not None or others is not None
    advice = MoreCpu(limit is not None, others is not None, "fewer" if is_known else "fewer-than-cores")
    return [ShortOfCpus(cost_ms, "measured", advice, ready_ms, cpu_ms, None, limit, others, processors)]


def _contention(
    details: Sequence[GroupStats], ready_ms: float, neighbours: Sequence[Neighbours]
) -> tuple[float, float] | None:
    """Cores that other programs used while units waited for a CPU, and those of the machine; None if these had few.

    A container sees its whole machine, but not the owners of the other containers on it.
    """
    by_group = {each.group: each for each in neighbours}
    contended = [(each.ready_ms * other.crowded, other) for each in details if (other := by_group.get(each.facts.id))]
    contended_ms = sum(ms for ms, _ in contended)
    if contended_ms < ready_ms / 2:
        return None
    others = sum(ms * other.others_cores for ms, other in contended) / contended_ms
    return others, sum(ms * other.processors for ms, other in contended) / contended_ms
