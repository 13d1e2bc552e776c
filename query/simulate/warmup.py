"""JVM warm-up: the first units on a worker take longer, because it loads and compiles code at its first use.

A unit is a first unit of its group on a worker if it was launched before any unit of that group had ended there, and a
starting unit of the worker if no unit at all had ended there.  Other slots make other units first.  If a group has both
first and later units, their times give the cost; otherwise it is that of recorded runs (docs/model.md, "Cold code").
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
"""Levels of units: later ones, the first of their group on their worker, and the first of all units there."""

NEW_MS, NEW_MOST = 250.0, 6.0
"""Extra time of first units if their code had not run before, and its maximum as a multiple of a later unit's time."""

REPEATED_MS, REPEATED_MOST = 50.0, 2.0
"""The same if a group of the same words had run before."""

STARTING_MS, STARTING_MOST = 2000.0, 10.0
"""Extra time of a worker's starting units, besides deserialization.  If that is known and they read no files, the extra
time is that of other new code."""

UNPACKS_MOST = 0.9
"""Maximum share of deserialization in a unit's time."""

SHARED = 0.05
"""Relative increase of deserialization time for each other worker that starts at the same time, because all of them
fetch the code from one coordinator."""

MEASURED_UNITS = 4
"""Minimum first units, and minimum later units, of a group to measure its warm-up cost."""

MEASURED_MOST = 1.0
"""Maximum measured extra time, as a multiple of a later unit's time.  First units that take longer, and longer than in
recorded runs, had other data, or their workers were still starting."""

NOTICED = 0.01
"""Minimum share of unit time that moved warm-up changes, from which its uncertainty counts."""


@dataclass(frozen=True)
class Firsts:
    """The level of each unit, and how many other workers start at about the same time as its own; (units,) each.
    `others` is 0 for units that are not starting units."""

    level: Ints
    others: Ints


@dataclass(frozen=True)
class WarmupCost:
    """Warm-up cost by level and group, (3, groups): `more_ms` of extra time, at most `most` times a later unit's time.

    By level, (3,), `unpacks_ms` is the extra time to deserialize a unit with its code, however short the unit is, if
    its worker starts alone; workers that start within `together_ms` of each other share the way from the coordinator.
    """

    more_ms: Floats
    most: Floats
    unpacks_ms: Floats
    together_ms: float

    def firsts(self, group: Ints, replayed: Replayed, slots: Slots, starts: bool) -> Firsts:
        """The first units in a replay."""
        level = levels_of(group, replayed, slots, starts)
        return Firsts(level, others(level, slots.worker[replayed.slot], replayed.launch_ms, self.together_ms))

    def unpacking_ms(self, firsts: Firsts) -> Floats:
        """The extra deserialization time of units, (units,) in ms."""
        found: Floats = self.unpacks_ms[firsts.level] * (1.0 + SHARED * firsts.others)
        return found

    def of(self, firsts: Firsts, group: Ints, length_ms: Floats) -> Floats:
        """The warm-up part of units' durations `length_ms`, ms."""
        most = self.most[firsts.level, group]
        unpacks_ms = np.minimum(self.unpacking_ms(firsts), length_ms * UNPACKS_MOST)
        compiles_ms = np.minimum(self.more_ms[firsts.level, group], (length_ms - unpacks_ms) * most / (most + 1.0))
        found: Floats = unpacks_ms + compiles_ms
        return found

    def at(self, firsts: Firsts, group: Ints, later_ms: Floats) -> Floats:
        """Durations of units with warm-up, from their durations `later_ms` without, ms."""
        compiles_ms = np.minimum(self.more_ms[firsts.level, group], later_ms * self.most[firsts.level, group])
        found: Floats = later_ms + compiles_ms + self.unpacking_ms(firsts)
        return found


@dataclass(frozen=True)
class RecordedWarmup:
    """Warm-up of a scenario's units on the recorded slots.

    `firsts` are the levels of the units there, and `is_cut` is whether they are repartitioned, (units,).  Repartitioned
    units share the warm-up cost of the recorded units of their group equally: `each_ms`, (groups,).
    """

    firsts: Firsts
    is_cut: NDArray[np.bool_]
    each_ms: Floats

    def moved(self, costs: WarmupCost, firsts: Firsts, group: Ints, length_ms: Floats) -> Floats:
        """Durations of units, ms, when `firsts` are the first units."""
        first, starting = costs.of(self.firsts, group, length_ms), np.full_like(firsts.level, STARTING)
        most_ms = costs.of(Firsts(starting, np.zeros_like(starting)), group, length_ms)
        share = np.minimum(self.each_ms[group], most_ms)
        moved = costs.at(firsts, group, length_ms - np.where(self.is_cut, share, first))
        same = (firsts.level == self.firsts.level) & (firsts.others == self.firsts.others) & ~self.is_cut
        found: Floats = np.where(same, length_ms, moved)
        return found


def placed_before(
    costs: WarmupCost, recorded: Execution, base: Replayed, units: Units, replayed: Replayed
) -> RecordedWarmup:
    """The warm-up of a scenario's units on the recorded slots, by their replay there, `replayed`."""
    old, count = recorded.units, len(recorded.dag.groups)
    firsts = costs.firsts(units.group, replayed, recorded.slots, recorded.starts)
    had, has = (np.bincount(each.group, minlength=count) for each in (old, units))
    was = firsts if units is old else costs.firsts(old.group, base, recorded.slots, recorded.starts)
    first_ms = np.bincount(old.group, costs.of(was, old.group, old.duration_ms), count).astype(np.float64)
    return RecordedWarmup(firsts, (had != has)[units.group], over(first_ms, has.astype(np.float64)))


def levels(group: Ints, worker: Ints, launch_ms: Floats, finish_ms: Floats, starts: bool) -> Ints:
    """The level of each unit, (units,); `starts` is whether workers had run nothing before the scope."""
    place = group * (int(worker.max(initial=-1)) + 2) + worker + 1
    found = np.where(before_any(place, launch_ms, finish_ms), FIRST, LATER)
    return np.where(before_any(worker + 1, launch_ms, finish_ms), STARTING, found) if starts else found


def others(level: Ints, worker: Ints, launch_ms: Floats, together_ms: float) -> Ints:
    """The number of other workers that start within `together_ms` of each unit's worker, (units,)."""
    found, starting = np.zeros(len(level), dtype=np.int64), np.flatnonzero(level == STARTING)
    if len(starting):
        workers, place = np.unique(worker[starting], return_inverse=True)
        began = np.full(len(workers), np.inf)
        np.minimum.at(began, place, launch_ms[starting])
        ordered = np.sort(began)
        until = np.searchsorted(ordered, began + together_ms, side="right")
        since = np.searchsorted(ordered, began - together_ms, side="left")
        found[starting] = (until - since - 1)[place]
    return found


def levels_of(group: Ints, replayed: Replayed, slots: Slots, starts: bool) -> Ints:
    """The level of each unit in a replay, (units,)."""
    return levels(group, slots.worker[replayed.slot], replayed.launch_ms, replayed.finish_ms, starts)


def cold(execution: Execution, base: Replayed, lasting_ms: Floats | None = None) -> WarmupCost | None:
    """The warm-up cost of the groups of a scope; None if units run in order, each a different operator, or if the
    framework's workers do not load code at its first use.

    `lasting_ms` are the times to compare, by default the units' durations: on a worker short of CPU these include waits
    of different lengths, and only the CPU time shows the work.
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
        also_starting = others(level, execution.slots.worker[base.slot], base.launch_ms, together_ms)
        unpacks_ms[STARTING] = np.median(longer_ms[starts] / (1.0 + SHARED * also_starting[starts]))
    reads = np.bincount(units.group, reads_files(execution), count) > 0
    if unpacks_ms[STARTING] > 0:
        more[STARTING], most[STARTING] = (np.where(reads, each[STARTING], each[FIRST]) for each in (more, most))
    unpacked_ms = units.duration_ms - longer_ms
    started = []
    for number, own in enumerate(members(units.group, count)):
        starting, first, later = (own[level[own] == each] for each in (STARTING, FIRST, LATER))
        rest = later if len(later) > 1 else first
        if len(starting) and len(rest) > 1:
            started.append((number, float(np.median(unpacked_ms[starting]) - np.median(unpacked_ms[rest]))))
        if min(len(first), len(later)) >= MEASURED_UNITS and (one := float(np.median(took_ms[later]))) > 0:
            usual_ms = float(np.median(units.duration_ms[later]))
            most[FIRST, number] = max(MEASURED_MOST, more[FIRST, number] / usual_ms)
            times = float(np.median(took_ms[first])) / one - 1.0
            more[FIRST, number] = min(max(times, 0.0), most[FIRST, number]) * usual_ms
    for kind in (reads, ~reads):
        if measured := [more_ms for number, more_ms in started if kind[number]]:
            more[STARTING, kind] = np.median(measured)
    more[STARTING] = np.maximum(more[STARTING], more[FIRST])
    return WarmupCost(more, np.maximum(most, most[FIRST]), unpacks_ms, together_ms)


def reads_files(execution: Execution) -> NDArray[np.bool_]:
    """Which units read files, (units,)."""
    found: NDArray[np.bool_] = (execution.volumes.input > 0) & (execution.volumes.kept == 0)
    return found


def _usual(execution: Execution) -> tuple[Floats, Floats]:
    """The warm-up cost in recorded runs, (3, groups) each: ms, and its maximum in multiples of a later unit's time."""
    more, most = np.zeros((3, len(execution.dag.groups))), np.ones((3, len(execution.dag.groups)))
    if execution.repeated is not None:
        more[FIRST] = np.where(execution.repeated, REPEATED_MS, NEW_MS)
        most[FIRST] = np.where(execution.repeated, REPEATED_MOST, NEW_MOST)
        more[STARTING], most[STARTING] = STARTING_MS, STARTING_MOST
    return more, most
