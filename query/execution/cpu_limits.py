"""How much CPU workers can get, by what their recordings measured."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.execution.worker_loads import Loads
from crystalperf.query.trace.records import Floats, Ints

STARVED = 1.3
"""Time on the CPU, waiting for one included, over CPU time from which a worker counts as short of CPU."""

PLATEAU = 0.98
"""Quantile of a worker's measured CPU use that counts as all that it can get: above are errors of measurement."""

FEWEST_LOADS = 5
"""Measurements of CPU use, one a second, below which they tell no capacity.  Those of a worker at its limit hardly
differ: 0.37 to 0.38 cores in the five seconds of a job with a quota of 0.4."""

AT_LIMIT = 0.85
"""Of the most that was measured, what a worker at its limit uses (JFR's load of a second, docs/model.md)."""

FEWEST_AT_LIMIT, LEAST_AT_LIMIT = 3, 0.2
"""Measurements of a worker at its limit, and their share of all, below which the most was a peak and no limit.  Units
that read a slow disk wait for a CPU as well, in bursts shorter than a second, and their worker is never at its limit
for a whole one."""


THROTTLED = 0.5
"""Share of the periods of a container's CPU quota that ended with it used up, from which on its process was at its
limit.  A process under a quota of 0.7 cores that got 0.7 in a second had used it up in 0.9 to 1.0 of its periods, and
in 0.3 to 0.4 where it got 0.3."""

IDLE = 0.25
"""Quantile of what a worker without units uses that counts as its use by the clock: above, it still compiles or
collects."""

FEWEST_IDLE = 4
"""Measurements of workers without units below which they tell no use by the clock."""


def cpu_limits(loads: Loads, worker: Ints, on_cpu_ms: Floats, cpu_ms: Floats, count: int) -> Floats:
    """The most CPU that each of workers 0 to `count` − 1 can use, cores; infinite where the run knows no limit.

    `worker` is each unit's, `cpu_ms` its time on the CPU, waiting for it included, and `on_cpu_ms` the CPU time of
    its thread.  A worker whose container used up its quota for a while was at that limit, of which other processes in
    it may have had a part.  Where nobody measured that, one whose units got about the CPU that they wanted shows no
    limit; one whose units waited for it was at its limit when it used the most, if it did so for a while.
    """
    cores = np.full(count, np.inf)
    for each in range(count):
        of_worker = loads.worker == each
        level, throttled = loads.cores[of_worker], loads.throttled[of_worker]
        if len(level) < FEWEST_LOADS:
            continue
        most = float(np.quantile(level, PLATEAU))
        mine = worker == each
        starved = cpu_ms[mine].sum() >= STARVED * on_cpu_ms[mine].sum() > 0
        if _for_a_while(throttled[~np.isnan(throttled)] >= THROTTLED):
            quota = loads.quota[of_worker][throttled >= THROTTLED]  # it may have been another one before or after
            cores[each] = most if np.isnan(quota).all() else float(np.nanmedian(quota))
        elif starved and _for_a_while(level >= AT_LIMIT * most):
            cores[each] = most
    return cores


def _for_a_while(at_limit: NDArray[np.bool_]) -> bool:
    """Whether enough measurements are of a worker at its limit."""
    return bool(np.count_nonzero(at_limit) >= max(FEWEST_AT_LIMIT, LEAST_AT_LIMIT * len(at_limit)))


def idle_cores(loads: Loads) -> float:
    """The CPU that a worker uses by the clock, cores: heartbeats, metrics, the recorder; 0 where nothing tells.

    It is what workers use while they have no units, and it does not get less with the CPU that they can get.
    """
    level = loads.cores[(loads.worker >= 0) & ~loads.has_units]  # the coordinator's are none of a worker
    return float(np.quantile(level, IDLE)) if len(level) >= FEWEST_IDLE else 0.0


def starved_ms(loads: Loads, worker: Ints, launch_ms: Floats, finish_ms: Floats) -> Floats:
    """Of each unit's life as much as of the quota's periods in it ended with the quota used up, (units,) in ms; 0 where
    nobody measured it.

    What a unit waited for then, whatever it was, is taken to have waited for a CPU: its other threads had none either.
    """
    found = np.zeros(len(worker))
    for each in np.unique(worker[worker >= 0]).tolist():
        looks = (loads.worker == each) & ~np.isnan(loads.throttled)
        if not looks.any():
            continue
        since, until = loads.since_ms[looks], loads.until_ms[looks]
        summed = np.cumsum(loads.throttled[looks] * (until - since))
        # Between looks that do not meet nothing was measured, and the sum stays.
        moments = np.stack([since, until], axis=1).reshape(-1)
        sums = np.stack([np.concatenate([[0.0], summed[:-1]]), summed], axis=1).reshape(-1)
        mine = worker == each
        found[mine] = np.interp(finish_ms[mine], moments, sums) - np.interp(launch_ms[mine], moments, sums)
    return found
