"""Matches threads to tasks (a sample names a thread and a time, not a task).

A task holds one thread of its worker from launch to finish.  At any time a thread is seen inside a task, idle in its
pool, or not seen.  A task is assigned to the thread that was inside a task for most of the task's time and idle at
its launch and finish; no thread holds two tasks at a time.
Times of a recording are on the worker's clock and those of tasks on the driver's, so the clock shift between the
two is estimated first: the one under which threads are busy when tasks run.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import Floats, Ints

BIN_MS = 10.0
MAX_SHIFT_MS = 60_000.0
AGREES = 0.9
"""Clocks agree if more than this share of the threads' busy time is within tasks without a shift …"""

CLEARLY_BETTER = 0.1
"""… and a shift must add at least this share: noise must not shift the clocks of one machine."""

TOLERANCE_MS = 50.0
"""The driver records a finish slightly after the thread's, and a launch slightly before it."""


@frozen
class ThreadIntervals:
    """Intervals in which the threads of one recording were seen in a task or idle; sorted by start, times in ms."""

    thread: Ints
    start_ms: Floats
    end_ms: Floats
    in_task: NDArray[np.bool_]


def clock_shift(seen: ThreadIntervals, launch_ms: Floats, finish_ms: Floats) -> float:
    """The clock shift, ms: recording time plus shift is driver time; 0 unless another is clearly better."""
    busy = seen.in_task
    if not busy.any() or len(launch_ms) == 0:
        return 0.0
    begin = min(float(seen.start_ms[busy].min()), float(launch_ms.min())) - BIN_MS
    end = max(float(seen.end_ms[busy].max()), float(finish_ms.max())) + BIN_MS
    bins = int((end - begin) / BIN_MS) + 2
    if bins > 1 << 22:  # 12 hours: the profile of a longer run is too flat to estimate a shift
        return 0.0
    threads = _level(seen.start_ms[busy], seen.end_ms[busy], begin, bins)
    tasks = _level(launch_ms, finish_ms, begin, bins)
    size = 1 << (2 * bins - 1).bit_length()
    spectrum = np.conj(np.fft.rfft(threads - threads.mean(), size))
    agreement = np.fft.irfft(np.fft.rfft(tasks - tasks.mean(), size) * spectrum, size)
    reach = min(int(MAX_SHIFT_MS / BIN_MS), bins - 1)
    shifts = np.concatenate([np.arange(0, reach + 1), np.arange(-reach, 0)])
    best = int(shifts[np.argmax(agreement[shifts])])
    if (
        _inside(threads, tasks, 0) > AGREES
        or _inside(threads, tasks, best) < _inside(threads, tasks, 0) + CLEARLY_BETTER
    ):
        return 0.0
    return best * BIN_MS


def _inside(threads: Floats, tasks: Floats, shift: int) -> float:
    """The share of the busy time, moved by a shift in bins, during which some task ran."""
    moved = np.zeros_like(threads)
    if shift >= 0:
        moved[shift:] = threads[: len(threads) - shift]
    else:
        moved[:shift] = threads[-shift:]
    return float(moved[tasks > 0].sum() / threads.sum())


def assign(seen: ThreadIntervals, launch_ms: Floats, finish_ms: Floats) -> Ints:
    """The thread of each task, -1 if none fits; tasks are those of one worker, sorted by launch."""
    threads = np.unique(seen.thread[seen.in_task])
    count = len(launch_ms)
    result = np.full(count, -1, dtype=np.int64)
    if len(threads) == 0 or count == 0:
        return result
    length = np.maximum(finish_ms - launch_ms, 1.0)
    score, bounds = np.empty((2, count, len(threads)))
    for column, thread in enumerate(threads):
        of_thread = seen.thread == thread
        busy = _overlap(seen, of_thread & seen.in_task, launch_ms, finish_ms)
        idle = _overlap(seen, of_thread & ~seen.in_task, launch_ms, finish_ms)
        score[:, column] = (busy - idle) / length
        bounds[:, column] = _bounds(seen, of_thread & ~seen.in_task, launch_ms, finish_ms)
    # In the order of launches: if all threads are equally busy, only the time at which one became free distinguishes
    # them.  Of tasks launched at once the longest first, because the fewest threads fit it.
    at_once = np.cumsum(np.diff(launch_ms, prepend=launch_ms[0]) > TOLERANCE_MS)
    taken: list[list[tuple[float, float]]] = [[] for _ in threads]
    for task in np.lexsort((-length, at_once)).tolist():
        for column in np.argsort(-score[task] - bounds[task], kind="stable").tolist():
            if score[task, column] > 0 and _fits(taken[column], float(launch_ms[task]), float(finish_ms[task])):
                result[task] = threads[column]
                break
    return result


def _bounds(seen: ThreadIntervals, idle: NDArray[np.bool_], launch_ms: Floats, finish_ms: Floats) -> Floats:
    """How well a thread's idle intervals bound each task: 1 for launch and finish at one, -1 for each one within."""
    start, end = np.sort(seen.start_ms[idle]), np.sort(seen.end_ms[idle])

    def at(moment_ms: Floats) -> NDArray[np.bool_]:
        begun = np.searchsorted(start, moment_ms + TOLERANCE_MS, side="right")
        return np.asarray(begun > np.searchsorted(end, moment_ms - TOLERANCE_MS))

    first = np.searchsorted(start, launch_ms + TOLERANCE_MS, side="right")
    within = np.maximum(np.searchsorted(start, finish_ms - TOLERANCE_MS) - first, 0)
    result: Floats = at(launch_ms).astype(np.float64) + at(finish_ms) - within
    return result


def _fits(taken: list[tuple[float, float]], start_ms: float, end_ms: float) -> bool:
    """Insert an interval into a thread's sorted, disjoint ones; False if it overlaps one beyond the tolerance."""
    place = bisect(taken, (start_ms, end_ms))
    before = taken[place - 1][1] if place else -np.inf
    after = taken[place][0] if place < len(taken) else np.inf
    if start_ms < before - TOLERANCE_MS or end_ms > after + TOLERANCE_MS:
        return False
    taken.insert(place, (start_ms, end_ms))
    return True


def task_at(thread: Ints, moment_ms: Floats, task_thread: Ints, launch_ms: Floats, finish_ms: Floats) -> Ints:
    """Positions of the tasks that held the threads at these moments, -1 for none, (moments,)."""
    result = np.full(len(thread), -1, dtype=np.int64)
    for each in np.unique(task_thread[task_thread >= 0]):
        tasks = np.flatnonzero(task_thread == each)
        tasks = tasks[np.argsort(launch_ms[tasks], kind="stable")]
        rows = np.flatnonzero(thread == each)
        last = np.searchsorted(launch_ms[tasks], moment_ms[rows], side="right") - 1
        inside = (last >= 0) & (finish_ms[tasks][np.maximum(last, 0)] >= moment_ms[rows])
        result[rows[inside]] = tasks[last[inside]]
    return result


def _overlap(seen: ThreadIntervals, rows: NDArray[np.bool_], launch_ms: Floats, finish_ms: Floats) -> Floats:
    """ms of each task's time that the chosen rows cover (rows of one thread do not overlap)."""
    if not rows.any():
        return np.zeros(len(launch_ms))
    start = seen.start_ms[rows]
    end = np.maximum(np.minimum(seen.end_ms[rows], np.append(start[1:], np.inf)), start)
    moments = np.column_stack([start, end]).ravel()
    covered = np.cumsum(np.column_stack([np.zeros(len(start)), end - start]).ravel())
    total: Floats = np.interp(finish_ms, moments, covered) - np.interp(launch_ms, moments, covered)
    return total


def _level(start_ms: Floats, end_ms: Floats, begin_ms: float, bins: int) -> Floats:
    """The number of open intervals in each bin."""
    level = np.zeros(bins + 1)
    np.add.at(level, ((start_ms - begin_ms) / BIN_MS).astype(np.int64), 1.0)
    np.add.at(level, np.minimum(((end_ms - begin_ms) / BIN_MS).astype(np.int64) + 1, bins), -1.0)
    return np.cumsum(level)[:bins]


def named_task_at(
    thread: Ints,
    names: Sequence[str],
    moment_ms: Floats,
    task_threads: Sequence[str],
    launch_ms: Floats,
    finish_ms: Floats,
) -> Ints:
    """Like task_at(), if threads are named after their tasks: the running task with the name of the thread.

    `names` are those of the threads that `thread` numbers; tasks are sorted by launch.
    """
    result = np.full(len(thread), -1, dtype=np.int64)
    tasks_of: dict[str, list[int]] = {}
    for task, name in enumerate(task_threads):
        tasks_of.setdefault(name, []).append(task)
    for number in np.unique(thread):
        tasks = np.array(tasks_of.get(names[number], []), dtype=np.int64)
        if not len(tasks):
            continue
        rows = np.flatnonzero(thread == number)
        last = np.searchsorted(launch_ms[tasks], moment_ms[rows] + TOLERANCE_MS, side="right") - 1
        inside = (last >= 0) & (finish_ms[tasks][np.maximum(last, 0)] >= moment_ms[rows] - TOLERANCE_MS)
        result[rows[inside]] = tasks[last[inside]]
    return result
