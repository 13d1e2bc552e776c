"""Devices that the units of a node, or of a worker, share while they run.

A disk, a cable and the CPUs of a worker serve all units that run beside each other.  How many want a device at a
time is read off the schedule, recorded or replayed, so a changed schedule changes what each unit gets of it.
"""

from __future__ import annotations

import numpy as np

from query.model.records import Floats, Ints
from query.model.timeline import Level


def mean_level(group: Ints, start_ms: Floats, end_ms: Floats, rate: Floats) -> Floats:
    """Over each interval's life the mean sum of the rates of all intervals of its group, itself included."""
    result = rate.copy()
    for each in np.unique(group):
        mine = np.flatnonzero(group == each)
        level = Level(start_ms[mine], end_ms[mine], rate[mine])
        result[mine] = level.means(start_ms[mine], end_ms[mine], rate[mine])
    return result


def company(host: Ints, start_ms: Floats, end_ms: Floats, share: Floats) -> Floats:
    """How many units share a device of its host with each unit on average, the unit itself counted as one.

    `share` is the part of each unit's time on that device.  Two units that are on it all the time give 2 each;
    a unit whose neighbours never touch it gives 1.
    """
    others = mean_level(host, start_ms, end_ms, share) - share
    together: Floats = 1.0 + np.maximum(others, 0.0)
    return together
