"""Recordings as time on threads: every sample and measured interval with the wall-clock it stands for.

Counts are not time.  HotSpot's own sampler takes at most five threads running Java and one in native code per tick,
in rotation over all threads, and never one that is blocked; what it misses, the recording's duration events know
exactly.  A wall-clock profiler's samples need neither correction.

Nor is all of a wait spent waiting for what it is named after: where the process is short of CPUs, the end of it is
spent waiting for one (query.lateness).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from query import jfr
from query.dag import Floats, Ints
from query.frames import FILE_CALLS
from query.jfr.merge import parse_period_ns
from query.lateness import Ticks, ticks, waking, wall_lateness

DEFAULT_PERIOD_MS = 20.0
"""HotSpot's sampling period in its `profile` settings; used where a recording does not state its own."""

THREADS_PER_TICK = {"EXECUTION": 5, "NATIVE": 1}
"""How many threads HotSpot samples per tick, by the kind of sample (jfrThreadSampler.cpp)."""

WINDOW_TICKS = 50
"""Rotation of threads that run Java is estimated from the distinct ones seen within a window of this many ticks."""

TURN_TICKS = 200
"""Rotation of threads in native code is estimated within windows of so many ticks: some ten samples of each thread."""

WAKING = "waking"
"""Kind of the end of a wait in which the thread waited for a CPU only; the wait itself has a row of its own."""

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

_JDK = re.compile(r"(java|javax|jdk|sun|com\.sun)\.")
_WAITS = re.compile(
    r"(?i).*(wait|park|sleep|poll|select|accept|connect|lookup|receive|recv|send|force|sync|lock|transfer|load0)\w*$"
)
_FILE_CALL = re.compile(FILE_CALLS)
_NATIVE_CODE = re.compile(r"\.so\b|^\[")
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
    is_wall = _is_wall(recording)
    period_ms = _period_ms(recording, "WALL" if is_wall else "NATIVE")
    # Only a wall clock's samples are late in calls; HotSpot has events for those.
    in_call = _file_calls(recording)[np.maximum(samples.stack, 0)] if is_wall else np.zeros(len(samples), np.int64)
    by = ticks(recording, period_ms, in_call > 0)
    weight = _weights(recording, by)
    native = samples.kind == jfr.SAMPLE_KINDS.index("NATIVE")
    running = native & _answer_at_once(recording)[np.maximum(samples.stack, 0)]
    keep = weight > 0
    wall = samples.kind == jfr.SAMPLE_KINDS.index("WALL")
    if is_wall:
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
    start_ms, end_ms = intervals.start_ns[timed] / 1e6, intervals.end_ns[timed] / 1e6
    waking_ms = waking(end_ms, end_ms - start_ms, by)
    woken = waking_ms > 0
    thread, stack = intervals.thread[timed], intervals.stack[timed]
    sample_ms = samples.time_ns / 1e6
    blocked = keep & (native | wall) & ~running
    ready_ms = np.zeros(len(weight))
    ready_ms[blocked] = _ready(sample_ms[blocked], weight[blocked], samples.ticks[blocked], by, wall=is_wall)
    weight -= ready_ms
    unsure = ready_ms > 0
    held, held_ms = _asleep_in_calls(samples, keep & wall & (in_call > 0), period_ms, by)
    held_end, held_thread, held_stack = sample_ms[held], samples.thread[held], samples.stack[held]
    after_ms = waking(held_end, held_ms, by)
    late = after_ms > 0
    blocks = (
        (held_end - held_ms, held_thread, held_stack, in_call[held], held_ms - after_ms, 0),
        ((held_end - after_ms)[late], held_thread[late], held_stack[late], kinds.index(WAKING), after_ms[late], 0),
        (sample_ms[keep], samples.thread[keep], samples.stack[keep], sample_kind[keep], weight[keep], 0),
        (start_ms, thread, stack, interval_kind, end_ms - start_ms - waking_ms, intervals.bytes[timed]),
        ((end_ms - waking_ms)[woken], thread[woken], stack[woken], kinds.index(WAKING), waking_ms[woken], 0),
        (sample_ms[unsure], samples.thread[unsure], samples.stack[unsure], kinds.index(WAKING), ready_ms[unsure], 0),
    )
    columns = [
        np.concatenate([np.broadcast_to(np.asarray(block[column]), len(block[0])) for block in blocks])
        for column in range(6)
    ]
    order = np.argsort(columns[0], kind="stable")
    columns = [column[order] for column in columns]
    return ThreadTime(
        start_ms=columns[0].astype(np.float64),
        thread=columns[1].astype(np.int64),
        stack=columns[2].astype(np.int64),
        kind=columns[3].astype(np.int64),
        weight_ms=columns[4].astype(np.float64),
        bytes=columns[5].astype(np.int64),
        kinds=kinds,
    )


def sees_all(recording: jfr.Recording) -> bool:
    """Whether a recording shows threads in every state: a wall clock does, HotSpot's if it also keeps short waits."""
    if _is_wall(recording):
        return True
    thresholds = [recording.settings.get((event, "threshold")) for event in BLOCKING_EVENTS]
    return all(text is not None and parse_period_ns(text) <= SHORT_WAIT_MS * 1e6 for text in thresholds)


def _is_wall(recording: jfr.Recording) -> bool:
    return bool((recording.samples.kind == jfr.SAMPLE_KINDS.index("WALL")).any())


def _period_ms(recording: jfr.Recording, kind: str) -> float:
    return recording.periods_ns.get(kind, 0) / 1e6 or DEFAULT_PERIOD_MS


def _ready(sample_ms: Floats, weight_ms: Floats, count: NDArray[np.int32], by: Ticks, *, wall: bool) -> Floats:
    """ms of samples of threads that seemed to be blocked in which they waited for nothing but a CPU, (samples,).

    A wall clock looks at a thread by waking it, so each look (a sample is one, however many ticks it slept on) costs it
    what it costs any thread to wake.  HotSpot does not disturb a thread in native code, but neither can it tell whether
    the call is over and only the CPU is missing.  Where its tick was on time, none is; where it was late, the call may
    have ended at any moment meanwhile: half.
    """
    if wall:
        return waking(sample_ms, weight_ms / np.maximum(count, 1), by)
    if not len(by.time_ms):
        return np.zeros(len(sample_ms))
    return np.where(by.late_ms[by.at(sample_ms)] > 0, weight_ms / 2, 0.0)


def _asleep_in_calls(
    samples: jfr.Samples, in_call: NDArray[np.bool_], period_ms: float, by: Ticks
) -> tuple[NDArray[np.int64], Floats]:
    """Samples of a wall clock, of those `in_call` for a file, that came when the call was over, and how late, ms.

    A thread that sleeps on a disk takes no signal: it waits for the call to return, and its handler shows the call.
    Where the sample is no later than threads without a CPU are, it may have been that.
    """
    if not in_call.any():
        return np.empty(0, dtype=np.int64), np.empty(0)
    _, late_ms = wall_lateness(samples, period_ms)
    found = np.flatnonzero(in_call & (late_ms > by.unusual_ms()))
    return found, late_ms[found]


def _weights(recording: jfr.Recording, by: Ticks) -> Floats:
    """Wall-clock in ms that each sample stands for."""
    samples = recording.samples
    weight = np.zeros(len(samples))
    for code, name in enumerate(jfr.SAMPLE_KINDS):
        mine = np.flatnonzero(samples.kind == code)
        if len(mine) == 0:
            continue
        stated = _period_ms(recording, name)
        own = samples.period_ns[mine] / 1e6
        period = np.where(own > 0, own, _effective_period(samples, mine, stated) if name == "EXECUTION" else stated)
        weight[mine] = period * samples.ticks[mine]
        if recording.async_profiler_event is not None:
            continue
        if name == "NATIVE":
            weight[mine] = stated + by.late_ms[by.at(samples.time_ns[mine] / 1e6)]
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


def _file_calls(recording: jfr.Recording) -> NDArray[np.int64]:
    """The kind of interval that waiting in each stack is, (stacks,); at least one row.

    0 but where its topmost Java frame hands the thread to the kernel for a file.
    """
    found = np.zeros(max(len(recording.stacks), 1), dtype=np.int64)
    classes, methods, _ = frame_texts(recording)
    names = [f"{owner}.{method}" for owner, method in zip(classes, methods, strict=True)]
    native = np.array([bool(_NATIVE_CODE.search(owner)) for owner in classes], dtype=bool)
    calls = np.array([_call_kind(name) for name in names], dtype=np.int64)
    for stack in range(len(recording.stacks)):
        java = (frame for frame in recording.stacks.frames(stack).tolist() if not native[frame])
        found[stack] = calls[first] if (first := next(java, None)) is not None else 0
    return found


def _call_kind(name: str) -> int:
    """Which of the kinds of intervals a call for a file is, 0 for other functions."""
    if not _FILE_CALL.match(name):
        return 0
    kind = "file write" if "write" in name.lower() else "file force" if "force" in name.lower() else "file read"
    return len(jfr.SAMPLE_KINDS) + list(TIMED_KINDS.values()).index(kind)


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
