"""How many tasks run at a time, and how fast the first ones of each slot: Algorithm 1's slots, waves and warm-up."""

from __future__ import annotations

import numpy as np

from indexes.errors import NoAnswerError
from query.model.dag import AT_HOME, Floats, Ints
from query.model.execution import Execution
from query.model.world import World
from query.whatif.replay import Policy, Replayed, Slots

WARM_UP_TASKS = 4
"""Fewest tasks in the first wave and after it from which a stage's warm-up is estimated."""

WARM_UP_MOST = 2.0
"""A larger ratio between waves is other data, or executors still arriving, rather than warm-up."""


def changed_slots(execution: Execution, world: World) -> Slots:
    """The task slots of the changed world.

    Executors come and go as the recorded ones did.  Added ones are copies of these on nodes of their own; of fewer,
    as many are left out evenly.  Raises NoAnswerError where the run does not tell its executors.
    """
    if world.ratio("cores") == 1 and world.ratio("executors") == 1:
        return execution.slots
    old = execution.slots
    if not len(old):
        raise NoAnswerError("the log names no executors, so the number of task slots is unknown")
    recorded, first, width = np.unique(old.executor, return_index=True, return_counts=True)
    count = max(round(len(recorded) * world.ratio("executors")), 1)
    if count >= len(recorded):
        chosen, copy = np.arange(count) % len(recorded), np.arange(count) // len(recorded)
    else:
        chosen = np.floor(np.linspace(0, len(recorded), count, endpoint=False)).astype(np.int64)
        copy = np.zeros(count, dtype=np.int64)
    slots_of = np.maximum(np.rint(width[chosen] * world.ratio("cores")).astype(np.int64), 1)
    row = np.repeat(np.arange(count), slots_of)
    origin = first[chosen][row]
    return Slots(
        executor=row,
        host=old.host[origin] + copy[row] * (int(old.host.max()) + 1),
        available_ms=old.available_ms[origin],
        until_ms=old.until_ms[origin],
        cpu_cores=old.cpu_cores[origin],
    )


def sequential_limits(execution: Execution, policy: Policy) -> list[int | None]:
    """Per stage the tasks it may run at a time; None where slots were all that limited it, or the place of their data.

    Tasks that ran one at a time beside idle slots stay so (the paper's Amdahl): something other than slots held
    them back.  That is so where a stage launched tasks after others of it had ended, and at every launch a slot of
    an executor then alive was still free.
    """
    tasks, slots = execution.tasks, execution.slots
    limits: list[int | None] = []
    order = np.argsort(tasks.stage, kind="stable")
    bounds = np.searchsorted(tasks.stage[order], np.arange(len(execution.dag.stages) + 1))
    all_launch, all_finish = np.sort(tasks.launch_ms), np.sort(tasks.finish_ms)
    arrivals, departures = np.sort(slots.available_ms), np.sort(slots.until_ms)
    for number in range(len(execution.dag.stages)):
        mine = order[bounds[number] : bounds[number + 1]]
        launch, finish = np.sort(tasks.launch_ms[mine]), np.sort(tasks.finish_ms[mine])
        own = np.arange(1, len(mine) + 1) - np.searchsorted(finish, launch, side="right")
        at_once = int(own.max(initial=0))
        busy = np.searchsorted(all_launch, launch, side="right") - np.searchsorted(all_finish, launch, side="right")
        alive = np.searchsorted(arrivals, launch, side="right") - np.searchsorted(departures, launch, side="right")
        waits = policy.patience_ms > 0 and bool((tasks.placement[mine] == AT_HOME).any())
        held_back = at_once < len(mine) and not waits and bool((busy < alive).all())
        limits.append(at_once if held_back else None)
    return limits


def first_wave(*, dag_stage: Ints, replayed: Replayed) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which tasks are the first of their stage on their slot, (tasks,)."""
    order = np.lexsort((replayed.launch_ms, replayed.slot, dag_stage))
    stage, slot = dag_stage[order], replayed.slot[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (stage[1:] != stage[:-1]) | (slot[1:] != slot[:-1])
    result = np.zeros(len(order), dtype=bool)
    result[order] = first
    return result


def warm_up_factors(execution: Execution, base: Replayed) -> Floats:
    """Per stage how much longer a task takes in its first wave than later (§5, w); 1 where too few tasks tell."""
    tasks = execution.tasks
    first = first_wave(dag_stage=tasks.stage, replayed=base)
    factors = np.ones(len(execution.dag.stages))
    for number in range(len(factors)):
        mine = tasks.stage == number
        early, late = tasks.duration_ms[mine & first], tasks.duration_ms[mine & ~first]
        if len(early) >= WARM_UP_TASKS and len(late) >= WARM_UP_TASKS and np.median(late) > 0:
            factors[number] = min(max(float(np.median(early) / np.median(late)), 1.0), WARM_UP_MOST)
    return factors
