"""Weights of samples: the wall-clock that each sample of a recording represents.

HotSpot's sampler takes at most five threads running Java and one in native code per tick, in rotation over all
threads; a sample represents the ticks of one rotation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.attribution.samples.sampling_delay import Ticks
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Floats

DEFAULT_PERIOD_MS = 20.0
"""HotSpot's sampling period in its `profile` settings; used if the recording does not state its own."""

THREADS_PER_TICK = {"EXECUTION": 5, "NATIVE": 1}
"""How many threads HotSpot samples per tick, by the kind of sample (jfrThreadSampler.cpp)."""

ROTATION_TICKS = 50
"""Window, in ticks, in which distinct threads are counted to estimate the rotation of threads that run Java."""

ROTATION_WINDOW_TICKS = 200
"""Window, in ticks, to estimate the rotation of threads in native code: some ten samples of each thread."""


def stated_period_ms(recording: jfr.Recording, kind: str) -> float:
    """The configured sampling period of a kind of samples, ms."""
    return recording.periods_ns.get(kind, 0) / 1e6 or DEFAULT_PERIOD_MS


def sample_weights(recording: jfr.Recording, by: Ticks) -> Floats:
    """Wall-clock in ms that each sample represents, (samples,)."""
    samples = recording.samples
    weight = np.zeros(len(samples))
    for code, name in enumerate(jfr.SAMPLE_KINDS):
        rows = np.flatnonzero(samples.kind == code)
        if len(rows) == 0:
            continue
        stated = stated_period_ms(recording, name)
        own = samples.period_ns[rows] / 1e6
        period = np.where(own > 0, own, _effective_period(samples, rows, stated) if name == "EXECUTION" else stated)
        weight[rows] = period * samples.ticks[rows]
        if recording.async_profiler_event is not None:
            continue
        if name == "NATIVE":
            weight[rows] = stated + by.late_ms[by.at(samples.time_ns[rows] / 1e6)]
            weight[rows] *= rotation_ticks(samples.time_ns[rows], samples.thread[rows])
        elif name in THREADS_PER_TICK:
            seen = _distinct_threads(samples.time_ns[rows], samples.thread[rows], stated * ROTATION_TICKS)
            weight[rows] *= np.maximum(seen / THREADS_PER_TICK[name], 1.0)
    return weight


def rotation_ticks(time_ns: NDArray[np.int64], thread: NDArray[np.int32]) -> Floats:
    """The length of a rotation over all threads in native code, in ticks, around each sample.

    The sampler takes one of these threads a tick, in rotation.  Some thread is always in native code (one that waits
    for connections); it has the most samples, and the ticks between two of its samples are one rotation.  A count of
    the threads would be too high, because it includes those that are in native code only now and then.
    """
    rotation = np.ones(len(time_ns))
    order = np.argsort(time_ns, kind="stable")
    for first in range(0, len(order), ROTATION_WINDOW_TICKS):
        # The last window starts earlier, so that it is as long as the others.
        window = thread[order[max(min(first, len(order) - ROTATION_WINDOW_TICKS), 0) :][:ROTATION_WINDOW_TICKS]]
        threads, counts = np.unique(window, return_counts=True)
        seen = np.flatnonzero(window == threads[np.argmax(counts)])
        length = (seen[-1] - seen[0]) / (len(seen) - 1) if len(seen) > 2 else len(threads)
        rotation[order[first : first + ROTATION_WINDOW_TICKS]] = length
    return rotation


def _effective_period(samples: jfr.Samples, rows: NDArray[np.int64], stated_ms: float) -> float:
    """The actual sampling period, ms: a starved sampler ticks later than configured."""
    order = rows[np.lexsort((samples.time_ns[rows], samples.thread[rows]))]
    same = samples.thread[order][1:] == samples.thread[order][:-1]
    gaps = (np.diff(samples.time_ns[order]) / 1e6)[same]
    usual = gaps[(gaps > 0.5 * stated_ms) & (gaps < 3 * stated_ms)]
    return median(usual) if len(usual) >= 20 else stated_ms


def _distinct_threads(time_ns: NDArray[np.int64], thread: NDArray[np.int32], window_ms: float) -> Floats:
    """The number of threads that were sampled in the window of each sample."""
    window = ((time_ns - time_ns[0]) // int(window_ms * 1e6)).astype(np.int64)
    # Packed into one integer: sorting it is much faster than sorting rows.
    threads = int(thread.max()) + 2
    pairs = np.unique(window * threads + (thread.astype(np.int64) + 1))
    windows, counts = np.unique(pairs // threads, return_counts=True)
    result: Floats = counts[np.searchsorted(windows, window)].astype(np.float64)
    return result
