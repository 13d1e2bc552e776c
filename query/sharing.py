"""Devices that the tasks of a node, or of an executor, share while they run.

A disk, a cable and the CPUs of an executor serve all tasks that run beside each other.  How many want a device at a
time is read off the schedule, recorded or replayed, so a changed schedule changes what each task gets of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from query.dag import Floats, Ints

STARVED = 1.3
"""Time on the CPU, waiting for one included, over CPU time from which an executor counts as short of CPU."""

PLATEAU = 0.98
"""Quantile of an executor's measured CPU use that counts as all that it can get: above are errors of measurement."""

FEWEST_LOADS = 10
"""Measurements of CPU use below which they tell no capacity."""


@dataclass(frozen=True)
class CpuUse:
    """CPU that processes used while tasks ran.

    `work_ms` (tasks,) is the CPU time that each task stands for: what the whole process of its executor used while it
    ran (compilers, collectors and servers too), shared among the tasks then running; 0 where nothing measured it.
    `cores` (executors,) is the most that each process can use; infinite where the run knows no limit.
    """

    work_ms: Floats
    cores: Floats


@dataclass(frozen=True)
class Loads:
    """Measured CPU use of processes: rows of executor, end of the interval and cores in use, sorted by time."""

    executor: Ints
    time_ms: Floats
    cores: Floats


def cpu_use(
    loads: Loads, executor: Ints, launch_ms: Floats, finish_ms: Floats, on_cpu_ms: Floats, cpu_ms: Floats, count: int
) -> CpuUse:
    """What executors 0 to `count` − 1 used, by their measured loads and the tasks on them.

    `cpu_ms` is each task's time on the CPU, waiting for it included, and `on_cpu_ms` the CPU time of its thread.  An
    executor whose tasks got about the CPU that they wanted shows no limit; one whose tasks waited for it was at its
    limit when it used the most.
    """
    work = np.zeros(len(launch_ms))
    cores = np.full(count, np.inf)
    for each in range(count):
        its = loads.executor == each
        mine = np.flatnonzero(executor == each)
        if its.sum() < FEWEST_LOADS or not len(mine):
            continue
        time, level = loads.time_ms[its], loads.cores[its]
        work[mine] = _shared_out(time, level, launch_ms[mine], finish_ms[mine])
        if cpu_ms[mine].sum() >= STARVED * on_cpu_ms[mine].sum() > 0:
            cores[each] = float(np.quantile(level, PLATEAU))
    return CpuUse(work, cores)


def _shared_out(time_ms: Floats, level: Floats, launch_ms: Floats, finish_ms: Floats) -> Floats:
    """∫ level / running tasks, over each task's life; a level holds from the measurement before to its own."""
    moments = np.unique(np.concatenate([time_ms, launch_ms, finish_ms]))
    middle = (moments[1:] + moments[:-1]) / 2
    running = np.searchsorted(np.sort(launch_ms), middle, side="right") - np.searchsorted(
        np.sort(finish_ms), middle, side="right"
    )
    at = np.searchsorted(time_ms, middle)
    now = np.where(at < len(level), level[np.minimum(at, len(level) - 1)], 0.0)
    rate = np.divide(now, running, out=np.zeros(len(middle)), where=running > 0)
    integral = np.concatenate([[0.0], np.cumsum(rate * np.diff(moments))])
    shared: Floats = np.interp(finish_ms, moments, integral) - np.interp(launch_ms, moments, integral)
    return shared


def mean_level(group: NDArray[np.int64], start_ms: Floats, end_ms: Floats, rate: Floats) -> Floats:
    """Over each interval's life the mean sum of the rates of all intervals of its group, itself included."""
    result = rate.copy()
    for each in np.unique(group):
        mine = np.flatnonzero(group == each)
        moments = np.concatenate([start_ms[mine], end_ms[mine]])
        changes = np.concatenate([rate[mine], -rate[mine]])
        order = np.argsort(moments, kind="stable")
        moments, level = moments[order], np.cumsum(changes[order])
        integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(moments))])
        length = end_ms[mine] - start_ms[mine]
        total = np.interp(end_ms[mine], moments, integral) - np.interp(start_ms[mine], moments, integral)
        lasting = length > 0
        result[mine[lasting]] = total[lasting] / length[lasting]
    return result


def company(host: NDArray[np.int64], start_ms: Floats, end_ms: Floats, share: Floats) -> Floats:
    """How many tasks share a device of its host with each task on average, the task itself counted as one.

    `share` is the part of each task's time on that device.  Two tasks that are on it all the time give 2 each;
    a task whose neighbours never touch it gives 1.
    """
    others = mean_level(host, start_ms, end_ms, share) - share
    together: Floats = 1.0 + np.maximum(others, 0.0)
    return together
