"""Converts recordings to time on threads: every sample and measured interval with the wall-clock that it represents.

Counts are not time.  HotSpot's sampler takes some of the threads per tick (query.attribution.samples.weights), and
never a blocked one; the recording's duration events have those times exactly.  A wall-clock profiler's samples need
neither correction.

Not all of a wait is spent on the resource that it is named after: if the process is short of CPUs, the end of the
wait is CPU wait (query.attribution.samples.sampling_delay).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.attribution.samples.calls import NO_CALL, file_calls, nonblocking_calls
from crystalperf.query.attribution.samples.sampling_delay import Ticks, ticks, waking
from crystalperf.query.attribution.samples.weights import sample_weights, stated_period_ms
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.merge import parse_period_ns
from crystalperf.query.recordings.jfr.model import NATIVE, WALL
from crystalperf.query.trace.records import Floats, Ints
from crystalperf.query.trace.sample_kinds import RUNNING, TIMED_KINDS, WAKING

BLOCKING_EVENTS = ("jdk.ThreadPark", "jdk.JavaMonitorWait", "jdk.SocketRead", "jdk.FileRead")
"""Events of blocked threads, which HotSpot's sampler does not see."""

SHORT_WAIT_MS = 5.0
"""If the recording has all waits from this length on, little blocked time is missing."""

KINDS = (*(name.lower() for name in jfr.SAMPLE_KINDS), *TIMED_KINDS.values(), RUNNING)
"""Values of `ThreadTime.kind`."""

KIND_OF_INTERVAL: Ints = np.array(
    [KINDS.index(TIMED_KINDS[name]) if name in TIMED_KINDS else -1 for name in jfr.INTERVAL_KINDS], dtype=np.int64
)
"""Number in KINDS for each of jfr.INTERVAL_KINDS; -1 for intervals that belong to no thread."""


class ThreadTime(NamedTuple):
    """Time on threads, a row per sample or interval; arrays of one length.

    `start_ms` is Unix time in ms on the recording's own clock, `weight_ms` the wall-clock a row represents,
    `kind` indexes KINDS, `thread` and `stack` index the recording's.
    """

    start_ms: Floats
    thread: Ints
    stack: Ints
    kind: Ints
    weight_ms: Floats
    bytes: Ints

    def at(self, rows: NDArray[np.bool_] | Ints) -> ThreadTime:
        """Selected rows, by a mask or by number."""
        return ThreadTime._make(column[rows] for column in self)


def thread_time(recording: jfr.Recording) -> ThreadTime:
    """All samples and intervals of a recording that belong to a thread, without double counting, by start."""
    is_wall = _is_wall(recording)
    timed = _belongs_to_thread(recording.intervals)
    if is_wall:
        # A wall-clock profiler samples blocked threads too, so intervals would count twice.  Only its samples are late
        # after calls; HotSpot has events for those.
        timed[:] = False
        in_call = file_calls(recording)[recording.samples.stack]
    else:
        in_call = np.full(len(recording.samples), NO_CALL, dtype=np.int64)
    by = ticks(recording, stated_period_ms(recording, "WALL" if is_wall else "NATIVE"), in_call != NO_CALL)
    kept = _kept(recording, timed)
    blocks = (
        *_waits_in_calls(recording.samples, kept, in_call, by),
        *_sampled(recording, kept, by),
        *_measured(recording.intervals, timed, by),
    )
    whole = ThreadTime._make(np.concatenate(column) for column in zip(*blocks, strict=True))
    return whole.at(np.argsort(whole.start_ms, kind="stable"))


def _of_samples(samples: jfr.Samples, kind: Ints, weight_ms: Floats) -> ThreadTime:
    thread, stack = samples.thread.astype(np.int64), samples.stack.astype(np.int64)
    return ThreadTime(samples.time_ns / 1e6, thread, stack, kind, weight_ms, np.zeros(len(samples), np.int64))


def _waits_in_calls(
    samples: jfr.Samples, kept: NDArray[np.bool_], in_call: Ints, by: Ticks
) -> tuple[ThreadTime, ThreadTime]:
    """Waits in file calls, from samples that came late: they end when the call is over.

    A thread that sleeps on a disk takes no signal until the call returns; its handler then shows the call.  A sample
    that is no later than usual CPU wait may be late for that reason, and is not counted here.
    """
    held = kept & (in_call != NO_CALL) & (by.samples_late_ms > by.unusual_ms())
    late = _of_samples(samples, KIND_OF_INTERVAL[in_call], by.samples_late_ms).at(held)
    return _split_off_wakeup(late._replace(start_ms=late.start_ms - late.weight_ms), by)


def _sampled(recording: jfr.Recording, kept: NDArray[np.bool_], by: Ticks) -> tuple[ThreadTime, ThreadTime]:
    """Samples without CPU wait, and their CPU wait."""
    samples = recording.samples
    native, wall = samples.kind == NATIVE, samples.kind == WALL
    at_once = nonblocking_calls(recording, short_waits=sees_all(recording))[samples.stack]
    runnable = np.array([name == "STATE_RUNNABLE" for name in samples.state_names] or [False])
    running = (native & at_once) | (wall & runnable[samples.state])
    kind = np.where(running, KINDS.index(RUNNING), samples.kind.astype(np.int64))
    weight_ms = sample_weights(recording, by)
    ready_ms = np.where((native | wall) & ~running, _cpu_wait_ms(samples, weight_ms, by), 0.0)
    kept = kept & (weight_ms > 0)
    time = _of_samples(samples, kind, weight_ms).at(kept)
    return _split_off_cpu_wait(time, ready_ms[kept], time.start_ms)


def _measured(intervals: jfr.Intervals, timed: NDArray[np.bool_], by: Ticks) -> tuple[ThreadTime, ThreadTime]:
    """Intervals without the CPU wait at their ends, and that CPU wait."""
    start_ms = intervals.start_ns / 1e6
    thread, stack = intervals.thread.astype(np.int64), intervals.stack.astype(np.int64)
    kind = KIND_OF_INTERVAL[intervals.kind]
    length_ms, count = intervals.end_ns / 1e6 - start_ms, intervals.bytes.astype(np.int64)
    ready_ms = waking(intervals.end_ns / 1e6, length_ms, by)
    sleep_ms = intervals.asked_ns / 1e6  # a sleeping thread was not ready before the requested time was over
    ready_ms = np.where(sleep_ms > 0, np.clip(length_ms - sleep_ms, 0.0, ready_ms), ready_ms)
    waits = ThreadTime(start_ms, thread, stack, kind, length_ms, count)
    return _split_off_cpu_wait(waits.at(timed), ready_ms[timed], (intervals.end_ns / 1e6 - ready_ms)[timed])


def _split_off_cpu_wait(time: ThreadTime, ready_ms: Floats, ready_from_ms: Floats) -> tuple[ThreadTime, ThreadTime]:
    """The rows without their CPU wait `ready_ms`, (rows,), and rows of the CPU wait."""
    waking_kind = np.full_like(time.kind, KINDS.index(WAKING))
    ready = ThreadTime(ready_from_ms, time.thread, time.stack, waking_kind, ready_ms, np.zeros_like(time.bytes))
    return time._replace(weight_ms=time.weight_ms - ready_ms), ready.at(ready_ms > 0)


def _split_off_wakeup(waits: ThreadTime, by: Ticks) -> tuple[ThreadTime, ThreadTime]:
    """Waits without the CPU wait at their ends, and that CPU wait."""
    end_ms = waits.start_ms + waits.weight_ms
    ready_ms = waking(end_ms, waits.weight_ms, by)
    return _split_off_cpu_wait(waits, ready_ms, end_ms - ready_ms)


def _belongs_to_thread(intervals: jfr.Intervals) -> NDArray[np.bool_]:
    """Which intervals belong to a thread with a stack, (intervals,)."""
    return (KIND_OF_INTERVAL[intervals.kind] >= 0) & (intervals.thread >= 0) & (intervals.stack >= 0)


def _kept(recording: jfr.Recording, timed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which samples count: wall-clock samples only if there are any, else those outside their thread's intervals."""
    samples = recording.samples
    kept = (samples.thread >= 0) & (samples.stack >= 0)
    if _is_wall(recording):
        return kept & np.isin(samples.kind, WALL)
    return kept & ~_covered(samples.thread, samples.time_ns, recording.intervals, timed)


def _cpu_wait_ms(samples: jfr.Samples, weight_ms: Floats, by: Ticks) -> Floats:
    """CPU wait within samples of seemingly blocked threads, ms, (samples,).

    A wall-clock profiler wakes a thread to sample it, so each sample, however many ticks the thread slept, includes the
    CPU wait of a wake-up.  HotSpot does not disturb a thread in native code, so the sample does not show whether the
    call is over and only the CPU is missing.  If its tick was on time, there is no CPU wait; if it was late, the call
    may have ended at any moment meanwhile: half of the sample's time counts.
    """
    if not len(by.time_ms):
        return np.zeros(len(samples))
    at_ms = samples.time_ns / 1e6
    woken_ms = waking(at_ms, weight_ms / np.maximum(samples.ticks, 1), by)
    half_ms = np.where(by.late_ms[by.at(at_ms)] > 0, weight_ms / 2, 0.0)
    return np.where(samples.kind == WALL, woken_ms, half_ms)


def sees_all(recording: jfr.Recording) -> bool:
    """Whether a recording has threads in every state: a wall-clock profile, or HotSpot's with short waits."""
    if _is_wall(recording):
        return True
    thresholds = [recording.settings.get((event, "threshold")) for event in BLOCKING_EVENTS]
    return all(text is not None and parse_period_ns(text) <= SHORT_WAIT_MS * 1e6 for text in thresholds)


def _is_wall(recording: jfr.Recording) -> bool:
    return bool((recording.samples.kind == WALL).any())


def _covered(
    thread: NDArray[np.int32], time_ns: NDArray[np.int64], intervals: jfr.Intervals, timed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which samples are within an interval of their own thread: the interval already counts that time."""
    covered = np.zeros(len(thread), dtype=bool)
    for each in np.unique(intervals.thread[timed]):
        rows = np.flatnonzero(thread == each)
        if len(rows) == 0:
            continue
        chosen = timed & (intervals.thread == each)
        start = intervals.start_ns[chosen]
        end = np.maximum.accumulate(intervals.end_ns[chosen])
        last = np.searchsorted(start, time_ns[rows], side="right") - 1
        covered[rows] = (last >= 0) & (end[np.maximum(last, 0)] >= time_ns[rows])
    return covered
