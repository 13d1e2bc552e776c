"""A lower bound of an unknown network bandwidth, from the log.

All bytes that a host's tasks fetched from their start to their end crossed the host's link in that time.  So the link
carries at least the highest rate over any interval, and no bytes took longer than that rate allows.  The log does not
show whether the link can carry more.
"""

from __future__ import annotations

import numpy as np

from crystalperf.indexes.resources import NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.simulate.list_schedule import has_compiled, highest_rate
from crystalperf.query.simulate.transfers import PAYLOAD
from crystalperf.query.trace.records import Floats, Ints

LENGTHS = 48
"""Number of interval lengths to try, from the shortest task's to the whole scope's, with a constant ratio."""

SHIFTS = 4
"""Number of offsets to try for each length; more offsets find little."""


PLACES = 8
"""Maximum cells for each interval up to which a dense table of times and groups is fastest."""


def carried_bps(execution: Execution) -> float | None:
    """A lower bound of the bandwidth of a host's network, bytes per second, headers included; None if no task fetched
    anything.

    Assumes that all hosts have equal links, and that a task's bytes arrived while it ran.
    """
    tasks, slots = execution.tasks, execution.slots
    network = next((each for each in execution.resources if each.name == NET), None)
    if network is None or not len(slots):
        return None
    fetched = execution.volumes.read(network).astype(np.float64) * (
        1.0 if execution.wire_bytes_ratio is None else execution.wire_bytes_ratio
    )
    known = (fetched > 0) & (tasks.worker >= 0) & (tasks.finish_ms > tasks.launch_ms)
    if not known.any():
        return None
    host_of = np.zeros(max(int(slots.worker.max()), int(tasks.worker.max())) + 1, dtype=np.int64)
    host_of[slots.worker] = slots.host
    start, end = tasks.launch_ms[known], tasks.finish_ms[known]
    return most_within(host_of[tasks.worker[known]], start, end, fetched[known]) * 1e3 / PAYLOAD[NET]


def most_within(
    group: Ints, start_ms: Floats, end_ms: Floats, amount: Floats, *, compiles: bool | None = None
) -> float:
    """The highest rate, amount per ms, of intervals of one group within one time window, from the first start to the
    last end of these intervals.

    `compiles` is whether to use compiled code, which needs intervals in the order of their starts; None for wherever
    that is possible.  The results are the same to the last bit.
    """
    length = end_ms - start_ms
    origin, whole = float(start_ms.min()), float(end_ms.max() - start_ms.min())
    groups = int(group.max()) + 1
    best = float((amount / length).max())
    since_ms, until_ms = start_ms - origin, end_ms - origin
    if compiles is None:
        compiles = has_compiled() and bool((since_ms[1:] >= since_ms[:-1]).all())
    columns = {
        "group": group, "since": since_ms, "until": until_ms, "start": start_ms, "end": end_ms, "amount": amount
    }  # fmt: skip
    for each in np.geomspace(float(length.min()), whole, LENGTHS):
        fits = np.flatnonzero(length <= each * (1 + 1e-9))  # longer intervals do not fit in this length
        shifts = np.arange(SHIFTS) * each / SHIFTS
        if compiles:
            fitting = columns if len(fits) == len(length) else {name: column[fits] for name, column in columns.items()}
            best = max(best, highest_rate({**fitting, "shifts": shifts}, groups, float(each)))
            continue
        for shift in shifts:
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
