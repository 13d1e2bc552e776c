"""How late a recording's sampler came, which shows how long threads of its process waited for a CPU.

Where a process is short of CPUs (a container's quota stops all of its threads for tens of ms at a time), a thread whose
wait is over needs a CPU to say so: by the clock, a write into the page cache takes 20 ms.  No event tells the one from
the other.  But the sampler is a thread of the same process, which sleeps for its period and wakes; what its ticks come
late by is what any other thread waits for after it was woken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.recordings import jfr
from crystalperf.query.trace.records import Floats

LATE_MS = 1.0
"""Ticks that come later than this say that the process is short of CPUs; timers alone are off by less."""

MOST_PERIODS = 10.0
"""Without a tick for longer than this many periods, the sampler had nothing to take rather than no CPU."""

TURN_MS = 10.0
"""Once a process may run again, its threads get their turns within a few slices of the scheduler (3 ms on Linux)."""

LATENESS_TICKS = 50
"""The average lateness is that of so many ticks: a second at 20 ms."""


_WALL = jfr.SAMPLE_KINDS.index("WALL")


@dataclass(frozen=True)
class Ticks:
    """When a sampler looked at threads, Unix ms in order, and how late that was, ms; arrays of one length.

    `samples_late_ms` is how much later than its period each sample of a wall clock came, (samples,), 0 for others.
    """

    time_ms: Floats
    late_ms: Floats
    samples_late_ms: Floats

    def at(self, moment_ms: Floats) -> NDArray[np.int64]:
        """The tick at or next after each moment; of no tick, nothing to ask for."""
        found: NDArray[np.int64] = np.minimum(np.searchsorted(self.time_ms, moment_ms), len(self.time_ms) - 1)
        return found

    def unusual_ms(self) -> float:
        """A tick later than this, ms, was hardly ever late because a CPU was missing."""
        return max(float(np.quantile(self.late_ms, UNUSUAL)), LATE_MS) if len(self.late_ms) else LATE_MS


UNUSUAL = 0.95
"""This share of the ticks is no later than the longest usual wait for a CPU."""

USUAL = 0.1
"""Of the gaps between ticks, this share is no longer than the period, however late the others are."""


def ticks(recording: jfr.Recording, period_ms: float, uninterruptible: NDArray[np.bool_] | None = None) -> Ticks:
    """The ticks of a recording's sampler, which was told to look every `period_ms`; none of a sampler of the CPU alone.

    A recording that lost its settings may have had a longer period than that: then the shortest usual gap is taken.

    HotSpot's takes one thread in native code a tick, so those samples are its ticks.  A wall clock takes each thread
    once in a period; `uninterruptible` ones, (samples,), may have been late for another reason than the CPU.
    """
    samples = recording.samples
    samples_late = np.zeros(len(samples))
    if (samples.kind == _WALL).any():
        wall = samples.kind == _WALL
        chosen = np.flatnonzero(wall if uninterruptible is None else wall & ~uninterruptible)
        chosen = chosen[np.argsort(samples.time_ns[chosen], kind="stable")]
        period_ms, samples_late = _wall_lateness(samples, period_ms)
        time_ms, late = samples.time_ns[chosen] / 1e6, samples_late[chosen]
    elif recording.async_profiler_event is None:
        native = samples.kind == jfr.SAMPLE_KINDS.index("NATIVE")
        time_ms = np.sort(samples.time_ns[native]) / 1e6
        period_ms = _at_least(period_ms, np.diff(time_ms))
        late = np.diff(time_ms, prepend=time_ms[:1]) - period_ms
    else:
        time_ms = late = np.empty(0)
    late = np.minimum(np.where(late > LATE_MS, late, 0.0), MOST_PERIODS * period_ms)
    return Ticks(time_ms, late, samples_late)


def _wall_lateness(samples: jfr.Samples, period_ms: float) -> tuple[float, Floats]:
    """The period that a wall clock kept, ms, and how much later than that each sample of a thread came, (samples,).

    A thread that slept on a tick counts without looking, so a sample may stand for several.
    """
    late = np.zeros(len(samples))
    wall = np.flatnonzero(samples.kind == _WALL)
    order = wall[np.lexsort((samples.time_ns[wall], samples.thread[wall]))]
    gap_ms = np.diff(samples.time_ns[order]) / 1e6 / np.maximum(samples.ticks[order][:-1], 1)
    of_one = np.diff(samples.thread[order]) == 0
    period_ms = _at_least(period_ms, gap_ms[of_one])
    late[order[1:]] = np.where(of_one, gap_ms - period_ms, 0.0)
    return period_ms, late


def _at_least(period_ms: float, gaps_ms: Floats) -> float:
    """A stated period, or a longer one that nearly all gaps between ticks keep."""
    return max(period_ms, float(np.quantile(gaps_ms, USUAL))) if len(gaps_ms) else period_ms


def waking(end_ms: Floats, length_ms: Floats, by: Ticks) -> Floats:
    """ms at the end of each wait in which its thread was ready and had no CPU, (waits,).

    The sampler sleeps and wakes like any thread, so its lateness says how long waking takes: that of the tick which was
    overdue when the wait ended or had just come, and never less than the average of the ticks around.
    """
    if len(by.time_ms) < 2 or not len(end_ms):
        return np.zeros(len(end_ms))
    sums = np.concatenate([[0.0], np.cumsum(by.late_ms)])
    after = by.at(end_ms)
    first = np.maximum(after - LATENESS_TICKS // 2, 0)
    last = np.minimum(after + LATENESS_TICKS // 2, len(by.time_ms))
    delay = (sums[last] - sums[first]) / (last - first)
    for tick in (after, np.maximum(after - 1, 0)):
        late = by.late_ms[tick]
        then = (by.time_ms[tick] - late <= end_ms) & (end_ms <= by.time_ms[tick] + TURN_MS)
        delay = np.maximum(delay, np.where(then, late, 0.0))
    result: Floats = np.minimum(delay, length_ms)
    return result
