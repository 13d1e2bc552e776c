"""Splits every task's duration by resource: times that the framework measured bound those from labels.

While a task holds its slot, the framework measures some of its time on a resource: CPU time, waiting for other workers'
data.  The rest is off the CPU for reasons that the log does not name.  Recordings name them.  Intervals that they
measured (parked, waiting for a lock, reading, writing) count with their length, samples divide the remaining time of
the slot, and the times that the framework measured then act as lower bounds.  Without recordings the rest stays
`other`, except for time that the framework calls likely on a resource.

A runnable thread without a CPU (a container's quota, CPU contention on the host) waits for the CPU: with more CPU
that time shrinks, so it counts as cpu, although CPU time lacks it.  Samples of running code show it.  If the recorder
sees threads in every state, time without any sample shows it too: then the sampler's own thread had no CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU
from crystalperf.query.trace.contract import Bounds
from crystalperf.query.trace.records import Floats, Ints

PRIOR_SAMPLES_MS = 200.0
"""Weight of the stage's mixture that is added to a task's own samples: ten samples at 20 ms."""


@frozen
class Recorded:
    """Recorded time of the tasks by resource, (tasks, resources + 1) in ms; the last column is unattributed time.

    `intervals_ms` was measured.  `samples_ms` counts ticks, so its proportions are right, but not its sum.
    """

    intervals_ms: Floats
    samples_ms: Floats
    sees_all: NDArray[np.bool_] | None = None
    """(tasks,): whether the recorder sees threads in every state.  Then time without samples is time in which the
    process, and its sampler with it, got no CPU.  None: for no task."""


def split(bounds: Bounds, duration_ms: Floats, stage: Ints, recorded: Recorded | None, names: Sequence[str]) -> Floats:
    """Time of each task by resource, (tasks, resources + 1) in ms; the last column is `other`.

    Every row sums to the task's duration.  `stage` numbers the tasks' stages; `recorded` is None if the run has no
    recordings; `names` are its resources.
    """
    cpu = names.index(CPU)
    unmeasured = np.isnan(bounds.slot_ms)
    held = np.where(unmeasured, 0.0, bounds.slot_ms)
    floor = bounds.floor_ms
    rest = np.maximum(held - floor.sum(axis=1), 0.0)  # rounding may leave less than nothing
    parts = np.zeros_like(floor)

    if recorded is None or not (recorded.intervals_ms.any() or recorded.samples_ms.any()):
        parts += floor
        for column in range(len(names)):
            likely = np.minimum(bounds.likely_ms[:, column], rest)
            parts[:, column] += likely
            rest = rest - likely
        parts[:, -1] += rest
    else:
        wanted = _with_samples_scaled(recorded, stage, held, cpu)
        blocked = np.delete(floor, cpu, axis=1).sum(axis=1)
        parts[:, cpu] = np.minimum(np.maximum(wanted[:, cpu], floor[:, cpu]), held - blocked)
        remaining = held - parts[:, cpu]
        wanted[:, cpu] = 0.0
        wanted = np.maximum(wanted - np.where(np.arange(floor.shape[1]) == cpu, 0.0, floor), 0.0)
        claims = wanted.sum(axis=1)
        wanted[claims <= 0, -1] = 1.0
        claims = np.where(claims <= 0, 1.0, claims)
        parts += wanted * ((remaining - blocked) / claims)[:, None]
        others = np.arange(floor.shape[1]) != cpu
        parts[:, others] += floor[:, others]

    parts += bounds.outside_ms
    parts[unmeasured] = 0.0
    return _scaled_to_duration(parts, duration_ms)


def _with_samples_scaled(recorded: Recorded, stage: Ints, slot_ms: Floats, cpu: int) -> Floats:
    """Rows that sum to `slot_ms`: intervals with their length, samples scaled to the remaining time."""
    exact = recorded.intervals_ms
    sums = exact.sum(axis=1)
    exact = exact * np.divide(slot_ms, sums, out=np.ones_like(sums), where=sums > slot_ms)[:, None]
    pooled = _pooled(recorded.samples_ms, stage)
    total = pooled.sum(axis=1, keepdims=True)
    share = np.divide(pooled, total, out=np.zeros_like(pooled), where=total > 0)
    share[total[:, 0] <= 0, -1] = 1.0
    rest = np.maximum(slot_ms - exact.sum(axis=1), 0.0)
    cpu_wait_ms = _unsampled_share(recorded, stage, rest) * rest
    filled: Floats = exact + share * (rest - cpu_wait_ms)[:, None]
    filled[:, cpu] += cpu_wait_ms
    return filled


def _unsampled_share(recorded: Recorded, stage: Ints, rest_ms: Floats) -> Floats:
    """The share of each task's time, (tasks,), without samples, for recorders that see all thread states.

    It is the share of the whole stage, because a short task has too few samples; 0 if the stage has no samples.
    """
    if recorded.sees_all is None:
        return np.zeros(len(rest_ms))
    count = int(stage.max(initial=-1)) + 1
    counted = np.where(recorded.sees_all, 1.0, 0.0)
    seen = np.bincount(stage, weights=counted * recorded.samples_ms.sum(axis=1), minlength=count)
    whole = np.bincount(stage, weights=counted * rest_ms, minlength=count)
    missing = np.divide(whole - seen, whole, out=np.zeros(count), where=(whole > 0) & (seen > 0))
    share: Floats = np.maximum(missing, 0.0)[stage] * counted
    return share


def _pooled(sampled_ms: Floats, stage: Ints) -> Floats:
    """Each task's samples plus PRIOR_SAMPLES_MS of its stage's mixture: short tasks have few samples of their own."""
    stages = int(stage.max(initial=-1)) + 1
    totals = np.zeros((stages, sampled_ms.shape[1]))
    np.add.at(totals, stage, sampled_ms)
    sums = totals.sum(axis=1, keepdims=True)
    mixture = np.divide(totals, sums, out=np.zeros_like(totals), where=sums > 0)
    pooled: Floats = sampled_ms + PRIOR_SAMPLES_MS * mixture[stage]
    return pooled


def _scaled_to_duration(parts_ms: Floats, duration_ms: Floats) -> Floats:
    """Rows that sum to the durations: missing time becomes `other`, rows with too much time are scaled down."""
    total = parts_ms.sum(axis=1)
    factor = np.divide(duration_ms, total, out=np.ones_like(total), where=total > duration_ms)
    scaled: Floats = parts_ms * factor[:, None]
    scaled[:, -1] += np.maximum(duration_ms - scaled.sum(axis=1), 0.0)
    return scaled
