"""Every task's duration split by resource: what the framework measured bounds what the labels say.

    duration = scheduler delay + deserialise + run + serialise + fetch the result

While the task has its thread (deserialise + run + serialise), CPU time and garbage collection are measured to be cpu,
and waiting for shuffle blocks to be net.  The rest is off the CPU for reasons that the log does not name.  Recordings
name them.  Intervals that they measured (parked, waiting for a lock, reading, writing) count with their length,
samples share out what is left of the thread's time, and the times that Spark measured then act as lower bounds.
Without recordings the rest stays `other`, except that time blocked in writing shuffle files is disk.

A thread that could run but was given no CPU (a container's quota, a crowded host) waits for the CPU: with more CPU
that time shrinks, so it is cpu, although CPU time lacks it.  Samples of running Java code show it; and so does time
without any sample, where the recorder sees threads in every state: then the sampler's own thread was held back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexes import resources
from query.model.dag import Floats, Ints

PRIOR_SAMPLES_MS = 200.0
"""A task's own samples count in full beside this much of its stage's mixture: ten samples at 20 ms."""


@dataclass(frozen=True)
class Measured:
    """What the framework logged per task; arrays of one length in ms, NaN where it logged nothing."""

    duration_ms: Floats
    scheduler_delay_ms: Floats
    deserialize_ms: Floats
    deserialize_cpu_ms: Floats
    run_ms: Floats
    run_cpu_ms: Floats
    result_serialize_ms: Floats
    getting_result_ms: Floats
    gc_ms: Floats
    fetch_wait_ms: Floats
    shuffle_write_ms: Floats


@dataclass(frozen=True)
class Recorded:
    """What recordings tell of the tasks, (tasks, resources + 1) in ms; the last column is time that nothing decides.

    `intervals_ms` was measured, `samples_ms` counts ticks and so has the right proportions rather than the right sum.
    """

    intervals_ms: Floats
    samples_ms: Floats
    sees_all: NDArray[np.bool_] | None = None
    """(tasks,): whether the recorder sees threads in every state, so that time in which it saw nothing is time in which
    the process, and its sampler with it, got no CPU; None for none."""


def split(measured: Measured, stage: Ints, recorded: Recorded | None) -> Floats:
    """(tasks, resources + 1) in ms, the last column `other`; every row sums to the task's duration.

    `stage` numbers the tasks' stages; `recorded` is None where the run has no recordings.
    """
    names = resources()
    cpu, disk, net, other = names.index("cpu"), names.index("disk"), names.index("net"), len(names)
    count = len(measured.duration_ms)
    parts = np.zeros((count, len(names) + 1))
    unmeasured = np.isnan(measured.run_ms)
    held, on_cpu, fetch = explained(measured)
    rest = held - on_cpu - fetch

    if recorded is None or not (recorded.intervals_ms.any() or recorded.samples_ms.any()):
        writing = np.minimum(np.nan_to_num(measured.shuffle_write_ms), rest)
        parts[:, cpu], parts[:, net], parts[:, disk] = on_cpu, fetch, writing
        parts[:, other] = rest - writing
    else:
        wanted = _to_fill(recorded, stage, held)
        parts[:, cpu] = np.maximum(wanted[:, cpu], on_cpu)
        parts[:, cpu] = np.minimum(parts[:, cpu], held - fetch)
        remaining = held - parts[:, cpu]
        wanted[:, cpu] = 0.0
        wanted[:, net] = np.maximum(wanted[:, net] - fetch, 0.0)
        claims = wanted.sum(axis=1)
        wanted[claims <= 0, other] = 1.0
        claims = np.where(claims <= 0, 1.0, claims)
        parts += wanted * ((remaining - fetch) / claims)[:, None]
        parts[:, net] += fetch

    parts[:, net] += np.nan_to_num(measured.getting_result_ms)
    parts[:, other] += np.nan_to_num(measured.scheduler_delay_ms)
    parts[unmeasured] = 0.0
    return _to_length(parts, measured.duration_ms)


def explained(measured: Measured) -> tuple[Floats, Floats, Floats]:
    """Time that the task had its thread, and of it what the framework measured to be on the CPU and waiting for shuffle
    blocks, ms."""
    run, deserialize, serialize = (
        np.nan_to_num(each) for each in (measured.run_ms, measured.deserialize_ms, measured.result_serialize_ms)
    )
    # CPU time is of the task's own thread; a collection stops that thread, so the two do not overlap.
    running = np.minimum(np.nan_to_num(measured.run_cpu_ms) + np.nan_to_num(measured.gc_ms), run)
    fetch = np.minimum(np.nan_to_num(measured.fetch_wait_ms), run - running)
    on_cpu = running + np.minimum(np.nan_to_num(measured.deserialize_cpu_ms), deserialize) + serialize
    return run + deserialize + serialize, on_cpu, fetch


def _to_fill(recorded: Recorded, stage: Ints, held_ms: Floats) -> Floats:
    """Rows that sum to the threads' times: intervals as they are, samples stretched over what they leave."""
    exact = recorded.intervals_ms
    sums = exact.sum(axis=1)
    exact = exact * np.divide(held_ms, sums, out=np.ones_like(sums), where=sums > held_ms)[:, None]
    pooled = _pooled(recorded.samples_ms, stage)
    total = pooled.sum(axis=1, keepdims=True)
    share = np.divide(pooled, total, out=np.zeros_like(pooled), where=total > 0)
    share[total[:, 0] <= 0, -1] = 1.0
    rest = np.maximum(held_ms - exact.sum(axis=1), 0.0)
    held_back = _unseen(recorded, stage, rest) * rest
    filled: Floats = exact + share * (rest - held_back)[:, None]
    filled[:, resources().index("cpu")] += held_back
    return filled


def _unseen(recorded: Recorded, stage: Ints, rest_ms: Floats) -> Floats:
    """The share of each task's time, (tasks,), that its stage's samples do not cover though nothing hides from them.

    Of the stage, since a short task has few samples by chance.  0 where there are none: they tell nothing then.
    """
    if recorded.sees_all is None:
        return np.zeros(len(rest_ms))
    count = int(stage.max(initial=-1)) + 1
    counted = np.where(recorded.sees_all, 1.0, 0.0)
    seen = np.bincount(stage, weights=counted * recorded.samples_ms.sum(axis=1), minlength=count)
    whole = np.bincount(stage, weights=counted * rest_ms, minlength=count)
    missing = np.divide(whole - seen, whole, out=np.zeros(count), where=(whole > 0) & (seen > 0))
    unseen: Floats = np.maximum(missing, 0.0)[stage] * counted
    return unseen


def _pooled(sampled_ms: Floats, stage: Ints) -> Floats:
    """Each task's samples, with some of its stage's mixture added: short tasks have few samples of their own."""
    stages = int(stage.max(initial=-1)) + 1
    totals = np.zeros((stages, sampled_ms.shape[1]))
    np.add.at(totals, stage, sampled_ms)
    sums = totals.sum(axis=1, keepdims=True)
    mixture = np.divide(totals, sums, out=np.zeros_like(totals), where=sums > 0)
    pooled: Floats = sampled_ms + PRIOR_SAMPLES_MS * mixture[stage]
    return pooled


def _to_length(parts_ms: Floats, duration_ms: Floats) -> Floats:
    """Rows brought to the durations: what is missing is `other`, what is too much is scaled down."""
    total = parts_ms.sum(axis=1)
    factor = np.divide(duration_ms, total, out=np.ones_like(total), where=total > duration_ms)
    scaled: Floats = parts_ms * factor[:, None]
    scaled[:, -1] += np.maximum(duration_ms - scaled.sum(axis=1), 0.0)
    return scaled
