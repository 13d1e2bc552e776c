"""What units take longer for being the first on their worker: it loads and compiles the code that it meets.

A unit is the first of its group on a worker where it was launched before any of that group had ended there, and a
worker's first where nothing at all had.  Other slots make other units the first.  Where a group has both kinds, its own
units tell what that costs; elsewhere it is what recorded runs took (docs/model.md, "Cold code").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from query.model.arrays import before_any, members, over
from query.model.dag import Units
from query.model.execution import Execution, Slots
from query.model.records import Floats, Ints
from query.whatif.replay import Replayed

LATER, FIRST, STARTING = 0, 1, 2
"""Levels: units that come later, the first of their group on their worker, and the first of all there."""

NEW_MS, NEW_MOST = 250.0, 6.0
"""What first units take longer where such code had not run before, and at most how many times what later ones take."""

REPEATED_MS, REPEATED_MOST = 50.0, 2.0
"""The same where a group of the same words had run before."""

STARTING_MS, STARTING_MOST = 2000.0, 10.0
"""What a worker's first units take longer."""

UNPACKS_MOST = 0.9
"""Share of a unit that can go to unpacking it."""

MEASURED_UNITS = 4
"""Fewest first and fewest later units of a group that tell what being first costs it."""

MEASURED_MOST = 1.0
"""First units that take more than this of a later one longer, and more than others do, had other data, or their workers
were still arriving."""

NOTICED = 0.01
"""Share of unit time that being first, or first no more, has to change for it to matter how much exactly."""


@dataclass(frozen=True)
class Cold:
    """By level and group, (3, groups): a unit takes so much longer, ms, at most so many times what it takes later.

    By level, (3,), `unpacks_ms` of that goes to unpacking it with the code that it brings, however short it is.
    """

    more_ms: Floats
    most: Floats
    unpacks_ms: Floats

    def of(self, level: Ints, group: Ints, length_ms: Floats) -> Floats:
        """How much of what units take at a level goes to being first, ms."""
        most = self.most[level, group]
        compiles = np.minimum(self.more_ms[level, group], length_ms * most / (most + 1.0))
        found: Floats = np.maximum(compiles, np.minimum(self.unpacks_ms[level], length_ms * UNPACKS_MOST))
        return found

    def at(self, level: Ints, group: Ints, later_ms: Floats) -> Floats:
        """What units take at a level, of what they take as later ones, ms."""
        compiles = np.minimum(self.more_ms[level, group], later_ms * self.most[level, group])
        found: Floats = later_ms + np.maximum(compiles, self.unpacks_ms[level])
        return found


@dataclass(frozen=True)
class Before:
    """Units of a changed world before any of them is moved to other slots.

    `level` is theirs on the recorded slots and `is_cut` whether they are pieces of recorded units, (units,).  Pieces
    share what being first cost the recorded units of their group: `each_ms`, (groups,).
    """

    level: Ints
    is_cut: NDArray[np.bool_]
    each_ms: Floats

    def moved(self, costs: Cold, level: Ints, group: Ints, length_ms: Floats) -> Floats:
        """What units take at other levels, ms."""
        first = costs.of(self.level, group, length_ms)
        share = np.minimum(self.each_ms[group], costs.of(np.full_like(level, STARTING), group, length_ms))
        moved = costs.at(level, group, length_ms - np.where(self.is_cut, share, first))
        found: Floats = np.where((level == self.level) & ~self.is_cut, length_ms, moved)
        return found


def placed_before(costs: Cold, recorded: Execution, base: Replayed, units: Units, replayed: Replayed) -> Before:
    """How units that are to run would be on the recorded slots, where `replayed` has them."""
    old, count = recorded.units, len(recorded.dag.groups)
    level = levels_of(units.group, replayed, recorded.slots, recorded.starts)
    had, has = (np.bincount(each.group, minlength=count) for each in (old, units))
    was = level if units is old else levels_of(old.group, base, recorded.slots, recorded.starts)
    first_ms = np.bincount(old.group, costs.of(was, old.group, old.duration_ms), count).astype(np.float64)
    return Before(level, (had != has)[units.group], over(first_ms, has.astype(np.float64)))


def levels(group: Ints, worker: Ints, launch_ms: Floats, finish_ms: Floats, starts: bool) -> Ints:
    """The level of each unit, (units,); `starts` is whether workers had run nothing before."""
    place = group * (int(worker.max(initial=-1)) + 2) + worker + 1
    found = np.where(before_any(place, launch_ms, finish_ms), FIRST, LATER)
    return np.where(before_any(worker + 1, launch_ms, finish_ms), STARTING, found) if starts else found


def levels_of(group: Ints, replayed: Replayed, slots: Slots, starts: bool) -> Ints:
    """The same in a replay."""
    return levels(group, slots.worker[replayed.slot], replayed.launch_ms, replayed.finish_ms, starts)


def cold(execution: Execution, base: Replayed, lasting_ms: Floats | None = None) -> Cold | None:
    """What being first costs the groups of a scope; None where one operator follows the other, each of another kind,
    and where the framework's workers are not known to load code as they meet it.

    `lasting_ms` is what is compared, the units' durations where it is not given: of a worker short of CPU these tell
    who waited longer, and the CPU time alone what had to be done.
    """
    units, count = execution.units, len(execution.dag.groups)
    if not execution.framework.loads_code or execution.framework.in_order or not len(units):
        return None
    took_ms = units.duration_ms if lasting_ms is None else lasting_ms
    level = levels_of(units.group, base, execution.slots, execution.starts)
    more, most = _usual(execution)
    started = []
    for number, mine in enumerate(members(units.group, count)):
        starting, first, later = (mine[level[mine] == each] for each in (STARTING, FIRST, LATER))
        rest = later if len(later) > 1 else first
        if len(starting) and len(rest) > 1:
            started.append(float(np.median(units.duration_ms[starting]) - np.median(units.duration_ms[rest])))
        if min(len(first), len(later)) >= MEASURED_UNITS and (one := float(np.median(took_ms[later]))) > 0:
            usual_ms = float(np.median(units.duration_ms[later]))
            most[FIRST, number] = max(MEASURED_MOST, more[FIRST, number] / usual_ms)
            times = float(np.median(took_ms[first])) / one - 1.0
            more[FIRST, number] = min(max(times, 0.0), most[FIRST, number]) * usual_ms
    if started:
        more[STARTING] = float(np.median(started))
    more[STARTING] = np.maximum(more[STARTING], more[FIRST])
    overhead = execution.volumes.overhead_ms
    others, unpacks = overhead[level != STARTING], np.zeros(3)
    if (level == STARTING).any() and len(others):
        unpacks[STARTING] = max(float(np.median(overhead[level == STARTING]) - np.median(others)), 0.0)
    return Cold(more, np.maximum(most, most[FIRST]), unpacks)


def _usual(execution: Execution) -> tuple[Floats, Floats]:
    """What being first costs in recorded runs, (3, groups): ms, and times what units take later."""
    more, most = np.zeros((3, len(execution.dag.groups))), np.ones((3, len(execution.dag.groups)))
    if execution.repeated is not None:
        more[FIRST] = np.where(execution.repeated, REPEATED_MS, NEW_MS)
        most[FIRST] = np.where(execution.repeated, REPEATED_MOST, NEW_MOST)
        more[STARTING], most[STARTING] = STARTING_MS, STARTING_MOST
    return more, most
