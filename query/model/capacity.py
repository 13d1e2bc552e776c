"""How much CPU workers can get, by what their recordings measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from query.model.records import Floats, Ints

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


@dataclass(frozen=True)
class Loads:
    """Measured CPU use of processes: rows of worker and cores in use."""

    worker: Ints
    cores: Floats


def cpu_limits(loads: Loads, worker: Ints, on_cpu_ms: Floats, cpu_ms: Floats, count: int) -> Floats:
    """The most CPU that each of workers 0 to `count` − 1 can use, cores; infinite where the run knows no limit.

    `worker` is each unit's, `cpu_ms` its time on the CPU, waiting for it included, and `on_cpu_ms` the CPU time of
    its thread.  A worker whose units got about the CPU that they wanted shows no limit; one whose units waited for
    it was at its limit when it used the most, if it did so for a while.
    """
    cores = np.full(count, np.inf)
    for each in range(count):
        level = loads.cores[loads.worker == each]
        mine = worker == each
        if len(level) >= FEWEST_LOADS and cpu_ms[mine].sum() >= STARVED * on_cpu_ms[mine].sum() > 0:
            most = float(np.quantile(level, PLATEAU))
            if np.count_nonzero(level >= AT_LIMIT * most) >= max(FEWEST_AT_LIMIT, LEAST_AT_LIMIT * len(level)):
                cores[each] = most
    return cores
