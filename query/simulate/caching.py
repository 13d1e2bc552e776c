"""What workers keep in memory between groups, and units that read it anew because it was not there any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.execution.dag import AT_HOME, ELSEWHERE
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.results.refusals import CacheFull, CacheTooSmall, Refusal
from crystalperf.query.trace.arrays import members, over
from crystalperf.query.trace.records import Floats

QUICKEST = 0.25
"""Units that found what they read in memory take as long as this share of them do at most, had all found it: those that
did not are in the way of the others too."""

ROOM_SAFE = 0.8
"""Share of the room for what workers keep up to which all of it finds a place: parts are not spread evenly, and while
one is unpacked it needs room twice."""


def anew(execution: Execution) -> NDArray[np.bool_]:
    """Which units read files for what others of their group found in their worker's memory, (units,)."""
    volumes, group = execution.volumes, execution.units.group
    keeps = np.bincount(group, volumes.kept > 0, len(execution.dag.groups)) > 0
    found: NDArray[np.bool_] = keeps[group] & (volumes.kept == 0) & (volumes.input > 0)
    return found


def anew_ms(execution: Execution) -> Floats:
    """How much longer each unit took, at most, for want of what was to be in memory, (units,)."""
    units, volumes, again = execution.units, execution.volumes, anew(execution)
    found = np.zeros(len(units))
    if not again.any():
        return found
    for mine in members(units.group, len(execution.dag.groups)):
        if again[mine].any():
            takes = units.duration_ms[mine]
            found[mine] = np.maximum(takes - np.quantile(takes[volumes.kept[mine] > 0], QUICKEST), 0.0)
    return found


def with_room(execution: Execution, times: float) -> Execution:
    """The execution with `times` as much room, more than 1, for what workers keep, which had not enough.

    What a worker keeps is as much as it has room for, so of what is read so many times as much is found, until all of
    it is.  As many of the units that read anew find it, every so many-th; the others do as before.
    """
    again, spared = anew(execution), spared_share(execution, times)
    rank = np.zeros(len(again))
    rank[again] = np.arange(again.sum())
    finds = np.floor((rank + 1.0) * spared) > np.floor(rank * spared)
    share = np.where(again, finds, spared)  # those that found it are the less in each other's way
    found = _spared(execution, anew_ms(execution) * share)
    units, volumes, now = found.units, found.volumes, again & finds
    placement = np.where(now & (units.placement == ELSEWHERE), AT_HOME, units.placement)
    volumes = replace(volumes, kept=np.where(now, volumes.input, volumes.kept), far=np.where(now, 0, volumes.far))
    return replace(found, units=replace(units, placement=placement), volumes=volumes)


def spared_share(execution: Execution, times: float) -> float:
    """Of the units that read anew, the share that finds what it reads in `times` as much room."""
    again = anew(execution)
    found = int(concerned(execution).sum()) - int(again.sum())
    return min(found * (times - 1.0) / int(again.sum()), 1.0) if again.any() else 0.0


def concerned(execution: Execution) -> NDArray[np.bool_]:
    """Which units are of groups of which some read anew, (units,)."""
    group = execution.units.group
    found: NDArray[np.bool_] = (np.bincount(group, anew(execution), len(execution.dag.groups)) > 0)[group]
    return found


def _spared(execution: Execution, less_ms: Floats) -> Execution:
    """Units that take so much less time; memory that was full is why they computed, and collected garbage, as much."""
    units, volumes = execution.units, execution.volumes
    left = 1.0 - over(less_ms, units.duration_ms)
    volumes = replace(volumes, on_cpu_ms=volumes.on_cpu_ms * left, gc_ms=volumes.gc_ms * left)
    return replace(execution, units=replace(units, parts_ms=units.parts_ms * left[:, None]), volumes=volumes)


def more_room(execution: Execution, world: World) -> float:
    """How many times as much room the workers of a changed world have, all of them, for what they keep."""
    before, after = usable_bytes(execution, world)
    return world.ratio("workers") * (after / before if before > 0 else world.ratio("memory"))


def usable_bytes(execution: Execution, world: World) -> tuple[float, float]:
    """What a worker's units and what it keeps have of its memory, as recorded and in the changed world; 0 where the run
    does not tell."""
    memory, rule = float(execution.recorded.get("memory") or 0.0), execution.planner.memory
    sizes = memory, memory * world.ratio("memory")
    before, after = (each if rule is None else max(rule.usable(each, execution.properties), 0.0) for each in sizes)
    return before, after


def kept_bytes(execution: Execution) -> float:
    """What a group that reads what workers kept read of it, the median: so much they have to have room for.

    A group may read the same twice, so the most that one read may be more than was there.
    """
    kept = np.bincount(execution.units.group, execution.volumes.kept, len(execution.dag.groups))
    return float(np.median(kept[kept > 0])) if kept.any() else 0.0


def cache_refusal(execution: Execution, world: World) -> Refusal | None:
    """Why nothing tells how much longer a run takes whose workers would have no room for what they keep, or None."""
    ratio = world.ratio("workers") * world.ratio("memory")
    if ratio >= 1 or not (kept := kept_bytes(execution)):
        return None
    if anew(execution).any():
        return CacheFull()
    workers = execution.recorded.get("workers")
    before, after = usable_bytes(execution, world)
    if not before or not workers:
        return None
    room = after * workers * world.ratio("workers")
    if kept <= ROOM_SAFE * room or kept > before * workers:
        return None
    return CacheTooSmall(float(kept), float(room))
