"""Recordings as time on threads: every sample and measured interval with the wall-clock it stands for.

Counts are not time.  HotSpot's own sampler takes at most five threads running Java and one in native code per tick,
in rotation over all threads, and never one that is blocked; what it misses, the recording's duration events know
exactly.  A wall-clock profiler's samples need neither correction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from query import jfr
from query.dag import Floats, Ints
from query.jfr.merge import parse_period_ns

DEFAULT_PERIOD_MS = 20.0
"""HotSpot's sampling period in its `profile` settings; used where a recording does not state its own."""

THREADS_PER_TICK = {"EXECUTION": 5, "NATIVE": 1}
"""How many threads HotSpot samples per tick, by the kind of sample (jfrThreadSampler.cpp)."""

WINDOW_TICKS = 50
"""Rotation is estimated from the distinct threads seen within a window of this many ticks."""

TIMED_KINDS = {
    "SOCKET_READ": "socket read",
    "SOCKET_WRITE": "socket write",
    "FILE_READ": "file read",
    "FILE_WRITE": "file write",
    "FILE_FORCE": "file force",
    "PARK": "park",
    "SLEEP": "sleep",
    "MONITOR_WAIT": "wait",
    "MONITOR_ENTER": "enter",
}
"""Intervals that belong to a thread, and their names in the run file."""

BLOCKING_EVENTS = ("jdk.ThreadPark", "jdk.JavaMonitorWait", "jdk.SocketRead", "jdk.FileRead")
"""Events of blocked threads, which HotSpot's sampler does not see."""

SHORT_WAIT_MS = 5.0
"""Waits kept from this length on leave little blocked time unseen."""

RUNNING = "running"
"""Kind of a wall-clock sample of a thread that ran or could have run, beside `wall` of one that was blocked."""

ON_CPU = ("execution", "cpu", RUNNING)
"""Kinds whose thread ran code or waited for nothing but a CPU; a native or blocked one may wait for a device."""


@dataclass(frozen=True)
class ThreadTime:
    """What threads were seen doing, sorted by time; arrays of one length.

    `start_ms` is Unix time in ms on the recording's own clock, `weight_ms` the wall-clock a row stands for,
    `kind` indexes `kinds`, `thread` and `stack` index the recording's.
    """

    start_ms: Floats
    thread: Ints
    stack: Ints
    kind: Ints
    weight_ms: Floats
    bytes: Ints
    kinds: tuple[str, ...]


def thread_time(recording: jfr.Recording) -> ThreadTime:
    """All samples and intervals of a recording that say what a thread did, none of the time counted twice."""
    samples, intervals = recording.samples, recording.intervals
    names = np.array(jfr.SAMPLE_KINDS)
    weight = _weights(recording)
    keep = weight > 0
    wall = samples.kind == jfr.SAMPLE_KINDS.index("WALL")
    if wall.any():
        # A wall-clock profiler sees blocked threads too, so nothing else may add to it.
        keep &= wall
        timed = np.zeros(len(intervals), dtype=bool)
    else:
        codes = [jfr.INTERVAL_KINDS.index(name) for name in TIMED_KINDS]
        timed = np.isin(intervals.kind, codes) & (intervals.thread >= 0) & (intervals.stack >= 0)
        keep &= ~_covered(samples.thread, samples.time_ns, intervals, timed)
    keep &= (samples.thread >= 0) & (samples.stack >= 0)

    kinds = (*(name.lower() for name in jfr.SAMPLE_KINDS), *TIMED_KINDS.values(), RUNNING)
    to_kind = {jfr.INTERVAL_KINDS.index(n): len(names) + i for i, n in enumerate(TIMED_KINDS)}
    runnable = np.array([name == "STATE_RUNNABLE" for name in samples.state_names] or [False])
    sample_kind = np.where(wall & runnable[samples.state], kinds.index(RUNNING), samples.kind.astype(np.int64))
    interval_kind = np.array([to_kind[int(code)] for code in intervals.kind[timed]], dtype=np.int64)
    start_ns = np.concatenate([samples.time_ns[keep], intervals.start_ns[timed]])
    order = np.argsort(start_ns, kind="stable")
    length_ms = (intervals.end_ns[timed] - intervals.start_ns[timed]) / 1e6

    def joined(one: NDArray[np.generic], two: NDArray[np.generic]) -> Ints:
        return np.concatenate([one, two])[order].astype(np.int64)

    return ThreadTime(
        start_ms=start_ns[order] / 1e6,
        thread=joined(samples.thread[keep], intervals.thread[timed]),
        stack=joined(samples.stack[keep], intervals.stack[timed]),
        kind=joined(sample_kind[keep], interval_kind),
        weight_ms=np.concatenate([weight[keep], length_ms])[order],
        bytes=joined(np.zeros(int(keep.sum()), dtype=np.int64), intervals.bytes[timed]),
        kinds=kinds,
    )


def sees_all(recording: jfr.Recording) -> bool:
    """Whether a recording shows threads in every state: a wall clock does, HotSpot's if it also keeps short waits."""
    if (recording.samples.kind == jfr.SAMPLE_KINDS.index("WALL")).any():
        return True
    thresholds = [recording.settings.get((event, "threshold")) for event in BLOCKING_EVENTS]
    return all(text is not None and parse_period_ns(text) <= SHORT_WAIT_MS * 1e6 for text in thresholds)


def _weights(recording: jfr.Recording) -> Floats:
    """Wall-clock in ms that each sample stands for."""
    samples = recording.samples
    weight = np.zeros(len(samples))
    for code, name in enumerate(jfr.SAMPLE_KINDS):
        mine = np.flatnonzero(samples.kind == code)
        if len(mine) == 0:
            continue
        stated = recording.periods_ns.get(name, 0) / 1e6 or DEFAULT_PERIOD_MS
        own = samples.period_ns[mine] / 1e6
        period = np.where(own > 0, own, _effective_period(samples, mine, stated) if name == "EXECUTION" else stated)
        weight[mine] = period * samples.ticks[mine]
        if name in THREADS_PER_TICK and recording.async_profiler_event is None:
            seen = _distinct_threads(samples.time_ns[mine], samples.thread[mine], stated * WINDOW_TICKS)
            weight[mine] *= np.maximum(seen / THREADS_PER_TICK[name], 1.0)
    return weight


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


def _covered(
    thread: NDArray[np.int32], time_ns: NDArray[np.int64], intervals: jfr.Intervals, timed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which samples fall into an interval of their own thread: the interval already stands for that time."""
    covered = np.zeros(len(thread), dtype=bool)
    for each in np.unique(intervals.thread[timed]):
        mine = np.flatnonzero(thread == each)
        if len(mine) == 0:
            continue
        chosen = timed & (intervals.thread == each)
        start = intervals.start_ns[chosen]
        end = np.maximum.accumulate(intervals.end_ns[chosen])
        last = np.searchsorted(start, time_ns[mine], side="right") - 1
        covered[mine] = (last >= 0) & (end[np.maximum(last, 0)] >= time_ns[mine])
    return covered


def frame_texts(recording: jfr.Recording) -> tuple[list[str], list[str], Ints]:
    """Class name and method name of every frame of a recording, and its line (0 where unknown)."""
    frames = recording.frames
    classes = [frames.class_names[i].replace("/", ".") for i in frames.class_id.tolist()]
    methods = [frames.method_names[i] for i in frames.method_id.tolist()]
    return classes, methods, np.maximum(frames.line, 0).astype(np.int64)


def java_property(arguments: str, name: str) -> str | None:
    """The word after `name` among the arguments of a program: `--executor-id 3` → '3'."""
    words = arguments.split()
    for position, word in enumerate(words[:-1]):
        if word == name:
            return words[position + 1]
    return None


Properties = Mapping[str, str]
