"""Causes with their evidence: from the effects of a cause to a part of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from crystalperf.query.compare.accounts import COLLECTION, COMPUTE, COMPUTE_WAIT, REPEATED, STARTING, StageAccount
from crystalperf.query.results import comparison as results
from crystalperf.query.results.answers import Cause

if TYPE_CHECKING:
    from crystalperf.query.compare.causes import CauseEffect, Sides
    from crystalperf.query.results.kinds import Basis

STAGES_SHOWN = 5
"""Maximum stages that a part lists, those with the largest contributions."""

Numbers = Callable[[StageAccount], float]


def part_of(
    cause: str,
    subject: str,
    found: Sequence[CauseEffect],
    sides: Sides,
    operators: tuple[results.OperatorChange, ...],
) -> results.Part:
    """A cause as a part of the answer; `found` are its effects."""
    ms, basis = sum(each.ms for each in found), _BASIS.get(cause, "modelled")
    base = (ms, basis, _stages(found))
    before, after = sides.before, sides.after

    def sums(of: Numbers) -> tuple[float, float]:
        one, other = (_once(found, side) for side in (0, 1))
        return sum(map(of, one)), sum(map(of, other))

    def component(name: str) -> tuple[float, float]:
        return sums(lambda stage: stage.task_ms.get(name, 0.0))

    if cause == "input":
        return results.ChangedInput(*base, before.input_bytes, after.input_bytes)
    if cause == "data":
        return results.ChangedData(*base, *sums(lambda stage: stage.read_bytes))
    if cause == "slots":
        return results.ChangedSlots(*base, before.workers, after.workers, before.slots, after.slots)
    if cause == "memory":
        return results.ChangedMemory(
            *base,
            before.memory_bytes,
            after.memory_bytes,
            *sums(lambda stage: stage.spill_bytes),
            *component(COLLECTION),
            sides.changed("memory"),
        )
    if cause == "spill":
        return results.Spilled(*base, *sums(lambda stage: stage.spill_bytes))
    if cause == "gc":
        return results.Collected(*base, *component(COLLECTION))
    if cause == "device-rate":
        return results.DeviceRate(*base, subject, *component(subject), *sums(lambda stage: stage.read_bytes))
    if cause == "cpu-time":
        return results.ComputeTime(*base, *component(COMPUTE))
    if cause == "cpu-wait":
        return results.ComputeWait(*base, *component(COMPUTE_WAIT))
    if cause == "version":
        return results.ChangedVersion(*base, before.version or "", after.version or "")
    if cause == "skew":
        return results.ChangedSkew(
            *base, *_worst(found, lambda stage: stage.longest_bytes / max(stage.mean_bytes, 1.0))
        )
    if cause == "balance":
        return results.ChangedBalance(*base, *_worst(found, lambda stage: min(stage.use, 1.0)))
    if cause == "tasks":
        return results.ChangedTasks(*base, *sums(lambda stage: stage.tasks), sides.changed("tasks"))
    if cause == "task-overhead":
        return results.TaskOverhead(*base, *component(STARTING))
    if cause == "lost-workers":
        lost = round(before.lost_workers), round(after.lost_workers)
        return results.LostWorkers(*base, *lost, *component(REPEATED))
    if cause == "retries":
        return results.Repeated(*base, *component(REPEATED))
    if cause == "plan":
        return results.ChangedPlan(*base, operators, sides.changed("plan"))
    if cause == "work":
        only = [sum(1 for each in found if each.pair[side] is not None) for side in (0, 1)]
        return results.ChangedWork(*base, *only)
    for each in get_args(Cause):
        if cause == "waiting" and each == subject:
            return results.Waited(*base, each, before.wait_ms.get(each, 0.0), after.wait_ms.get(each, 0.0))
    raise ValueError(cause)


_BASIS: Mapping[str, Basis] = {"waiting": "measured", "work": "measured", "plan": "measured"}


def _stages(found: Sequence[CauseEffect]) -> tuple[results.StageChange, ...]:
    """The stages with the largest contributions."""
    changes = []
    for each in found:
        one, other = each.pair
        some = other or one
        if some is not None:
            changes.append(
                results.StageChange(one.id if one else None, other.id if other else None, some.name, each.ms)
            )
    changes.sort(key=lambda each: -abs(each.ms))
    return tuple(changes[:STAGES_SHOWN])


def _once(found: Sequence[CauseEffect], side: int) -> list[StageAccount]:
    """The stages of one side, each once."""
    return list({stage.id: stage for each in found if (stage := each.pair[side]) is not None}.values())


def _worst(found: Sequence[CauseEffect], of: Numbers) -> tuple[float, float]:
    """A number of the stage with the largest contribution, on both sides."""
    pairs = [each for each in found if all(each.pair)]
    one, other = max(pairs, key=lambda each: abs(each.ms)).pair
    assert one is not None
    assert other is not None
    return of(one), of(other)
