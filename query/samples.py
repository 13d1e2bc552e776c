"""Recordings as time on threads: every sample and measured interval with the wall-clock it stands for.

Counts are not time.  HotSpot's own sampler takes at most five threads running Java and one in native code per tick,
in rotation over all threads, and never one that is blocked; what it misses, the recording's duration events know
exactly.  A wall-clock profiler's samples need neither correction.

Nor is all of an interval waiting: a thread whose wait is over needs a CPU to say so.  Where the process is short of
them (a container's quota stops all of its threads for tens of ms at a time), a write into the page cache takes 20 ms
by the clock.  The sampler itself sleeps and wakes in the same process, so how late its ticks come is how late any
thread wakes.
"""

from __future__ import annotations

import re
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
"""Rotation of threads that run Java is estimated from the distinct ones seen within a window of this many ticks."""

TURN_TICKS = 200
"""Rotation of threads in native code is estimated within windows of so many ticks: some ten samples of each thread."""

WAKING = "waking"
"""Kind of the end of an interval in which the thread no longer waited for what it is named after, but for a CPU."""

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
    "WAKING": WAKING,
}
"""Intervals that belong to a thread, and their names in the run file; the last is cut off the end of the others."""

BLOCKING_EVENTS = ("jdk.ThreadPark", "jdk.JavaMonitorWait", "jdk.SocketRead", "jdk.FileRead")
"""Events of blocked threads, which HotSpot's sampler does not see."""

SHORT_WAIT_MS = 5.0
"""Waits kept from this length on leave little blocked time unseen."""

RUNNING = "running"
"""Kind of a wall-clock sample of a thread that ran or could have run, beside `wall` of one that was blocked."""

ON_CPU = ("execution", "cpu", RUNNING, WAKING)
"""Kinds whose thread ran code or waited for nothing but a CPU; a native or blocked one may wait for a device."""

LATE_MS = 1.0
"""Ticks that come later than this say that the process is short of CPUs; timers alone are off by less."""

TURN_MS = 10.0
"""Once a process may run again, its threads get their turns within a few slices of the scheduler (3 ms on Linux)."""

_JDK = re.compile(r"(java|javax|jdk|sun|com\.sun)\.")
_WAITS = re.compile(
    r"(?i).*(wait|park|sleep|poll|select|accept|connect|lookup|receive|recv|send|force|sync|lock|transfer|load0)\w*$"
)
_READS_OR_WRITES = re.compile(r"(?i).*\.\w*(read|write)\w*$")


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
    running = samples.kind == jfr.SAMPLE_KINDS.index("NATIVE")
    running &= _answer_at_once(recording)[np.maximum(samples.stack, 0)]
    keep = weight > 0
    wall = samples.kind == jfr.SAMPLE_KINDS.index("WALL")
    if wall.any():
        # A wall-clock profiler sees blocked threads too, so nothing else may add to it.
        keep &= wall
        timed = np.zeros(len(intervals), dtype=bool)
    else:
        codes = [jfr.INTERVAL_KINDS.index(name) for name in TIMED_KINDS if name in jfr.INTERVAL_KINDS]
        timed = np.isin(intervals.kind, codes) & (intervals.thread >= 0) & (intervals.stack >= 0)
        keep &= ~_covered(samples.thread, samples.time_ns, intervals, timed)
    keep &= (samples.thread >= 0) & (samples.stack >= 0)

    kinds = (*(name.lower() for name in jfr.SAMPLE_KINDS), *TIMED_KINDS.values(), RUNNING)
    to_kind = {jfr.INTERVAL_KINDS.index(n): len(names) + i for i, n in enumerate(TIMED_KINDS) if n != "WAKING"}
    runnable = np.array([name == "STATE_RUNNABLE" for name in samples.state_names] or [False])
    running |= wall & runnable[samples.state]
    sample_kind = np.where(running, kinds.index(RUNNING), samples.kind.astype(np.int64))
    interval_kind = np.array([to_kind[int(code)] for code in intervals.kind[timed]], dtype=np.int64)
    length_ms = (intervals.end_ns[timed] - intervals.start_ns[timed]) / 1e6
    waking_ms = _waking(intervals.end_ns[timed] / 1e6, length_ms, *_ticks(recording))
    late = waking_ms > 0
    start_ns = np.concatenate(
        [samples.time_ns[keep], intervals.start_ns[timed], intervals.end_ns[timed][late] - waking_ms[late] * 1e6]
    )
    order = np.argsort(start_ns, kind="stable")

    def joined(one: NDArray[np.generic], two: NDArray[np.generic], three: NDArray[np.generic]) -> Ints:
        return np.concatenate([one, two, three])[order].astype(np.int64)

    thread, stack = intervals.thread[timed], intervals.stack[timed]
    return ThreadTime(
        start_ms=start_ns[order] / 1e6,
        thread=joined(samples.thread[keep], thread, thread[late]),
        stack=joined(samples.stack[keep], stack, stack[late]),
        kind=joined(sample_kind[keep], interval_kind, np.full(int(late.sum()), kinds.index(WAKING))),
        weight_ms=np.concatenate([weight[keep], length_ms - waking_ms, waking_ms[late]])[order],
        bytes=joined(np.zeros(int(keep.sum())), intervals.bytes[timed], np.zeros(int(late.sum()))),
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
        if recording.async_profiler_event is not None:
            continue
        if name == "NATIVE":
            weight[mine] *= _turn(samples.time_ns[mine], samples.thread[mine])
        elif name in THREADS_PER_TICK:
            seen = _distinct_threads(samples.time_ns[mine], samples.thread[mine], stated * WINDOW_TICKS)
            weight[mine] *= np.maximum(seen / THREADS_PER_TICK[name], 1.0)
    return weight


def _turn(time_ns: NDArray[np.int64], thread: NDArray[np.int32]) -> Floats:
    """How many ticks it took, around each sample of a thread in native code, until every such thread had its turn.

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


def _ticks(recording: jfr.Recording) -> tuple[Floats, float]:
    """When HotSpot's sampler ticked, Unix ms in order, and how far apart it was told to; no ticks of other recorders.

    Each tick takes one thread in native code, so these samples are the ticks.
    """
    samples = recording.samples
    native = samples.kind == jfr.SAMPLE_KINDS.index("NATIVE")
    if recording.async_profiler_event is not None:
        native[:] = False
    return np.sort(samples.time_ns[native]) / 1e6, recording.periods_ns.get("NATIVE", 0) / 1e6 or DEFAULT_PERIOD_MS


def _waking(end_ms: Floats, length_ms: Floats, tick_ms: Floats, period_ms: float) -> Floats:
    """ms at the end of each interval in which its thread waited for a CPU, (intervals,).

    As long as the sampler, which slept and was to wake then, came late: at that moment where its tick was overdue when
    the interval ended or had just come, and on the average of the ticks around it at least.
    """
    if len(tick_ms) < 2 or not len(end_ms):
        return np.zeros(len(end_ms))
    late = np.concatenate([[0.0], np.diff(tick_ms) - period_ms])
    late = np.where(late > LATE_MS, late, 0.0)
    sums = np.concatenate([[0.0], np.cumsum(late)])
    after = np.minimum(np.searchsorted(tick_ms, end_ms), len(tick_ms) - 1)
    first = np.maximum(after - WINDOW_TICKS // 2, 0)
    last = np.minimum(after + WINDOW_TICKS // 2, len(tick_ms))
    delay = (sums[last] - sums[first]) / (last - first)
    for tick in (after, np.maximum(after - 1, 0)):
        then = (tick_ms[tick] - late[tick] <= end_ms) & (end_ms <= tick_ms[tick] + TURN_MS)
        delay = np.maximum(delay, np.where(then, late[tick], 0.0))
    waking: Floats = np.minimum(delay, length_ms)
    return waking


def _answer_at_once(recording: jfr.Recording) -> NDArray[np.bool_]:
    """Stacks whose leaf is native code of the JDK that waits for no device, (stacks,); at least one row.

    The kernel answers most calls from its memory: opening, closing, deleting a file, asking for its length, waking a
    selector.  A thread that is seen there has a CPU, or had one taken away, which happens where a call returns.  So it
    has in reading and writing where the recording keeps waits from a few ms on, since samples that fall into those
    are not counted: what is left are calls that took less.
    """
    found = np.zeros(max(len(recording.stacks), 1), dtype=bool)
    classes, methods, _ = frame_texts(recording)
    short = sees_all(recording)
    at_once = np.array(
        [
            bool(_JDK.match(owner))
            and not _WAITS.match(f"{owner}.{method}")
            and (short or not _READS_OR_WRITES.match(f"{owner}.{method}"))
            for owner, method in zip(classes, methods, strict=True)
        ],
        dtype=bool,
    )
    lengths = np.diff(recording.stacks.offsets)
    some = lengths > 0
    found[: len(lengths)][some] = at_once[recording.stacks.frame_index[recording.stacks.offsets[:-1][some]]]
    return found


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
