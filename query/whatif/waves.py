"""How many units of a group run at a time, and how fast the first of each slot: Algorithm 1's waves and warm-up."""

from __future__ import annotations

import numpy as np

from query.model.arrays import members
from query.model.dag import AT_HOME
from query.model.execution import Execution
from query.model.policy import Policy
from query.model.records import Floats, Ints
from query.whatif.replay import Replayed

WARM_UP_UNITS = 4
"""Fewest units in the first wave and after it from which a group's warm-up is estimated."""

PLACES = 8
"""Most pairs of a group and a slot for each unit up to which a table of all pairs is the quickest."""

WARM_UP_MOST = 2.0
"""A larger ratio between waves is other data, or workers still arriving, rather than warm-up."""


def sequential_limits(execution: Execution, policy: Policy) -> list[int | None]:
    """Per group the units it may run at a time; None where slots were all that limited it, or the place of their data.

    Units that ran one at a time beside idle slots stay so (the paper's Amdahl): something other than slots held
    them back.  That is so where a group launched units after others of it had ended, and at every launch a slot of
    a worker then alive was still free.
    """
    units, slots = execution.units, execution.slots
    if execution.framework.in_order:
        return [1] * len(execution.dag.groups)
    limits: list[int | None] = []
    all_launch, all_finish = np.sort(units.launch_ms), np.sort(units.finish_ms)
    arrivals, departures = np.sort(slots.available_ms), np.sort(slots.until_ms)
    for mine in members(units.group, len(execution.dag.groups)):
        launch, finish = np.sort(units.launch_ms[mine]), np.sort(units.finish_ms[mine])
        own = np.arange(1, len(mine) + 1) - np.searchsorted(finish, launch, side="right")
        at_once = int(own.max(initial=0))
        busy = np.searchsorted(all_launch, launch, side="right") - np.searchsorted(all_finish, launch, side="right")
        alive = np.searchsorted(arrivals, launch, side="right") - np.searchsorted(departures, launch, side="right")
        waits = policy.patience_ms > 0 and bool((units.placement[mine] == AT_HOME).any())
        held_back = at_once < len(mine) and not waits and bool((busy < alive).all())
        limits.append(at_once if held_back else None)
    return limits


def first_wave(*, group: Ints, replayed: Replayed) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which units are the first of their group on their slot, (units,)."""
    place = group * (int(replayed.slot.max(initial=-1)) + 1) + replayed.slot
    places = int(place.max(initial=-1)) + 1
    if places > PLACES * len(place):
        used, place = np.unique(place, return_inverse=True)
        places = len(used)
    earliest = np.full(places, np.inf)
    np.minimum.at(earliest, place, replayed.launch_ms)
    first = np.asarray(replayed.launch_ms == earliest[place], np.bool_)
    found = np.flatnonzero(first)
    once = np.unique(place[found], return_index=True)[1]
    if len(once) < len(found):  # of units that were launched at one moment, the first in recorded order
        first[found] = False
        first[found[once]] = True
    return first


def warm_up_factors(execution: Execution, base: Replayed, lasting_ms: Floats | None = None) -> Floats:
    """Per group how much longer a unit takes in its first wave than later (§5, w); 1 where too few units tell.

    `lasting_ms` is what is compared, the units' durations where it is not given: of a worker short of CPU these tell
    who waited longer, and the CPU time alone what had to be done.
    """
    units = execution.units
    first = first_wave(group=units.group, replayed=base)
    factors = np.ones(len(execution.dag.groups))
    if execution.framework.in_order:  # one operator after another, each of another kind
        return factors
    duration = units.duration_ms if lasting_ms is None else lasting_ms
    for number, mine in enumerate(members(units.group, len(factors))):
        early, late = duration[mine[first[mine]]], duration[mine[~first[mine]]]
        if len(early) >= WARM_UP_UNITS and len(late) >= WARM_UP_UNITS and np.median(late) > 0:
            factors[number] = min(max(float(np.median(early) / np.median(late)), 1.0), WARM_UP_MOST)
    return factors


def later_ms(
    group: Ints, length_ms: Floats, first: np.ndarray[tuple[int], np.dtype[np.bool_]], warm_up: Floats
) -> Floats:
    """What a unit that is not the first on its slot usually takes, the median of each group that warms up, (groups,);
    0 of the others."""
    found = np.zeros(len(warm_up))
    warming = np.flatnonzero(warm_up != 1)
    if not len(warming):
        return found
    of_group = members(group, len(warm_up))
    for number in warming.tolist():
        mine = of_group[number]
        later = mine[~first[mine]]
        if len(mine):
            found[number] = float(np.median(length_ms[later if len(later) else mine]))
    return found
