"""Findings about losses: lost workers, waiting for replacements, and wasted work of failed or killed tasks.

The conventions are those of query.diagnose.findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.outcome import Ended, merged_reasons
from crystalperf.query.results.advice import (
    Advice,
    AvoidExhaustion,
    FreeClusterCapacity,
    InspectEndedTasks,
    ReadWorkerLog,
    StartWorkersSooner,
)
from crystalperf.query.results.answers import LostWorker
from crystalperf.query.results.findings import EndReason, Loss, LostWorkers, NoWorker, Wasted
from crystalperf.query.trace.arrays import median


def no_worker(
    advisor: Advisor, waited_ms: float, first_worker_ms: float | None, lost: Sequence[LostWorker], lost_wait_ms: float
) -> list[NoWorker]:
    """Time without a worker on the critical path, `lost_wait_ms` of it after the last worker was lost."""
    first_ms = first_worker_ms or None
    if lost_wait_ms <= 0:
        return [NoWorker(waited_ms, "measured", StartWorkersSooner(), ever_came=True, first_worker_ms=first_ms)]
    return [NoWorker(waited_ms, "measured", _after_loss(advisor, lost), True, first_ms, lost_wait_ms, _loss(lost))]


def never_a_worker(waited_ms: float) -> list[NoWorker]:
    """Time that stages waited for a worker in a run where none ever started."""
    return [NoWorker(waited_ms, "measured", FreeClusterCapacity(), ever_came=False)]


def lost_workers(
    advisor: Advisor, lost: Sequence[LostWorker], workers: int, short_ms: float, slots: int
) -> list[LostWorkers]:
    """Lost workers: the cost of repeated work, and of running on fewer slots afterwards.

    `short_ms` is the maximum time of the critical path that the lost slots would have saved.
    """
    if not lost:
        return []
    redone, recomputed_ms = sum(each.recomputed_tasks for each in lost), sum(each.recomputed_ms for each in lost)
    cost_ms = short_ms + recomputed_ms / max(slots, 1)
    return [
        LostWorkers(
            cost_ms, "modelled", _after_loss(advisor, lost), _loss(lost), workers, redone, recomputed_ms, short_ms
        )
    ]  # fmt: skip


def _loss(lost: Sequence[LostWorker]) -> Loss:
    lived_ms = median([each.lost_ms - each.added_ms for each in lost])
    return Loss(tuple(each.worker for each in lost), lived_ms, lost[0].why)


def _after_loss(advisor: Advisor, lost: Sequence[LostWorker]) -> Advice:
    exhausted = next((kind for each in lost if each.why and (kind := advisor.exhausted_memory(each.why))), None)
    return ReadWorkerLog(lost[0].worker, lost[0].host) if exhausted is None else AvoidExhaustion(exhausted)


def wasted(advisor: Advisor, ended: Sequence[Ended], slots: int) -> list[Wasted]:
    """Wasted work: tasks that failed, and tasks that were killed, each with the most common reasons.

    Killed tasks did not fail: a copy was faster, or their stage had ended.
    """
    found = []
    statuses: tuple[Literal["failed", "killed"], ...] = ("failed", "killed")
    for status in statuses:
        alike = [
            each
            for each in ended
            if each.status == status
            and not advisor.was_cancelled(each.reason or "")
            and not advisor.was_superseded(each.reason or "")
        ]
        if not alike or slots <= 0:
            continue
        reasons = tuple(EndReason(*each) for each in merged_reasons(alike))
        tasks, task_ms = sum(each.tasks for each in alike), sum(each.task_ms for each in alike)
        exhausted = next((kind for each in reasons if (kind := advisor.exhausted_memory(each.reason))), None)
        advice = InspectEndedTasks(status) if exhausted is None else AvoidExhaustion(exhausted)
        found.append(Wasted(task_ms / slots, "modelled", advice, status, tasks, task_ms, reasons))
    return found
