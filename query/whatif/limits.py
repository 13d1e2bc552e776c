"""What the model does not know: questions beyond its range get a bound instead of a figure."""

from __future__ import annotations

from indexes import resources
from query.model.execution import Execution
from query.model.world import KEY_OF_RESOURCE, World

MOST_SLOTS_RATIO = 16
"""Slots over recorded slots, or the reverse, beyond which nothing recorded speaks for the scheduler and the driver."""

MOST_EXECUTORS_RATIO = 8
"""The same for executors of a run that shuffles: each task would fetch from so many more senders."""

UNSEEN_SHARE = 0.2
"""Share of task time that no resource accounts for, from which a device that was never seen may be what it was."""

SEEN_SHARE = 0.02
"""Share of task time on a device from which the run says something about it."""


def beyond(execution: Execution, world: World) -> str | None:
    """Why a question is outside the model's range, or None.

    Every speed of a device is inside: its time shrinks towards nothing, or grows with an interval that does.
    """
    slots = world.ratio("cores") * world.ratio("executors")
    if max(slots, 1 / slots) > MOST_SLOTS_RATIO:
        return (
            f"{_times(slots)} the task slots: so far from what was recorded ({MOST_SLOTS_RATIO} times either way),"
            " nothing tells how scheduling and the driver would do"
        )
    executors, shuffles = world.ratio("executors"), execution.volumes.remote.any() or execution.volumes.local.any()
    if executors > 1 and shuffles and not execution.volumes.remote.any():
        return (
            "on its recorded executors all shuffled data were local; with more of them most would cross the network,"
            " and nothing in the run tells how long that takes"
        )
    if executors > MOST_EXECUTORS_RATIO and shuffles:
        return (
            f"{_times(executors)} the executors: tasks would fetch shuffled data from more than"
            f" {MOST_EXECUTORS_RATIO} times as many senders as in any stage of the run"
        )
    return None


def unseen(execution: Execution, world: World) -> str | None:
    """The changed device that the run says nothing about, or None: without samples, Spark times only some of it."""
    if execution.has_samples or execution.evidence.unseen <= UNSEEN_SHARE:
        return None
    seen = execution.tasks.parts_ms.sum(axis=0) / execution.tasks.parts_ms.sum()
    for position, name in enumerate(resources()):
        key = KEY_OF_RESOURCE[name]
        if name != "cpu" and world.ratio(key) != 1 and seen[position] < SEEN_SHARE:
            return key
    return None


def _times(ratio: float) -> str:
    return f"{ratio:g} times" if ratio >= 1 else f"1/{1 / ratio:g} of"
