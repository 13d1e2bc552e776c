"""Intervals over time: how many are open, their sums, and what they cover.

A stage's wall-clock time is not the sum of its tasks' times: at every instant it is the mean over the tasks then
running, with equal weights.  So if a straggler runs alone at the end, it alone decides the resources of the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from crystalperf.query.trace.records import Floats, Ints


class TimedTasks(Protocol):
    """Tasks with their start and end, (tasks,), and their time by resource, (tasks, resources + 1), in ms."""

    @property
    def launch_ms(self) -> Floats: ...
    @property
    def finish_ms(self) -> Floats: ...
    @property
    def parts_ms(self) -> Floats: ...


class Level:
    """The sum of the rates of the intervals open at each moment, and its integral over time.

    `rate` is (n,) or (n, columns), 1 for each interval by default.
    """

    def __init__(self, start_ms: Floats, end_ms: Floats, rate: Floats | None = None) -> None:
        if rate is None:  # all alike, so starts and ends need not stay together, and sorted ones are merged faster
            start_ms, end_ms, rate = np.sort(start_ms), np.sort(end_ms), np.ones(len(start_ms))
        moments = np.concatenate([start_ms, end_ms])
        order = np.argsort(moments, kind="stable")
        self.moments: Floats = moments[order]
        values: Floats = np.cumsum(np.concatenate([rate, -rate])[order], axis=0)[:-1]
        self.values: Floats = values if values.ndim == 2 else values[:, None]
        self.integral = _integral(self.moments, self.values)

    def over(self, start_ms: Floats, end_ms: Floats) -> Floats:
        """The integral over each of several intervals, (intervals, columns)."""
        found = np.zeros((len(start_ms), self.integral.shape[1]))
        if len(self.moments):
            for column, integral in enumerate(self.integral.T):
                until, since = (np.interp(each, self.moments, integral) for each in (end_ms, start_ms))
                found[:, column] = np.where(end_ms > start_ms, until - since, 0.0)
        return found


class Timeline:
    """The mean resource breakdown of the running tasks, integrated over time."""

    def __init__(self, tasks: TimedTasks, mine: Ints | slice = slice(None)) -> None:
        launch, finish, parts = tasks.launch_ms[mine], tasks.finish_ms[mine], tasks.parts_ms[mine]
        lasting = finish > launch
        if not lasting.all():
            launch, finish, parts = launch[lasting], finish[lasting], parts[lasting]
        moments = np.concatenate([launch, finish])
        order = np.argsort(moments, kind="stable")
        self.moments: Floats = moments[order]
        since_last, length = np.diff(self.moments), finish - launch
        running = np.cumsum(np.where(order < len(launch), 1.0, -1.0))[:-1]
        none, running = running <= 0, np.maximum(running, 1)
        self.integral = np.zeros((max(len(moments), 1), parts.shape[1]))
        for place, part in enumerate(parts.T):
            rate = part / length
            mean = np.cumsum(np.concatenate([rate, -rate])[order])[:-1]
            mean /= running
            mean[none] = 0.0
            mean *= since_last
            np.cumsum(mean, out=self.integral[1:, place])

    def between(self, start_ms: float, end_ms: float) -> Floats:
        """Wall-clock time in each column of `parts_ms` from start to end, (resources + 1,), without idle time."""
        return self.over([(start_ms, end_ms)])

    def over(self, intervals: Sequence[tuple[float, float]]) -> Floats:
        """The same, summed over intervals of (start, end)."""
        if len(self.moments) < 2 or not len(intervals):
            return np.zeros(self.integral.shape[1])
        until = self._until(np.asarray(intervals, dtype=np.float64).reshape(-1))
        found: Floats = np.maximum(until[1::2] - until[::2], 0.0).sum(axis=0)
        return found

    def _until(self, times_ms: Floats) -> Floats:
        """The integral up to each time, (times, resources + 1); np.interp would copy every column each time."""
        place = np.clip(np.searchsorted(self.moments, times_ms, side="right") - 1, 0, len(self.moments) - 2)
        begin = self.moments[place]
        length = self.moments[place + 1] - begin
        share = np.divide(times_ms - begin, length, out=np.ones_like(length), where=length > 0).clip(0.0, 1.0)
        before = self.integral[place]
        found: Floats = before + share[:, None] * (self.integral[place + 1] - before)
        return found


def _integral(moments: Floats, values: Floats) -> Floats:
    """Running sums of values that hold from each moment to the next, (moments, columns)."""
    lengths = np.diff(moments)[:, None]
    return np.vstack([np.zeros((1, values.shape[1])), np.cumsum(values * lengths, axis=0)])


def merged(start_ms: Floats, end_ms: Floats) -> Floats:
    """The union of intervals as sorted disjoint rows of (start, end)."""
    if len(start_ms) == 0:
        return np.empty((0, 2))
    if (start_ms[1:] < start_ms[:-1]).any():
        order = np.argsort(start_ms, kind="stable")
        start_ms, end_ms = start_ms[order], end_ms[order]
    start, end = start_ms, np.maximum.accumulate(end_ms)
    opens = np.concatenate([[True], start[1:] > end[:-1]])
    return np.column_stack([start[opens], end[np.concatenate([opens[1:], [True]])]])


def overlapping(intervals: Floats, start_ms: Any, end_ms: Any) -> tuple[Any, Any]:
    """The range, first and last + 1, of sorted disjoint intervals that overlap (start, end); both may be arrays."""
    first = np.searchsorted(intervals[:, 1], start_ms, side="right")
    return first, np.searchsorted(intervals[:, 0], end_ms, side="left")


def covered(intervals: Floats, start_ms: float, end_ms: float) -> float:
    """The time from start to end that the sorted disjoint intervals cover, ms."""
    first, last = overlapping(intervals, start_ms, end_ms)
    if first >= last:
        return 0.0
    intervals = intervals[first:last]
    inside = np.minimum(intervals[:, 1], end_ms) - np.maximum(intervals[:, 0], start_ms)
    return float(np.maximum(inside, 0.0).sum())


def uncovered(intervals: Floats, start_ms: float, end_ms: float) -> list[tuple[float, float]]:
    """The gaps from start to end between the sorted disjoint intervals."""
    found, begin = [], start_ms
    for first, last in intervals[slice(*overlapping(intervals, start_ms, end_ms))].tolist():
        if first > begin:
            found.append((begin, min(first, end_ms)))
        begin = max(begin, last)
        if begin >= end_ms:
            break
    if begin < end_ms:
        found.append((begin, end_ms))
    return [(low, high) for low, high in found if high > low]
