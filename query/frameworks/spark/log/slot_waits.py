"""Stages that Spark submitted, and that waited for slots although others were free.

Spark launches the tasks of a barrier stage together, and those of a resource profile on executors of that profile only.
Until such slots are there, the driver has nothing to do for the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MIN_WAIT_MS = 1000.0
"""Minimum time from the submission of a stage to its first task: less is the driver's, which serializes tasks."""

BARRIER, PROFILE, EXECUTORS, UNKNOWN = "barrier", "profile", "executors", "unknown"
"""Reasons why a stage waited: it needs slots for all of its tasks at once, executors of its profile, or executors that
came later; or the log does not say, and no task ever started."""

Floats = npt.NDArray[np.float64]


class Submitted(NamedTuple):
    """A stage attempt that was submitted; times in ms, `first_ms` None if no task ever started."""

    key: tuple[int, int]
    submit_ms: float
    first_ms: float | None
    tasks: int
    barrier: bool
    slots: Mapping[str, int]
    """slots that executors have for its tasks, by the names of those that may run them"""


class Provider(NamedTuple):
    """An executor of a profile, and when it was there, ms."""

    name: str
    profile: int
    added_ms: float
    removed_ms: float


class Ran(NamedTuple):
    """All tasks: the position of their executor's name in `executors`, and their times, ms."""

    executor: npt.NDArray[np.int64]
    executors: Sequence[str | None]
    launch_ms: Floats
    finish_ms: Floats


class SlotWait(NamedTuple):
    """Why a stage waited, the slots that it could use when it was submitted, and those that were free."""

    why: str
    slots: int
    free: int


def slot_waits(
    stages: Sequence[Submitted],
    providers: Sequence[Provider],
    ran: Ran,
    first_on: Callable[[tuple[int, int]], set[str | None]],
    end_ms: float,
) -> Mapping[tuple[int, int], SlotWait]:
    """The stages that waited for slots; `first_on` has the executors of a stage's first tasks."""
    found = {}
    for stage in stages:
        if (end_ms if stage.first_ms is None else stage.first_ms) - stage.submit_ms < MIN_WAIT_MS:
            continue
        able = [each for each in providers if stage.slots.get(each.name)]
        there = [each for each in able if each.added_ms <= stage.submit_ms < each.removed_ms]
        slots = sum(stage.slots[each.name] for each in there)
        free = max(slots - _running(ran, {each.name for each in there}, stage.submit_ms), 0)
        profiles = len({each.profile for each in providers}) if able else 0
        why = _why(stage, profiles, slots, free, first_on(stage.key), {each.name for each in there})
        if why is not None and providers:  # without any, nothing could run at all: the run waited for its executors
            found[stage.key] = SlotWait(why, slots, free)
    return found


def _why(
    stage: Submitted,
    profiles: int,
    slots: int,
    free: int,
    first_on: set[str | None],
    there: set[str],
) -> str | None:
    """`profiles` is the number of profiles of the run's executors; 0 if none of them may run the stage."""
    if stage.barrier and free < stage.tasks:
        return BARRIER
    if free == 0 and profiles != 1:
        return PROFILE
    if stage.first_ms is None:
        return UNKNOWN if slots else None
    return EXECUTORS if free > 0 and not first_on & there else None


def most_at_once(slots: Iterable[tuple[float, float | None, int]]) -> int:
    """The most slots that were there at a time, of (added, removed or None, slots) of executors; ms.

    An executor that is added when another is removed replaces it.
    """
    known = list(slots)
    came = [(added, 1, each) for added, _, each in known]
    went = [(removed, 0, -each) for _, removed, each in known if removed is not None]
    count = most = 0
    for _, _, change in sorted(came + went):
        count += change
        most = max(most, count)
    return most


def _running(ran: Ran, names: set[str], at_ms: float) -> int:
    """The tasks that ran on some executors at a moment."""
    places = [place for place, name in enumerate(ran.executors) if name in names]
    open_then = (ran.launch_ms <= at_ms) & (ran.finish_ms > at_ms)
    return int((open_then & np.isin(ran.executor, places)).sum())
