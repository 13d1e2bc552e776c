"""CPU limits of workers, from measurements in their recordings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.execution.worker_loads import Loads
from crystalperf.query.trace.records import Floats, Ints

STARVED = 1.3
"""Minimum ratio of time on or waiting for a CPU to CPU time, from which a worker counts as short of CPU."""

PLATEAU = 0.98
"""Quantile of a worker's measured CPU use that counts as its maximum: values above are measurement errors."""

FEWEST_LOADS = 5
"""Minimum measurements of CPU use, one a second, to determine a limit.  Those of a worker at its limit hardly differ:
0.37 to 0.38 cores in the five seconds of a job with a quota of 0.4."""

AT_LIMIT = 0.85
"""Share of the measured maximum that a worker at its limit uses (JFR's load of a second, docs/model.md)."""

FEWEST_AT_LIMIT, MIN_AT_LIMIT = 3, 0.2
"""Minimum number and share of measurements at the maximum for it to be a limit rather than a peak.  Tasks that read a
slow disk wait for a CPU too, in bursts shorter than a second, but their worker is never at its limit for a whole
second."""


THROTTLED = 0.5
"""Minimum share of throttled periods of a container's CPU quota, from which its process was at its limit.  A process
under a quota of 0.7 cores that used 0.7 in a second was throttled in 0.9 to 1.0 of its periods, and in 0.3 to 0.4 of
them when it used 0.3."""

IDLE = 0.25
"""Quantile of the CPU use of workers without tasks that counts as background use: values above include compilation and
garbage collection."""

FEWEST_IDLE = 4
"""Minimum measurements of workers without tasks to determine their background use."""


def cpu_limits(loads: Loads, worker: Ints, total_cpu_ms: Floats, cpu_ms: Floats, count: int) -> Floats:
    """The CPU limit of each of workers 0 to `count` − 1, cores; infinite if no limit is known.

    `worker` is each task's, `cpu_ms` its time on the CPU, waiting for it included, and `total_cpu_ms` the CPU time of
    its thread.  If a worker's container was throttled for a while, the worker was at that limit, of which other
    processes in the container may have had a part.  Without measured throttling, a worker whose tasks got about the CPU
    that they needed shows no limit; one whose tasks waited was at its limit when it used the most, if that lasted.
    """
    cores = np.full(count, np.inf)
    for each in range(count):
        of_worker = loads.worker == each
        level, throttled = loads.cores[of_worker], loads.throttled[of_worker]
        if len(level) < FEWEST_LOADS:
            continue
        most = float(np.quantile(level, PLATEAU))
        own = worker == each
        starved = cpu_ms[own].sum() >= STARVED * total_cpu_ms[own].sum() > 0
        if _for_a_while(throttled[~np.isnan(throttled)] >= THROTTLED):
            quota = loads.quota[of_worker][throttled >= THROTTLED]  # it may have had other values before or after
            cores[each] = most if np.isnan(quota).all() else float(np.nanmedian(quota))
        elif starved and _for_a_while(level >= AT_LIMIT * most):
            cores[each] = most
    return cores


def _for_a_while(at_limit: NDArray[np.bool_]) -> bool:
    """Whether enough measurements are at the limit."""
    return bool(np.count_nonzero(at_limit) >= max(FEWEST_AT_LIMIT, MIN_AT_LIMIT * len(at_limit)))


def background_cores(loads: Loads) -> float:
    """The background CPU use of a worker, cores: heartbeats, metrics, the recorder; 0 if unknown.

    Workers use it while they have no tasks, and it does not shrink with their CPU limit.
    """
    level = loads.cores[(loads.worker >= 0) & ~loads.has_tasks]  # without the driver's
    return float(np.quantile(level, IDLE)) if len(level) >= FEWEST_IDLE else 0.0


def starved_ms(loads: Loads, worker: Ints, launch_ms: Floats, finish_ms: Floats) -> Floats:
    """Throttled time of each task, (tasks,) in ms: its duration times the share of throttled quota periods in it; 0 if
    not measured.

    Any wait of a task in this time counts as a wait for a CPU: its other threads had none either.
    """
    found = np.zeros(len(worker))
    for each in np.unique(worker[worker >= 0]).tolist():
        measured = (loads.worker == each) & ~np.isnan(loads.throttled)
        if not measured.any():
            continue
        since, until = loads.since_ms[measured], loads.until_ms[measured]
        summed = np.cumsum(loads.throttled[measured] * (until - since))
        # Gaps between measured intervals add nothing to the sum.
        moments = np.stack([since, until], axis=1).reshape(-1)
        sums = np.stack([np.concatenate([[0.0], summed[:-1]]), summed], axis=1).reshape(-1)
        own = worker == each
        found[own] = np.interp(finish_ms[own], moments, sums) - np.interp(launch_ms[own], moments, sums)
    return found
