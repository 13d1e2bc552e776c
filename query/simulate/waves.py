"""Limits on the concurrent units of a group (Algorithm 1)."""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.dag import AT_HOME
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scheduling import Policy
from crystalperf.query.trace.arrays import members


def sequential_limits(execution: Execution, policy: Policy) -> list[int | None]:
    """The maximum concurrent units of each group; None if only slots, or the hosts of the data, limited it.

    Units that ran one at a time although slots were idle stay sequential (the paper's Amdahl's law): something other
    than slots limited them.  That is the case if a group launched units after others of it had ended, and at every
    launch an available worker still had a free slot.
    """
    units, slots = execution.units, execution.slots
    if execution.in_order:
        return [1] * len(execution.dag.groups)
    limits: list[int | None] = []
    all_launch, all_finish = np.sort(units.launch_ms), np.sort(units.finish_ms)
    arrivals, departures = np.sort(slots.available_ms), np.sort(slots.until_ms)
    for own_units in members(units.group, len(execution.dag.groups)):
        launch, finish = np.sort(units.launch_ms[own_units]), np.sort(units.finish_ms[own_units])
        own = np.arange(1, len(own_units) + 1) - np.searchsorted(finish, launch, side="right")
        at_once = int(own.max(initial=0))
        busy = np.searchsorted(all_launch, launch, side="right") - np.searchsorted(all_finish, launch, side="right")
        alive = np.searchsorted(arrivals, launch, side="right") - np.searchsorted(departures, launch, side="right")
        waits = policy.patience_ms > 0 and bool((units.placement[own_units] == AT_HOME).any())
        held_back = at_once < len(own_units) and not waits and bool((busy < alive).all())
        limits.append(at_once if held_back else None)
    return limits
