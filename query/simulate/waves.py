"""Limits on the concurrent tasks of a stage (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crystalperf.query.execution.dag import AT_HOME
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.scheduling import Policy
from crystalperf.query.trace.arrays import members


def sequential_limits(execution: Execution, policy: Policy) -> list[int | None]:
    """The maximum concurrent tasks of each stage; None if only slots, or the hosts of the data, limited it.

    A stage that cannot use every slot has at most those that it can use (SlotDemand).

    Tasks that ran one at a time although slots were idle stay sequential (the paper's Amdahl's law): something other
    than slots limited them.  That is the case if a stage launched tasks after others of it had ended, and at every
    launch an available worker still had a free slot.
    """
    tasks, slots = execution.tasks, execution.slots
    if execution.in_order:
        return [1] * len(execution.dag.stages)
    limits: list[int | None] = []
    all_launch, all_finish = np.sort(tasks.launch_ms), np.sort(tasks.finish_ms)
    arrivals, departures = np.sort(slots.available_ms), np.sort(slots.until_ms)
    for number, own_tasks in enumerate(members(tasks.stage, len(execution.dag.stages))):
        launch, finish = np.sort(tasks.launch_ms[own_tasks]), np.sort(tasks.finish_ms[own_tasks])
        own = np.arange(1, len(own_tasks) + 1) - np.searchsorted(finish, launch, side="right")
        at_once = int(own.max(initial=0))
        if (usable := execution.dag.stages[number].demand.usable) is not None:
            limits.append(max(usable, at_once))
            continue
        busy = np.searchsorted(all_launch, launch, side="right") - np.searchsorted(all_finish, launch, side="right")
        alive = np.searchsorted(arrivals, launch, side="right") - np.searchsorted(departures, launch, side="right")
        waits = policy.patience_ms > 0 and bool((tasks.placement[own_tasks] == AT_HOME).any())
        held_back = at_once < len(own_tasks) and not waits and bool((busy < alive).all())
        limits.append(at_once if held_back else None)
    return limits


def scaled_limits(execution: Execution, limits: Sequence[int | None], scenario: Scenario) -> list[int | None]:
    """The limits of stages that cannot use every slot, for the slots of a scenario; others stay."""
    worker_slots, ratios = execution.recorded.get("cores") or 1.0, [scenario.ratio(key) for key in ("workers", "cores")]
    found = list(limits)
    for number, stage in enumerate(execution.dag.stages):
        usable, most = stage.demand.usable, stage.demand.most(worker_slots, *ratios)
        if usable and most is not None:
            found[number] = max(round((limits[number] or usable) * most / usable), 1)
    return found
