"""Sampling delay: how late a recording's sampler ticked, as a measure of its process' CPU wait.

If a process is short of CPUs (a container's quota stops all of its threads for tens of ms at a time), a thread whose
wait is over needs a CPU before its event ends: a write into the page cache then seems to take 20 ms.  No event
separates the two.  But the sampler is a thread of the same process, which sleeps for its period and wakes, so the delay
of its ticks is the CPU wait of any other thread after waking.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.records import Floats

LATE_MS = 1.0
"""A larger delay of a tick shows that the process is short of CPUs; timers alone are off by less."""

MAX_PERIODS = 10.0
"""After more than this many periods without a tick, the sampler had no thread to sample rather than no CPU."""

WAKEUP_MS = 10.0
"""When a process can run again, all its threads run within a few scheduler time slices (3 ms on Linux)."""

LATENESS_TICKS = 50
"""Number of ticks in the average delay: one second at 20 ms."""


_WALL = jfr.SAMPLE_KINDS.index("WALL")


@frozen
class Ticks:
    """The ticks of a sampler: times, Unix ms in order, and delays, ms; arrays of one length.

    `samples_late_ms` is the delay of each wall-clock sample relative to its period, (samples,), 0 for other samples.
    """

    time_ms: Floats
    late_ms: Floats
    samples_late_ms: Floats

    def at(self, moment_ms: Floats) -> NDArray[np.int64]:
        """The number of the tick at or next after each moment; needs at least one tick."""
        found: NDArray[np.int64] = np.minimum(np.searchsorted(self.time_ms, moment_ms), len(self.time_ms) - 1)
        return found

    def unusual_ms(self) -> float:
        """A delay, ms, above which a tick was rarely late because of CPU wait."""
        return max(float(np.quantile(self.late_ms, UNUSUAL)), LATE_MS) if len(self.late_ms) else LATE_MS


UNUSUAL = 0.95
"""Quantile of the delays that is the longest usual CPU wait."""

USUAL = 0.1
"""Quantile of the gaps between ticks that is at most the period, however late other ticks are."""


def ticks(recording: jfr.Recording, period_ms: float, uninterruptible: NDArray[np.bool_] | None = None) -> Ticks:
    """The ticks of a recording's sampler with a configured period of `period_ms`; none for a sampler of CPU time only.

    If the recording lost its settings, its period may be longer: then it is the shortest usual gap.

    HotSpot samples one thread in native code a tick, so these samples are its ticks.  A wall-clock profiler samples
    each thread once a period; `uninterruptible` samples, (samples,), may be late for another reason than CPU wait.
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
    late = np.minimum(np.where(late > LATE_MS, late, 0.0), MAX_PERIODS * period_ms)
    return Ticks(time_ms, late, samples_late)


def _wall_lateness(samples: jfr.Samples, period_ms: float) -> tuple[float, Floats]:
    """The actual period of a wall-clock profiler, ms, and each sample's delay relative to it, ms, (samples,).

    The profiler counts ticks of a sleeping thread without sampling it, so a sample may represent several ticks.
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
    """The stated period, or a longer one if nearly all gaps between ticks are at least that long."""
    return max(period_ms, float(np.quantile(gaps_ms, USUAL))) if len(gaps_ms) else period_ms


def waking(end_ms: Floats, length_ms: Floats, by: Ticks) -> Floats:
    """CPU wait at the end of each wait, ms, (waits,): its thread was ready and had no CPU.

    The sampler sleeps and wakes like any thread, so its delay says how long waking takes: the delay of the tick that
    was overdue at the end of the wait or had just come, and at least the average of the surrounding ticks.
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
        then = (by.time_ms[tick] - late <= end_ms) & (end_ms <= by.time_ms[tick] + WAKEUP_MS)
        delay = np.maximum(delay, np.where(then, late, 0.0))
    result: Floats = np.minimum(delay, length_ms)
    return result
