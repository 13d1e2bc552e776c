"""Matches threads to units (a sample names a thread and a time, not a unit).

A unit holds one thread of its worker from launch to finish.  At any time a thread is seen inside a unit, idle in its
pool, or not seen.  A unit is assigned to the thread that was inside a unit for most of the unit's time and idle at
its launch and finish; no thread holds two units at a time.
Times of a recording are on the worker's clock and those of units on the coordinator's, so the clock shift between the
two is estimated first: the one under which threads are busy when units run.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.trace.records import Floats, Ints

BIN_MS = 10.0
MAX_SHIFT_MS = 60_000.0
AGREES = 0.9
"""Clocks agree if more than this share of the threads' busy time is within units without a shift …"""

CLEARLY_BETTER = 0.1
"""… and a shift must add at least this share: noise must not shift the clocks of one machine."""

TOLERANCE_MS = 50.0
"""The coordinator records a finish slightly after the thread's, and a launch slightly before it."""


@dataclass(frozen=True)
class Seen:
    """Intervals in which the threads of one recording were seen in a unit or idle; sorted by start, times in ms."""

    thread: Ints
    start_ms: Floats
    end_ms: Floats
    in_unit: NDArray[np.bool_]


def clock_shift(seen: Seen, launch_ms: Floats, finish_ms: Floats) -> float:
    """The clock shift, ms: recording time plus shift is coordinator time; 0 unless another is clearly better."""
    busy = seen.in_unit
    if not busy.any() or len(launch_ms) == 0:
        return 0.0
    begin = min(float(seen.start_ms[busy].min()), float(launch_ms.min())) - BIN_MS
    end = max(float(seen.end_ms[busy].max()), float(finish_ms.max())) + BIN_MS
    bins = int((end - begin) / BIN_MS) + 2
    if bins > 1 << 22:  # 12 hours: the profile of a longer run is too flat to estimate a shift
        return 0.0
    threads = _level(seen.start_ms[busy], seen.end_ms[busy], begin, bins)
    units = _level(launch_ms, finish_ms, begin, bins)
    size = 1 << (2 * bins - 1).bit_length()
    spectrum = np.conj(np.fft.rfft(threads - threads.mean(), size))
    agreement = np.fft.irfft(np.fft.rfft(units - units.mean(), size) * spectrum, size)
    reach = min(int(MAX_SHIFT_MS / BIN_MS), bins - 1)
    shifts = np.concatenate([np.arange(0, reach + 1), np.arange(-reach, 0)])
    best = int(shifts[np.argmax(agreement[shifts])])
    if (
        _inside(threads, units, 0) > AGREES
        or _inside(threads, units, best) < _inside(threads, units, 0) + CLEARLY_BETTER
    ):
        return 0.0
    return best * BIN_MS


def _inside(threads: Floats, units: Floats, shift: int) -> float:
    """The share of the busy time, moved by a shift in bins, during which some unit ran."""
    moved = np.zeros_like(threads)
    if shift >= 0:
        moved[shift:] = threads[: len(threads) - shift]
    else:
        moved[:shift] = threads[-shift:]
    return float(moved[units > 0].sum() / threads.sum())


def assign(seen: Seen, launch_ms: Floats, finish_ms: Floats) -> Ints:
    """The thread of each unit, -1 if none fits; units are those of one worker, sorted by launch."""
    threads = np.unique(seen.thread[seen.in_unit])
    count = len(launch_ms)
    result = np.full(count, -1, dtype=np.int64)
    if len(threads) == 0 or count == 0:
        return result
    length = np.maximum(finish_ms - launch_ms, 1.0)
    score, bounds = np.empty((2, count, len(threads)))
    for column, thread in enumerate(threads):
        of_thread = seen.thread == thread
        busy = _overlap(seen, of_thread & seen.in_unit, launch_ms, finish_ms)
        idle = _overlap(seen, of_thread & ~seen.in_unit, launch_ms, finish_ms)
        score[:, column] = (busy - idle) / length
        bounds[:, column] = _bounds(seen, of_thread & ~seen.in_unit, launch_ms, finish_ms)
    # In the order of launches: if all threads are equally busy, only the time at which one became free distinguishes
    # them.  Of units launched at once the longest first, because the fewest threads fit it.
    at_once = np.cumsum(np.diff(launch_ms, prepend=launch_ms[0]) > TOLERANCE_MS)
    taken: list[list[tuple[float, float]]] = [[] for _ in threads]
    for unit in np.lexsort((-length, at_once)).tolist():
        for column in np.argsort(-score[unit] - bounds[unit], kind="stable").tolist():
            if score[unit, column] > 0 and _fits(taken[column], float(launch_ms[unit]), float(finish_ms[unit])):
                result[unit] = threads[column]
                break
    return result


def _bounds(seen: Seen, idle: NDArray[np.bool_], launch_ms: Floats, finish_ms: Floats) -> Floats:
    """How well a thread's idle intervals bound each unit: 1 for launch and finish at one, -1 for each one within."""
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


def unit_at(thread: Ints, moment_ms: Floats, unit_thread: Ints, launch_ms: Floats, finish_ms: Floats) -> Ints:
    """Positions of the units that held the threads at these moments, -1 for none, (moments,)."""
    result = np.full(len(thread), -1, dtype=np.int64)
    for each in np.unique(unit_thread[unit_thread >= 0]):
        units = np.flatnonzero(unit_thread == each)
        units = units[np.argsort(launch_ms[units], kind="stable")]
        rows = np.flatnonzero(thread == each)
        last = np.searchsorted(launch_ms[units], moment_ms[rows], side="right") - 1
        inside = (last >= 0) & (finish_ms[units][np.maximum(last, 0)] >= moment_ms[rows])
        result[rows[inside]] = units[last[inside]]
    return result


def _overlap(seen: Seen, rows: NDArray[np.bool_], launch_ms: Floats, finish_ms: Floats) -> Floats:
    """ms of each unit's time that the chosen rows cover (rows of one thread do not overlap)."""
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


def named_unit_at(
    thread: Ints,
    names: Sequence[str],
    moment_ms: Floats,
    unit_threads: Sequence[str],
    launch_ms: Floats,
    finish_ms: Floats,
) -> Ints:
    """Like unit_at(), if threads are named after their units: the running unit with the name of the thread.

    `names` are those of the threads that `thread` numbers; units are sorted by launch.
    """
    result = np.full(len(thread), -1, dtype=np.int64)
    units_of: dict[str, list[int]] = {}
    for unit, name in enumerate(unit_threads):
        units_of.setdefault(name, []).append(unit)
    for number in np.unique(thread):
        units = np.array(units_of.get(names[number], []), dtype=np.int64)
        if not len(units):
            continue
        rows = np.flatnonzero(thread == number)
        last = np.searchsorted(launch_ms[units], moment_ms[rows] + TOLERANCE_MS, side="right") - 1
        inside = (last >= 0) & (finish_ms[units][np.maximum(last, 0)] >= moment_ms[rows] - TOLERANCE_MS)
        result[rows[inside]] = units[last[inside]]
    return result
