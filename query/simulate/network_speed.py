"""How fast a network was that nobody stated: what the log proves of it.

All bytes that units fetched which began and ended within some time came over their host's link in that time.  So the
link carries at least the most bytes a second of any such time, and no bytes took longer than that rate allows.
Whether it can do more, no log tells.
"""

from __future__ import annotations

import numpy as np

from crystalperf.indexes.resources import NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.simulate.transfers import PAYLOAD
from crystalperf.query.trace.records import Floats, Ints

LENGTHS = 48
"""Lengths of time that are looked at, from the shortest unit's to the whole scope's, evenly by their ratio."""

SHIFTS = 4
"""How often times of one length begin within each other; more finds little."""


PLACES = 8
"""Most times and groups for each interval up to which a table of all is the quickest."""


def carried_bps(execution: Execution) -> float | None:
    """What the network of a host carries at least, bytes a second as they cross it, headers included; None where no
    unit fetched anything.

    The links of hosts are taken to be alike, and a unit's bytes to have come while it ran.
    """
    units, slots = execution.units, execution.slots
    network = next((each for each in execution.resources if each.name == NET), None)
    if network is None or not len(slots):
        return None
    fetched = execution.volumes.read(network).astype(np.float64) * (1.0 if execution.wire is None else execution.wire)
    known = (fetched > 0) & (units.worker >= 0) & (units.finish_ms > units.launch_ms)
    if not known.any():
        return None
    host_of = np.zeros(max(int(slots.worker.max()), int(units.worker.max())) + 1, dtype=np.int64)
    host_of[slots.worker] = slots.host
    start, end = units.launch_ms[known], units.finish_ms[known]
    return most_within(host_of[units.worker[known]], start, end, fetched[known]) * 1e3 / PAYLOAD[NET]


def most_within(group: Ints, start_ms: Floats, end_ms: Floats, amount: Floats) -> float:
    """The greatest amount a ms of intervals of one group that lie in one stretch of time, from its first start to its
    last end."""
    length = end_ms - start_ms
    origin, whole = float(start_ms.min()), float(end_ms.max() - start_ms.min())
    groups = int(group.max()) + 1
    best = float((amount / length).max())
    since_ms, until_ms = start_ms - origin, end_ms - origin
    for each in np.geomspace(float(length.min()), whole, LENGTHS):
        fits = np.flatnonzero(length <= each * (1 + 1e-9))  # longer ones are in no time of this length
        for shift in np.arange(SHIFTS) * each / SHIFTS:
            first = np.floor((since_ms[fits] + shift) / each)
            inside = fits[first == np.floor((until_ms[fits] + shift) / each)]
            if not len(inside):
                continue
            place = np.floor((since_ms[inside] + shift) / each).astype(np.int64) * groups + group[inside]
            count = int(place.max()) + 1
            if count > PLACES * len(inside):
                used, place = np.unique(place, return_inverse=True)
                count = len(used)
            begin, finish = np.full(count, np.inf), np.full(count, -np.inf)
            np.minimum.at(begin, place, start_ms[inside])
            np.maximum.at(finish, place, end_ms[inside])
            best = max(best, float((np.bincount(place, amount[inside], count) / (finish - begin)).max()))
    return best
