"""Lanes without work, units too short for them, and units that had none of a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.findings.parts import LITTLE_BYTES, MORE, SKEW, usual_unit_ms
from crystalperf.query.diagnose.group_statistics import Detail, Neighbours
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


def idle_slots(advisor: Advisor, detail: Detail) -> list[IdleStage]:
    """Slots without work while a group was on the path: too few units, or a last wave that is half empty.

    Evidence: slots were free while it ran, whatever else ran then; units that read next to nothing and ended at once
    are none to share its work.  Contradicted where the framework knows that there is nothing to share out, by a
    longest unit that waited and by time that went to starting units: neither divides.
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


def idle_stage(detail: Detail, cause: IdleCause, cost_ms: float, idle_share: float, advice: Advice) -> IdleStage:
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


def _idle_cause(detail: Detail, idle_share: float) -> IdleCause | None:
    """Why a group left slots idle; None where it left few."""
    facts, busy = detail.facts, detail.with_data
    if busy < facts.slots:
        return "empty-tasks" if busy < facts.units else "few-tasks"
    if idle_share < IDLE:
        return None
    if were_bound(detail):
        return "bound-to-data"
    return "free-slots" if were_free(detail) else "last-wave"


def idle_advice(detail: Detail) -> Advice:
    """What to do about slots that a group left idle, in any framework."""
    if detail.with_data < detail.facts.slots:
        return MoreTasks()
    if were_bound(detail):
        return RelaxPlacement()
    if were_free(detail):
        return InspectTaskWaits()
    return SpreadInput() if is_uneven(detail) else SmallerTasks()


def were_free(detail: Detail) -> bool:
    """Whether lanes were idle while units of a group waited: a last wave leaves none idle for longer than its longest
    unit."""
    facts = detail.facts
    return facts.idle_ms > facts.slots * facts.longest_ms


def were_bound(detail: Detail) -> bool:
    """Whether lanes were idle while units of a group waited for the workers that have their data."""
    return were_free(detail) and detail.at_home > detail.facts.units / 2


def is_uneven(detail: Detail) -> bool:
    """Whether one unit of a group reads clearly more than most."""
    skew = detail.facts.skew_bytes
    return skew is not None and skew > MORE


def starting_units(detail: Detail) -> list[StartingStage]:
    """Units so short that handing them out takes a good part of their time.

    Evidence: that share of their time was measured.  Contradicted by no more units than slots, of which each is handed
    out once, and where it was the start of few units, such as the first of their workers, that took so long.
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
    details: Sequence[Detail],
    neighbours: Sequence[Neighbours],
    cores_per_slot: float,
    throttled: Mapping[str, float] | None = None,
) -> list[ShortOfCpus]:
    """Units that could have run and had no CPU: for other programs on the machine, a quota, or too many slots.

    `cores_per_slot` is the most that workers were seen to use, inf where they were at no limit; `throttled` is, by
    group, in which share of the quota's periods meanwhile their container had used it up, where that was measured.  A
    unit for which another process computes has no CPU itself.
    """
    mine = [each for each in details if each.ready_ms > 0 and not each.delegates]
    ready_ms = sum(each.ready_ms for each in mine)
    cpu_ms = sum(each.facts.resource_ms[CPU] for each in mine)
    if cpu_ms < STARVED * (cpu_ms - ready_ms) or not ready_ms:
        return []
    cost_ms = sum(each.facts.path_ms * each.ready_ms / each.facts.unit_ms for each in mine)
    held_back = sum(each.ready_ms * (throttled or {}).get(each.facts.id, 0.0) for each in mine) / ready_ms
    if held_back >= HELD_BACK:  # whatever else was on the machine, this is what held them back
        advice = MoreCpu(larger_limit=True, own_machines=False, slots="same")
        return [ShortOfCpus(cost_ms, "measured", advice, ready_ms, cpu_ms, throttled_share=held_back)]
    limit = cores_per_slot if np.isfinite(cores_per_slot) else None
    others, processors = _crowd(mine, ready_ms, neighbours) or (None, None)
    is_known = limit is not None or others is not None
    advice = MoreCpu(limit is not None, others is not None, "fewer" if is_known else "fewer-than-cores")
    return [ShortOfCpus(cost_ms, "measured", advice, ready_ms, cpu_ms, None, limit, others, processors)]


def _crowd(details: Sequence[Detail], ready_ms: float, neighbours: Sequence[Neighbours]) -> tuple[float, float] | None:
    """Cores that other programs used while units waited for a CPU, and those of the machine; None where these had few.

    A container sees its whole machine, and not whose the other containers on it are.
    """
    crowds = {each.group: each for each in neighbours}
    crowded = [(each.ready_ms * crowd.crowded, crowd) for each in details if (crowd := crowds.get(each.facts.id))]
    crowded_ms = sum(ms for ms, _ in crowded)
    if crowded_ms < ready_ms / 2:
        return None
    others = sum(ms * crowd.others_cores for ms, crowd in crowded) / crowded_ms
    return others, sum(ms * crowd.processors for ms, crowd in crowded) / crowded_ms
