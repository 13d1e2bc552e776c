"""What units take longer for being the first on their worker: it loads and compiles the code that it meets.

A unit is the first of its group on a worker where it was launched before any of that group had ended there, and a
worker's first where nothing at all had.  Other slots make other units the first.  Where a group has both kinds, its own
units tell what that costs; elsewhere it is what recorded runs took (docs/model.md, "Cold code").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.execution.dag import Units
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.slots import Slots
from crystalperf.query.simulate.replay import Replayed
from crystalperf.query.trace.arrays import before_any, members, over
from crystalperf.query.trace.records import Floats, Ints

LATER, FIRST, STARTING = 0, 1, 2
"""Levels: units that come later, the first of their group on their worker, and the first of all there."""

NEW_MS, NEW_MOST = 250.0, 6.0
"""What first units take longer where such code had not run before, and at most how many times what later ones take."""

REPEATED_MS, REPEATED_MOST = 50.0, 2.0
"""The same where a group of the same words had run before."""

STARTING_MS, STARTING_MOST = 2000.0, 10.0
"""What a worker's first units take longer, beyond unpacking.  Where that is known and they read no files, it is no more
than for other code that is new."""

UNPACKS_MOST = 0.9
"""Share of a unit that can go to unpacking it."""

SHARED = 0.05
"""So much longer, of what it takes alone, does unpacking take for each other worker that starts at the same time, for
all of them fetch the code from one coordinator."""

MEASURED_UNITS = 4
"""Fewest first and fewest later units of a group that tell what being first costs it."""

MEASURED_MOST = 1.0
"""First units that take more than this of a later one longer, and more than others do, had other data, or their workers
were still arriving."""

NOTICED = 0.01
"""Share of unit time that being first, or first no more, has to change for it to matter how much exactly."""


@dataclass(frozen=True)
class Firsts:
    """The level of each unit, and how many other workers start at about the time that its own does; (units,) each, 0
    of units that are not the first of all on theirs."""

    level: Ints
    others: Ints


@dataclass(frozen=True)
class Cold:
    """By level and group, (3, groups): a unit takes so much longer, ms, at most so many times what it takes later.

    By level, (3,), it takes `unpacks_ms` more to unpack it with the code that it brings, however short it is, where its
    worker starts alone; workers that start within `together_ms` of each other share the way there.
    """

    more_ms: Floats
    most: Floats
    unpacks_ms: Floats
    together_ms: float

    def firsts(self, group: Ints, replayed: Replayed, slots: Slots, starts: bool) -> Firsts:
        """Which units are the first in a replay."""
        level = levels_of(group, replayed, slots, starts)
        return Firsts(level, others(level, slots.worker[replayed.slot], replayed.launch_ms, self.together_ms))

    def unpacking_ms(self, firsts: Firsts) -> Floats:
        """How long it takes to unpack units, (units,)."""
        found: Floats = self.unpacks_ms[firsts.level] * (1.0 + SHARED * firsts.others)
        return found

    def of(self, firsts: Firsts, group: Ints, length_ms: Floats) -> Floats:
        """How much of what units take goes to being first, ms."""
        most = self.most[firsts.level, group]
        unpacks_ms = np.minimum(self.unpacking_ms(firsts), length_ms * UNPACKS_MOST)
        compiles_ms = np.minimum(self.more_ms[firsts.level, group], (length_ms - unpacks_ms) * most / (most + 1.0))
        found: Floats = unpacks_ms + compiles_ms
        return found

    def at(self, firsts: Firsts, group: Ints, later_ms: Floats) -> Floats:
        """What units take, of what they take as later ones, ms."""
        compiles_ms = np.minimum(self.more_ms[firsts.level, group], later_ms * self.most[firsts.level, group])
        found: Floats = later_ms + compiles_ms + self.unpacking_ms(firsts)
        return found


@dataclass(frozen=True)
class Before:
    """Units of a changed world before any of them is moved to other slots.

    `firsts` are they on the recorded slots and `is_cut` whether they are pieces of recorded units, (units,).  Pieces
    share what being first cost the recorded units of their group: `each_ms`, (groups,).
    """

    firsts: Firsts
    is_cut: NDArray[np.bool_]
    each_ms: Floats

    def moved(self, costs: Cold, firsts: Firsts, group: Ints, length_ms: Floats) -> Floats:
        """What units take where others are the first, ms."""
        first, starting = costs.of(self.firsts, group, length_ms), np.full_like(firsts.level, STARTING)
        most_ms = costs.of(Firsts(starting, np.zeros_like(starting)), group, length_ms)
        share = np.minimum(self.each_ms[group], most_ms)
        moved = costs.at(firsts, group, length_ms - np.where(self.is_cut, share, first))
        same = (firsts.level == self.firsts.level) & (firsts.others == self.firsts.others) & ~self.is_cut
        found: Floats = np.where(same, length_ms, moved)
        return found


def placed_before(costs: Cold, recorded: Execution, base: Replayed, units: Units, replayed: Replayed) -> Before:
    """How units that are to run would be on the recorded slots, where `replayed` has them."""
    old, count = recorded.units, len(recorded.dag.groups)
    firsts = costs.firsts(units.group, replayed, recorded.slots, recorded.starts)
    had, has = (np.bincount(each.group, minlength=count) for each in (old, units))
    was = firsts if units is old else costs.firsts(old.group, base, recorded.slots, recorded.starts)
    first_ms = np.bincount(old.group, costs.of(was, old.group, old.duration_ms), count).astype(np.float64)
    return Before(firsts, (had != has)[units.group], over(first_ms, has.astype(np.float64)))


def levels(group: Ints, worker: Ints, launch_ms: Floats, finish_ms: Floats, starts: bool) -> Ints:
    """The level of each unit, (units,); `starts` is whether workers had run nothing before."""
    place = group * (int(worker.max(initial=-1)) + 2) + worker + 1
    found = np.where(before_any(place, launch_ms, finish_ms), FIRST, LATER)
    return np.where(before_any(worker + 1, launch_ms, finish_ms), STARTING, found) if starts else found


def others(level: Ints, worker: Ints, launch_ms: Floats, together_ms: float) -> Ints:
    """How many other workers start within `together_ms` of each unit's, (units,)."""
    found, starting = np.zeros(len(level), dtype=np.int64), np.flatnonzero(level == STARTING)
    if len(starting):
        mine, place = np.unique(worker[starting], return_inverse=True)
        began = np.full(len(mine), np.inf)
        np.minimum.at(began, place, launch_ms[starting])
        ordered = np.sort(began)
        until = np.searchsorted(ordered, began + together_ms, side="right")
        since = np.searchsorted(ordered, began - together_ms, side="left")
        found[starting] = (until - since - 1)[place]
    return found


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
    if not execution.planner.loads_code or execution.in_order or not len(units):
        return None
    took_ms = units.duration_ms if lasting_ms is None else lasting_ms
    level = levels_of(units.group, base, execution.slots, execution.starts)
    more, most = _usual(execution)
    starts, overhead_ms = level == STARTING, execution.volumes.overhead_ms
    unpacks_ms, together_ms, longer_ms = np.zeros(3), 0.0, np.zeros(len(units))
    if starts.any() and not starts.all():
        together_ms = float(np.median(overhead_ms[starts]))
        longer_ms[starts] = np.maximum(overhead_ms[starts] - np.median(overhead_ms[~starts]), 0.0)
        beside = others(level, execution.slots.worker[base.slot], base.launch_ms, together_ms)
        unpacks_ms[STARTING] = np.median(longer_ms[starts] / (1.0 + SHARED * beside[starts]))
    reads = np.bincount(units.group, reads_files(execution), count) > 0
    if unpacks_ms[STARTING] > 0:
        more[STARTING], most[STARTING] = (np.where(reads, each[STARTING], each[FIRST]) for each in (more, most))
    unpacked_ms = units.duration_ms - longer_ms
    started = []
    for number, mine in enumerate(members(units.group, count)):
        starting, first, later = (mine[level[mine] == each] for each in (STARTING, FIRST, LATER))
        rest = later if len(later) > 1 else first
        if len(starting) and len(rest) > 1:
            started.append((number, float(np.median(unpacked_ms[starting]) - np.median(unpacked_ms[rest]))))
        if min(len(first), len(later)) >= MEASURED_UNITS and (one := float(np.median(took_ms[later]))) > 0:
            usual_ms = float(np.median(units.duration_ms[later]))
            most[FIRST, number] = max(MEASURED_MOST, more[FIRST, number] / usual_ms)
            times = float(np.median(took_ms[first])) / one - 1.0
            more[FIRST, number] = min(max(times, 0.0), most[FIRST, number]) * usual_ms
    for kind in (reads, ~reads):
        if told := [more_ms for number, more_ms in started if kind[number]]:
            more[STARTING, kind] = np.median(told)
    more[STARTING] = np.maximum(more[STARTING], more[FIRST])
    return Cold(more, np.maximum(most, most[FIRST]), unpacks_ms, together_ms)


def reads_files(execution: Execution) -> NDArray[np.bool_]:
    """Which units read files, (units,)."""
    found: NDArray[np.bool_] = (execution.volumes.input > 0) & (execution.volumes.kept == 0)
    return found


def _usual(execution: Execution) -> tuple[Floats, Floats]:
    """What being first costs in recorded runs, (3, groups): ms, and times what units take later."""
    more, most = np.zeros((3, len(execution.dag.groups))), np.ones((3, len(execution.dag.groups)))
    if execution.repeated is not None:
        more[FIRST] = np.where(execution.repeated, REPEATED_MS, NEW_MS)
        most[FIRST] = np.where(execution.repeated, REPEATED_MOST, NEW_MOST)
        more[STARTING], most[STARTING] = STARTING_MS, STARTING_MOST
    return more, most
