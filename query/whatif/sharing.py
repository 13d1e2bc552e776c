"""Devices that the tasks of a node, or of an executor, share while they run.

A disk, a cable and the CPUs of an executor serve all tasks that run beside each other.  How many want a device at a
time is read off the schedule, recorded or replayed, so a changed schedule changes what each task gets of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from query.model.dag import Floats, Ints

STARVED = 1.3
"""Time on the CPU, waiting for one included, over CPU time from which an executor counts as short of CPU."""

PLATEAU = 0.98
"""Quantile of an executor's measured CPU use that counts as all that it can get: above are errors of measurement."""

FEWEST_LOADS = 10
"""Measurements of CPU use below which they tell no capacity."""


@dataclass(frozen=True)
class Loads:
    """Measured CPU use of processes: rows of executor and cores in use."""

    executor: Ints
    cores: Floats


def cpu_limits(loads: Loads, executor: Ints, on_cpu_ms: Floats, cpu_ms: Floats, count: int) -> Floats:
    """The most CPU that each of executors 0 to `count` − 1 can use, cores; infinite where the run knows no limit.

    `executor` is each task's, `cpu_ms` its time on the CPU, waiting for it included, and `on_cpu_ms` the CPU time of
    its thread.  An executor whose tasks got about the CPU that they wanted shows no limit; one whose tasks waited for
    it was at its limit when it used the most.
    """
    cores = np.full(count, np.inf)
    for each in range(count):
        level = loads.cores[loads.executor == each]
        mine = executor == each
        if len(level) >= FEWEST_LOADS and cpu_ms[mine].sum() >= STARVED * on_cpu_ms[mine].sum() > 0:
            cores[each] = float(np.quantile(level, PLATEAU))
    return cores


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
