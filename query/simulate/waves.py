"""How many units of a group may run at a time (Algorithm 1)."""

from __future__ import annotations

import numpy as np

from crystalperf.query.execution.dag import AT_HOME
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scheduling import Policy
from crystalperf.query.trace.arrays import members


def sequential_limits(execution: Execution, policy: Policy) -> list[int | None]:
    """Per group the units it may run at a time; None where slots were all that limited it, or the place of their data.

    Units that ran one at a time beside idle slots stay so (the paper's Amdahl): something other than slots held
    them back.  That is so where a group launched units after others of it had ended, and at every launch a slot of
    a worker then alive was still free.
    """
    units, slots = execution.units, execution.slots
    if execution.in_order:
        return [1] * len(execution.dag.groups)
    limits: list[int | None] = []
    all_launch, all_finish = np.sort(units.launch_ms), np.sort(units.finish_ms)
    arrivals, departures = np.sort(slots.available_ms), np.sort(slots.until_ms)
    for mine in members(units.group, len(execution.dag.groups)):
        launch, finish = np.sort(units.launch_ms[mine]), np.sort(units.finish_ms[mine])
        own = np.arange(1, len(mine) + 1) - np.searchsorted(finish, launch, side="right")
        at_once = int(own.max(initial=0))
        busy = np.searchsorted(all_launch, launch, side="right") - np.searchsorted(all_finish, launch, side="right")
        alive = np.searchsorted(arrivals, launch, side="right") - np.searchsorted(departures, launch, side="right")
        waits = policy.patience_ms > 0 and bool((units.placement[mine] == AT_HOME).any())
        held_back = at_once < len(mine) and not waits and bool((busy < alive).all())
        limits.append(at_once if held_back else None)
    return limits
