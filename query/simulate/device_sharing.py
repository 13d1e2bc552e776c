"""Concurrency: how many tasks share the devices of a host, or of a worker, while they run.

A disk, a network link and the CPUs of a worker serve all tasks that run concurrently.  The concurrency follows from
the schedule, recorded or replayed, so a changed schedule changes each task's share of a device.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.execution.slots import Slots
from crystalperf.query.simulate.list_schedule import has_compiled, integrals, moments
from crystalperf.query.simulate.replay import Replayed
from crystalperf.query.trace.records import Floats, Ints


class Sorted:
    """Intervals by group and time, sorted once for several calls of means()."""

    def __init__(self, group: Ints, start_ms: Floats, end_ms: Floats, *, compiles: bool | None = None) -> None:
        """`compiles` is as in means()."""
        self.length_ms = end_ms - start_ms
        if has_compiled() if compiles is None else compiles:
            self._order, self._gap_ms = moments(group, start_ms, end_ms)
            return
        few = int(group.max(initial=0)) < 1 << 16  # then the sort counts rather than compares
        by_stage = np.argsort(group.astype(np.uint16) if few else group, kind="stable")
        times = np.stack([start_ms, end_ms])
        orders = [np.zeros(0, dtype=np.int64)]
        of_stages = np.split(by_stage, np.flatnonzero(np.diff(group[by_stage])) + 1)
        for own in of_stages:  # several small sorts are faster than one large sort
            both = np.concatenate([own, own + len(group)])
            orders.append(both[np.argsort(times.reshape(-1)[both], kind="stable")])
        self._order = np.concatenate(orders)
        self._gap_ms = np.diff(times.reshape(-1)[self._order])
        last_of_stage = 2 * np.cumsum([len(own) for own in of_stages])[:-1] - 1
        self._gap_ms[last_of_stage] = 0.0  # the step from one group to the next takes no time

    def means(self, rate: Floats, *, compiles: bool | None = None) -> Floats:
        """The mean, over each interval, of the sum of rates of all open intervals of its group, itself included.

        (intervals,) in the unit of `rate`; an interval of length 0 gets its own rate.  `compiles` is whether to use
        compiled code, None for wherever it is installed; the results are the same to the last bit.
        """
        if not len(rate):
            return rate
        if has_compiled() if compiles is None else compiles:
            total = integrals(self._order, self._gap_ms, rate)
        else:
            interval, closes, first, last = self._columns
            steps = rate[interval]
            np.negative(steps, out=steps, where=closes)
            level = np.cumsum(steps, out=steps)[:-1]
            level *= self._gap_ms
            integral = np.zeros(len(steps))
            np.cumsum(level, out=integral[1:])
            total = integral[last] - integral[first]
        found: Floats = np.divide(total, self.length_ms, out=rate.copy(), where=self.length_ms > 0)
        return found

    @cached_property
    def _columns(self) -> tuple[Ints, NDArray[np.bool_], Ints, Ints]:
        """For each moment its interval and whether it is the end, and the positions of each interval's two moments."""
        order, count = self._order, len(self.length_ms)
        closes = order >= count
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return np.where(closes, order - count, order), closes, place[:count], place[count:]


class Concurrency:
    """The tasks that run concurrently in a replay, by worker or by host, whose devices they share."""

    def __init__(self, slots: Slots, replayed: Replayed) -> None:
        def sorted_by(whose: str) -> Sorted:
            owner = slots.worker if whose == "worker" else slots.host
            return Sorted(owner[replayed.slot], replayed.launch_ms, replayed.finish_ms)

        self.slots, self.replayed = slots, replayed
        self.kept: tuple[tuple[object, ...], list[tuple[Floats, Floats]], object] | None = None
        """Times of recorded transfers, which query.simulate.contention shares between scenarios."""
        self._sorted_by = cache(sorted_by)

    def level(self, whose: str, rate: Floats) -> Floats:
        """The mean, while each task runs, of the sum of rates of all tasks on its worker or host, itself included.

        (tasks,) in the unit of `rate`; `whose` is worker or host.
        """
        return self._sorted_by(whose).means(rate)

    def mean_concurrency(self, whose: str, share: Floats) -> Floats:
        """The mean concurrency on a device of its worker or host while each task runs, itself counted as one, (tasks,).

        `share` is the share of each task's time on that device.  Two tasks that use it all the time get 2 each; a task
        whose neighbours never use it gets 1.
        """
        return together(self.level(whose, share), share)


def together(level: Floats, share: Floats) -> Floats:
    """The concurrency on a device for each task, itself counted as one, from `level`, which includes its own share."""
    found: Floats = 1.0 + np.maximum(level - share, 0.0)
    return found
