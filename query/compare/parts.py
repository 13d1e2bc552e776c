"""Causes with their evidence: from the effects of a cause to a part of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import OTHER
from crystalperf.query.compare.accounts import COLLECTION, COMPUTE, COMPUTE_WAIT, REPEATED, STARTING, StageAccount
from crystalperf.query.compare.causes import SLOWER, CauseEffect, Sides
from crystalperf.query.results import comparison as results
from crystalperf.query.results.answers import Cause

if TYPE_CHECKING:
    from crystalperf.query.results.kinds import Basis

STAGES_SHOWN = 5
"""Maximum stages that a part lists, those with the largest contributions."""

Numbers = Callable[[StageAccount], float]


@frozen
class Evidence:
    """The effects of one cause, and both sides, as the numbers that its part shows."""

    subject: str
    found: Sequence[CauseEffect]
    sides: Sides
    operators: tuple[results.OperatorChange, ...]

    def sums(self, of: Numbers) -> tuple[float, float]:
        """A number, summed over the stages of the effects, on both sides."""
        one, other = (sum(map(of, _once(self.found, side))) for side in (0, 1))
        return one, other

    def component(self, *names: str) -> tuple[float, float]:
        """The time of tasks on components."""
        return self.sums(lambda stage: sum(stage.task_ms.get(name, 0.0) for name in names))

    def spilled(self) -> tuple[float, float]:
        return self.sums(lambda stage: stage.spill_bytes)

    def read(self) -> tuple[float, float]:
        return self.sums(lambda stage: stage.read_bytes)

    def worst(self, of: Numbers) -> tuple[float, float]:
        """A number of the stage with the largest contribution in the direction of their sum, on both sides."""
        sign = -1.0 if sum(each.ms for each in self.found) < 0 else 1.0
        for one, other in (each.pair for each in sorted(self.found, key=lambda each: -sign * each.ms)):
            if one is not None and other is not None:
                return of(one), of(other)
        return 0.0, 0.0

    def only(self, side: int) -> int:
        """The number of stages that only one side has."""
        return sum(1 for each in self.found if each.pair[side] is not None)


Base = tuple[float, "Basis", tuple[results.StageChange, ...]]
Maker = Callable[[Base, Evidence], results.Part]


def part_of(
    cause: str,
    subject: str,
    found: Sequence[CauseEffect],
    sides: Sides,
    operators: tuple[results.OperatorChange, ...],
) -> results.Part:
    """A cause as a part of the answer; `found` are its effects."""
    base: Base = (sum(each.ms for each in found), _BASIS.get(cause, "modelled"), _stages(found))
    return _MAKERS[cause](base, Evidence(subject, found, sides, operators))


def _slots(base: Base, seen: Evidence) -> results.Part:
    before, after = seen.sides.before, seen.sides.after
    return results.ChangedSlots(*base, before.workers, after.workers, before.slots, after.slots)


def _memory(base: Base, seen: Evidence) -> results.Part:
    memory = seen.sides.before.memory_bytes, seen.sides.after.memory_bytes
    settings = seen.sides.changed("memory")
    return results.ChangedMemory(*base, *memory, *seen.spilled(), *seen.component(COLLECTION), settings)


def _compute_wait(base: Base, seen: Evidence) -> results.Part:
    ratio = math.exp(seen.sides.starting_change)
    change = seen.sides.starting_change
    measured = abs(change) <= SLOWER or change * base[0] <= 0  # faster starts do not explain more time
    basis: Basis = "modelled" if measured else "guessed"
    waits = seen.component(COMPUTE_WAIT) if measured else seen.component(COMPUTE_WAIT, OTHER)
    return results.ComputeWait(base[0], basis, base[2], *waits, None if measured else ratio)


def _lost(base: Base, seen: Evidence) -> results.Part:
    lost = round(seen.sides.before.lost_workers), round(seen.sides.after.lost_workers)
    return results.LostWorkers(*base, *lost, *seen.component(REPEATED))


def _waited(base: Base, seen: Evidence) -> results.Part:
    (cause,) = (each for each in get_args(Cause) if each == seen.subject)
    before, after = seen.sides.before.wait_ms, seen.sides.after.wait_ms
    return results.Waited(*base, cause, before.get(cause, 0.0), after.get(cause, 0.0))


_MAKERS: Mapping[str, Maker] = {
    "input": lambda base, seen: results.ChangedInput(
        *base, seen.sides.before.input_bytes, seen.sides.after.input_bytes
    ),
    "data": lambda base, seen: results.ChangedData(*base, *seen.read()),
    "slots": _slots,
    "memory": _memory,
    "spill": lambda base, seen: results.Spilled(*base, *seen.spilled()),
    "gc": lambda base, seen: results.Collected(*base, *seen.component(COLLECTION)),
    "device-rate": lambda base, seen: results.DeviceRate(
        *base, seen.subject, *seen.component(seen.subject), *seen.read()
    ),
    "cpu-time": lambda base, seen: results.ComputeTime(*base, *seen.component(COMPUTE), *seen.read()),
    "cpu-wait": _compute_wait,
    "delegate": lambda base, seen: results.Delegated(*base, *seen.component(OTHER)),
    "reading": lambda base, seen: results.Reading(*base, *seen.component(OTHER), *seen.read()),
    "version": lambda base, seen: results.ChangedVersion(
        *base, seen.sides.before.version or "", seen.sides.after.version or ""
    ),
    "skew": lambda base, seen: results.ChangedSkew(
        *base, *seen.worst(lambda stage: stage.longest_bytes / max(stage.mean_bytes, 1.0))
    ),
    "balance": lambda base, seen: results.ChangedBalance(*base, *seen.worst(lambda stage: min(stage.use, 1.0))),
    "tasks": lambda base, seen: results.ChangedTasks(
        *base, *seen.sums(lambda stage: stage.tasks), seen.sides.changed("tasks")
    ),
    "task-overhead": lambda base, seen: results.TaskOverhead(
        *base, *seen.component(STARTING), *seen.sums(lambda stage: stage.tasks)
    ),
    "lost-workers": _lost,
    "retries": lambda base, seen: results.Repeated(*base, *seen.component(REPEATED)),
    "plan": lambda base, seen: results.ChangedPlan(*base, seen.operators, seen.sides.changed("plan")),
    "work": lambda base, seen: results.ChangedWork(*base, seen.only(0), seen.only(1)),
    "waiting": _waited,
}
"""The maker of the part of each cause."""

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
