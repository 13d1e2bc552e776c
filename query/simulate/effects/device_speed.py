"""cpu_speed and other device speeds: time on a device, divided by its speedup (Algorithm 1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.simulate.effects import State
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Floats

MIN_LEFT = 0.25
"""Minimum share that tasks keep of a reduced CPU: background work may itself be short of CPU."""


def apply(state: State, scenario: Scenario) -> State:
    """The state with time on every resource with a speed divided by its ratio, including the driver's time."""
    execution = state.execution
    speeds = {
        column: (each.name, scenario.ratio(each.setting))
        for column, each in enumerate(execution.resources)
        if each.unit == "speed" and scenario.ratio(each.setting) != 1
    }
    if not speeds:
        return state
    parts = state.parts_ms.copy()
    for column, (name, ratio) in speeds.items():
        if name == CPU:
            wait_ms = throttled_wait_ms(execution, parts)
            parts[:, column] += wait_ms
            parts[:, -1] -= wait_ms
        parts[:, column] /= of_tasks(execution, ratio) if name == CPU else ratio
    nodes = dict(state.dag.nodes)
    for node_id, node in nodes.items():
        if node.kind == "driver":
            seen = execution.driver.between(node.start_ms, node.end_ms)
            saved = sum(float(seen[column]) * (1 - 1 / ratio) for column, (_, ratio) in speeds.items())
            nodes[node_id] = replace(node, end_ms=node.end_ms - saved)
    return replace(state, parts_ms=parts, dag=replace(state.dag, nodes=nodes))


def of_tasks(execution: Execution, ratio: float) -> Floats:
    """The factor on each task's CPU if workers have `ratio` times as much, (tasks,).

    A worker's background use does not change, so on a worker at its limit tasks lose or gain the whole difference.  A
    task without a recorded worker gets the median.
    """
    slots, worker = execution.slots, execution.tasks.worker
    had = np.bincount(slots.worker, slots.cpu_cores) if len(slots) else np.zeros(0)
    background = np.minimum(execution.background_cores, had / 2)
    is_limited = np.isfinite(had) & (background > 0)
    of_worker = np.full(len(had), ratio)
    left = np.divide(ratio * had - background, had - background, out=np.full(len(had), ratio), where=is_limited)
    of_worker[is_limited] = np.maximum(left, MIN_LEFT * min(ratio, 1.0))[is_limited]
    anywhere = median(of_worker) if len(had) else ratio
    known = (worker >= 0) & (worker < len(had))
    found: Floats = np.where(known, of_worker[np.where(known, worker, 0)] if len(had) else ratio, anywhere)
    return found


def throttled_wait_ms(execution: Execution, parts_ms: Floats) -> Floats:
    """Time of unknown cause in which each task waited for a CPU, (tasks,) in ms: the unknown time, without waits for
    other tasks of its pipeline, times the throttled share of the task's duration."""
    wait_ms: Floats = np.maximum(parts_ms[:, -1] - execution.tasks.pipeline_wait_ms, 0.0) * execution.throttled_share
    return wait_ms
