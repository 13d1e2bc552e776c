"""cpu_speed and the like: time on a device that is so many times as fast (Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.simulate.effects import State
from crystalperf.query.trace.records import Floats

LEAST_LEFT = 0.25
"""Of the CPU that a worker would have less of, what units keep at least: what works by the clock may itself starve."""


def apply(state: State, world: World) -> State:
    """The state with time on every resource whose setting is a speed divided by its ratio, the coordinator's too."""
    execution = state.execution
    speeds = {
        column: (each.name, world.ratio(each.setting))
        for column, each in enumerate(execution.resources)
        if each.unit == "speed" and world.ratio(each.setting) != 1
    }
    if not speeds:
        return state
    parts = state.parts_ms.copy()
    for column, (name, ratio) in speeds.items():
        if name == CPU:
            starving = starving_ms(execution, parts)
            parts[:, column] += starving
            parts[:, -1] -= starving
        parts[:, column] /= of_units(execution, ratio) if name == CPU else ratio
    nodes = dict(state.dag.nodes)
    for node_id, node in nodes.items():
        if node.kind == "coordinator":
            seen = execution.coordinator.between(node.start_ms, node.end_ms)
            saved = sum(float(seen[column]) * (1 - 1 / ratio) for column, (_, ratio) in speeds.items())
            nodes[node_id] = replace(node, end_ms=node.end_ms - saved)
    return replace(state, parts_ms=parts, dag=replace(state.dag, nodes=nodes))


def of_units(execution: Execution, ratio: float) -> Floats:
    """How many times as much CPU each unit gets where workers have `ratio` times as much, (units,).

    What a worker uses by the clock is as much as before, so units of one at its limit lose or gain the whole of the
    difference.  One that is to run anywhere gets what most do.
    """
    slots, worker = execution.slots, execution.units.worker
    had = np.bincount(slots.worker, slots.cpu_cores) if len(slots) else np.zeros(0)
    by_clock = np.minimum(execution.idle_cores, had / 2)
    is_limited = np.isfinite(had) & (by_clock > 0)
    of_worker = np.full(len(had), ratio)
    left = np.divide(ratio * had - by_clock, had - by_clock, out=np.full(len(had), ratio), where=is_limited)
    of_worker[is_limited] = np.maximum(left, LEAST_LEFT * min(ratio, 1.0))[is_limited]
    anywhere = float(np.median(of_worker)) if len(had) else ratio
    known = (worker >= 0) & (worker < len(had))
    found: Floats = np.where(known, of_worker[np.where(known, worker, 0)] if len(had) else ratio, anywhere)
    return found


def starving_ms(execution: Execution, parts_ms: Floats) -> Floats:
    """Of each unit's time of unknown cause, what it waited for a CPU in, (units,): as much of it as of its life its
    worker had used up its quota.  Waiting for the units that it shares a pipeline with is known, and none of it."""
    starving: Floats = np.maximum(parts_ms[:, -1] - execution.units.upstream_ms, 0.0) * execution.starved
    return starving
