"""Times of a log that contradict each other: a driver's clock that was set, and single times that cannot be.

Executors measure tasks on clocks of their own, which no setting of the driver's clock changes.  So a step of the
driver's clock shows in the tasks that ran across it: all of them took as much more, or less, than they measured.
Events are in the log in the order in which the driver saw them, so later ends have later times on one clock.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.arrays import median

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

STEP_MS = 60_000.0
"""Minimum difference of times that counts as a contradiction: delays of a busy driver are shorter."""

SAME = 0.1
"""Maximum relative difference between the steps that tasks show, and of the time without any event from a step."""

FARTHEST_MS = 400 * 86_400_000.0
"""Maximum distance of a time from the median of all times; no application runs for two years."""

_MAX_STEPS = 20
_MAX_TRIED = 50  # tasks; those of one step follow each other in the log


@frozen
class Eras:
    """The times of tasks on one clock, and what to add to times after each step: `offsets_ms`, the first is 0."""

    launch_ms: Floats
    finish_ms: Floats
    offsets_ms: tuple[float, ...]

    @property
    def steps_ms(self) -> tuple[float, ...]:
        """By how much the clock was set forward, negative if back."""
        return tuple(before - after for before, after in zip(self.offsets_ms, self.offsets_ms[1:], strict=False))

    def near(self, time_ms: float | None, reference_ms: float | None) -> float | None:
        """A logged time on the one clock: of its possible values, the nearest to a corrected reference."""
        if time_ms is None or len(self.offsets_ms) == 1:
            return time_ms
        if reference_ms is None or not np.isfinite(reference_ms):
            return time_ms
        return min((time_ms + each for each in self.offsets_ms), key=lambda each: abs(each - reference_ms))

    def last(self, time_ms: float | None) -> float | None:
        """A logged time after all steps."""
        return None if time_ms is None else time_ms + self.offsets_ms[-1]


def eras(launch_ms: Floats, finish_ms: Floats, measured_ms: Floats) -> Eras:
    """Tasks' times on one clock, (tasks,), from times in the order of their ends in the log.

    `measured_ms` is how long executors measured, NaN if unknown; so are unknown times.
    """
    launch, finish, offsets = launch_ms.copy(), finish_ms.copy(), [0.0]
    begin = 0
    while len(offsets) <= _MAX_STEPS:
        found = _next_step(launch, finish, measured_ms, begin)
        if found is None:
            break
        row, step = found
        with np.errstate(invalid="ignore"):
            excess = finish - launch - measured_ms
            crossing = np.abs(excess - step) <= np.maximum(SAME * abs(step), STEP_MS / 2)
        finish[row:] -= step
        later = np.arange(len(launch)) >= row
        launch[later & ~crossing] -= step
        offsets.append(offsets[-1] - step)
        begin = row + 1
    return Eras(launch, finish, tuple(offsets))


def _next_step(launch: Floats, finish: Floats, measured: Floats, begin: int) -> tuple[int, float] | None:
    """The first step from a row on: the row of the first end after it, and by how much the clock was set forward."""
    with np.errstate(invalid="ignore"):
        excess = finish - launch - measured
        rows = np.flatnonzero(np.abs(excess) > STEP_MS)
    for row in rows[rows >= begin][:_MAX_TRIED].tolist():
        step = float(excess[row])
        alike = rows[(rows >= row) & (np.abs(excess[rows] - step) <= SAME * abs(step))]
        step = median(excess[alike])
        if _is_step(launch, finish, excess, row, step):
            return row, step
    return None


def _is_step(launch: Floats, finish: Floats, excess: Floats, row: int, step: float) -> bool:
    """Whether all times agree with a step before the end at a row."""
    crossing = np.abs(excess - step) <= SAME * abs(step)
    later = np.arange(len(finish)) >= row
    ended_ms = finish[~later]
    before = np.concatenate([ended_ms, launch[~later], launch[later & crossing]])
    after = np.concatenate([finish[later], launch[later & ~crossing]])
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if not len(before) or not len(after):
        return False
    if step > 0:  # no event has a time that the clock skipped
        return float(after.min() - before.max()) >= (1.0 - SAME) * step - STEP_MS / 2
    # The first end after the step has a time well before those of tasks that had begun or ended by then.
    return float(np.min(after)) < float(before.max()) + step / 2 and _stays_back(finish[later], before.max(), step)


def _stays_back(finish: Floats, latest_ms: float, step: float) -> bool:
    """Whether ends after a step back begin again at that time, instead of one that is odd."""
    known = finish[np.isfinite(finish)][:3]
    return bool((known < latest_ms + step / 2).all())


def implausible(times: Floats) -> tuple[float, float]:
    """The earliest and the latest plausible time of a log, ms, by the median of its times."""
    middle = median(times)
    return middle - FARTHEST_MS, middle + FARTHEST_MS
