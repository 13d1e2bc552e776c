"""The wall-clock that each sample of a recording stands for.

HotSpot's own sampler takes at most five threads running Java and one in native code per tick, in rotation over all
threads; a sample counts as often as its thread had to wait for its turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.attribution.samples.lateness import Ticks
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.records import Floats

DEFAULT_PERIOD_MS = 20.0
"""HotSpot's sampling period in its `profile` settings; used where a recording does not state its own."""

THREADS_PER_TICK = {"EXECUTION": 5, "NATIVE": 1}
"""How many threads HotSpot samples per tick, by the kind of sample (jfrThreadSampler.cpp)."""

ROTATION_TICKS = 50
"""Rotation of threads that run Java is estimated from the distinct ones seen within a window of this many ticks."""

TURN_TICKS = 200
"""Rotation of threads in native code is estimated within windows of so many ticks: some ten samples of each thread."""


def stated_period_ms(recording: jfr.Recording, kind: str) -> float:
    """The period at which samples of a kind were to be taken, ms."""
    return recording.periods_ns.get(kind, 0) / 1e6 or DEFAULT_PERIOD_MS


def sample_weights(recording: jfr.Recording, by: Ticks) -> Floats:
    """Wall-clock in ms that each sample stands for, (samples,)."""
    samples = recording.samples
    weight = np.zeros(len(samples))
    for code, name in enumerate(jfr.SAMPLE_KINDS):
        mine = np.flatnonzero(samples.kind == code)
        if len(mine) == 0:
            continue
        stated = stated_period_ms(recording, name)
        own = samples.period_ns[mine] / 1e6
        period = np.where(own > 0, own, _effective_period(samples, mine, stated) if name == "EXECUTION" else stated)
        weight[mine] = period * samples.ticks[mine]
        if recording.async_profiler_event is not None:
            continue
        if name == "NATIVE":
            weight[mine] = stated + by.late_ms[by.at(samples.time_ns[mine] / 1e6)]
            weight[mine] *= turns(samples.time_ns[mine], samples.thread[mine])
        elif name in THREADS_PER_TICK:
            seen = _distinct_threads(samples.time_ns[mine], samples.thread[mine], stated * ROTATION_TICKS)
            weight[mine] *= np.maximum(seen / THREADS_PER_TICK[name], 1.0)
    return weight


def turns(time_ns: NDArray[np.int64], thread: NDArray[np.int32]) -> Floats:
    """How many ticks passed, around each sample of a thread in native code, until every such thread was sampled once.

    The sampler takes one of them a tick, each in turn.  Some thread is always in native code (whoever waits for
    connections); that is the one seen most often, and the ticks from one of its samples to the next are one turn.
    Counting the threads instead would count those in full that are in native code now and then.
    """
    turn = np.ones(len(time_ns))
    order = np.argsort(time_ns, kind="stable")
    for first in range(0, len(order), TURN_TICKS):
        # The last window reaches back, so that it is as long as the others.
        window = thread[order[max(min(first, len(order) - TURN_TICKS), 0) :][:TURN_TICKS]]
        threads, counts = np.unique(window, return_counts=True)
        seen = np.flatnonzero(window == threads[np.argmax(counts)])
        length = (seen[-1] - seen[0]) / (len(seen) - 1) if len(seen) > 2 else len(threads)
        turn[order[first : first + TURN_TICKS]] = length
    return turn


def _effective_period(samples: jfr.Samples, mine: NDArray[np.int64], stated_ms: float) -> float:
    """The period that was really kept: a starved sampler ticks later than it was told to."""
    order = mine[np.lexsort((samples.time_ns[mine], samples.thread[mine]))]
    same = samples.thread[order][1:] == samples.thread[order][:-1]
    gaps = (np.diff(samples.time_ns[order]) / 1e6)[same]
    usual = gaps[(gaps > 0.5 * stated_ms) & (gaps < 3 * stated_ms)]
    return float(np.median(usual)) if len(usual) >= 20 else stated_ms


def _distinct_threads(time_ns: NDArray[np.int64], thread: NDArray[np.int32], window_ms: float) -> Floats:
    """How many threads were sampled in the window each sample falls in."""
    window = ((time_ns - time_ns[0]) // int(window_ms * 1e6)).astype(np.int64)
    pairs = np.unique(np.stack([window, thread.astype(np.int64)], axis=1), axis=0)
    windows, counts = np.unique(pairs[:, 0], return_counts=True)
    result: Floats = counts[np.searchsorted(windows, window)].astype(np.float64)
    return result
