"""Findings about idle slots, tasks that are too short, and tasks that waited for a CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.findings.parts import LITTLE_BYTES, MORE, SKEW, usual_task_ms
from crystalperf.query.diagnose.stage_statistics import CpuContention, StageStats
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
"""A CPU quota is the cause of waiting from this share of throttled periods on, while tasks waited for a CPU."""

IDLE = 0.2
"""Idle slots are reported from this share of a stage's slot time."""

STARTING = 0.2
"""Starting tasks is reported from this share of their time."""


def _waited_ms(detail: StageStats) -> float:
    """How much longer than usual the longest task of a stage took, without more data or CPU time; ms."""
    longest, usual_ms = detail.longest, usual_task_ms(detail)
    if longest.cpu_ms is None or longest.duration_ms <= SKEW * usual_ms:
        return 0.0
    if longest.read_bytes > max(LITTLE_BYTES, MORE * detail.facts.median_bytes):
        return 0.0
    return max(longest.duration_ms - usual_ms - longest.cpu_ms, 0.0)


def idle_slots(advisor: Advisor, detail: StageStats) -> list[IdleStage]:
    """Idle slots while a stage was on the critical path: too few tasks, or a last wave that is half empty.

    Evidence: slots were free while it ran, whatever else ran then; tasks that read almost nothing and ended at once
    do not count as tasks with work.  Contradicted if the framework knows that the work cannot be divided further; time
    in which the longest task waited, and time of starting tasks, are subtracted, because more tasks do not divide them.
    """
    facts = detail.facts
    starting = min(facts.starting_ms / facts.task_ms, 1.0) if facts.task_ms > 0 else 0.0
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


def idle_stage(detail: StageStats, cause: IdleCause, cost_ms: float, idle_share: float, advice: Advice) -> IdleStage:
    """The finding of one stage that left slots idle."""
    facts = detail.facts
    return IdleStage(
        facts.id,
        facts.name,
        cost_ms,
        "modelled",
        advice,
        cause=cause,
        tasks=facts.tasks,
        with_data=detail.with_data,
        slots=facts.slots,
        waves=facts.waves,
        idle_share=idle_share,
        skew_bytes=facts.skew_bytes if is_uneven(detail) else None,
        on_busiest=detail.on_busiest,
    )


def _idle_cause(detail: StageStats, idle_share: float) -> IdleCause | None:
    """The cause of a stage's idle slots; None if few were idle."""
    facts, busy = detail.facts, detail.with_data
    if busy < facts.slots:
        return "empty-tasks" if busy < facts.tasks else "few-tasks"
    if idle_share < IDLE:
        return None
    if were_bound(detail):
        return "bound-to-data"
    return "free-slots" if were_free(detail) else "last-wave"


def idle_advice(detail: StageStats) -> Advice:
    """The advice for a stage's idle slots, for any framework."""
    if detail.with_data < detail.facts.slots:
        return MoreTasks()
    if were_bound(detail):
        return RelaxPlacement()
    if were_free(detail):
        return InspectTaskWaits()
    return SpreadInput() if is_uneven(detail) else SmallerTasks()


def were_free(detail: StageStats) -> bool:
    """Whether slots were idle while tasks of a stage waited: a last wave leaves slots idle for at most the duration of
    its longest task."""
    facts = detail.facts
    return facts.idle_ms > facts.slots * facts.longest_ms


def were_bound(detail: StageStats) -> bool:
    """Whether slots were idle while tasks of a stage waited for the workers that have their data."""
    return were_free(detail) and detail.data_local > detail.facts.tasks / 2


def is_uneven(detail: StageStats) -> bool:
    """Whether a stage has data skew: one task reads clearly more than the median task."""
    skew = detail.facts.skew_bytes
    return skew is not None and skew > MORE


def starting_tasks(detail: StageStats) -> list[StartingStage]:
    """Tasks so short that starting them takes a good part of their time.

    Evidence: the measured share of their time.  Contradicted if there are no more tasks than slots, or if only a few
    tasks took long to start, such as the first of each worker.
    """
    facts = detail.facts
    share = facts.starting_ms / facts.task_ms if facts.task_ms > 0 else 0.0
    if share < STARTING or detail.median_starting < STARTING or facts.tasks <= facts.slots:
        return []
    cost_ms = facts.path_ms * share
    return [
        StartingStage(
            facts.id, facts.name, cost_ms, "measured", FewerTasks(),
            tasks=facts.tasks, share=share, scheduler_delay_ms=facts.scheduler_delay_ms,
        )
    ]  # fmt: skip


def short_of_cpus(
    details: Sequence[StageStats],
    neighbours: Sequence[CpuContention],
    cores_per_slot: float,
    throttled: Mapping[str, float] | None = None,
) -> list[ShortOfCpus]:
    """CPU wait: ready tasks without a CPU, because of other programs on the machine, a quota, or too many slots.

    `cores_per_slot` is the most that workers were seen to use, inf if they were at no limit; `throttled` is, by stage,
    the share of the quota's periods in which its container was throttled, where that was measured.  Tasks whose work is
    delegated to another process do not count.
    """
    waiting = [each for each in details if each.cpu_wait_ms > 0 and not each.delegates]
    cpu_wait_ms = sum(each.cpu_wait_ms for each in waiting)
    cpu_ms = sum(each.facts.resource_ms[CPU] for each in waiting)
    if cpu_ms < STARVED * (cpu_ms - cpu_wait_ms) or not cpu_wait_ms:
        return []
    cost_ms = sum(each.facts.path_ms * each.cpu_wait_ms / each.facts.task_ms for each in waiting)
    held_back = sum(each.cpu_wait_ms * (throttled or {}).get(each.facts.id, 0.0) for each in waiting) / cpu_wait_ms
    if held_back >= HELD_BACK:  # the quota is the cause, whatever else ran on the machine
        advice = MoreCpu(larger_limit=True, own_machines=False, slots="same")
        return [ShortOfCpus(cost_ms, "measured", advice, cpu_wait_ms, cpu_ms, throttled_share=held_back)]
    limit = cores_per_slot if np.isfinite(cores_per_slot) else None
    # Other processes of the job are not other programs, and nothing measures them apart.
    alone = any(each.delegates for each in details)
    others, processors = (None if alone else _contention(waiting, cpu_wait_ms, neighbours)) or (None, None)
    is_known = limit is not None or others is not None
    advice = MoreCpu(limit is not None, others is not None, "fewer" if is_known else "fewer-than-cores")
    return [ShortOfCpus(cost_ms, "measured", advice, cpu_wait_ms, cpu_ms, None, limit, others, processors)]


def _contention(
    details: Sequence[StageStats], cpu_wait_ms: float, neighbours: Sequence[CpuContention]
) -> tuple[float, float] | None:
    """Cores that other programs used while tasks waited for a CPU, and those of the machine; None if these had few.

    A container sees its whole machine, but not the owners of the other containers on it.
    """
    by_stage = {each.stage: each for each in neighbours}
    contended = [
        (each.cpu_wait_ms * other.contended_share, other) for each in details if (other := by_stage.get(each.facts.id))
    ]
    contended_ms = sum(ms for ms, _ in contended)
    if contended_ms < cpu_wait_ms / 2:
        return None
    others = sum(ms * other.others_cores for ms, other in contended) / contended_ms
    return others, sum(ms * other.processors for ms, other in contended) / contended_ms
