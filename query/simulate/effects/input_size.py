"""input: more or less data, of the same kind.

Each task's own work grows with the data, unless the framework makes more tasks or knows which work does not grow; the
time to start a task does not change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.results.assumptions import Assumption, MemoryPressure, MemorySuffices, TasksFit, WorkGrows
from crystalperf.query.simulate.effects import State, overhead_share, pipeline_wait, with_scaled_cpu_time


def apply(state: State, scenario: Scenario) -> State:
    """The state with so many times the data; the framework has partitioned it before (effects.slot_counts)."""
    ratio = scenario.ratio("input")
    if ratio == 1:
        return state
    execution = state.execution
    outside = pipeline_wait(state)
    outside += (state.parts_ms - outside) * overhead_share(state)[:, None]
    grows = execution.planner.growth
    growth = None if grows is None else grows(execution)
    times = ratio if growth is None else 1.0 + (ratio - 1.0) * growth.shares[execution.tasks.stage]
    parts = outside + (state.parts_ms - outside) * times
    if growth is not None:
        return replace(state, execution=with_scaled_cpu_time(state, parts), parts_ms=parts).assuming(growth.assumption)
    volumes = execution.volumes
    larger = {
        name: values * ratio if values.dtype.kind == "f" else np.rint(values * ratio).astype(np.int64)
        for name in Volumes.__dataclass_fields__
        if name != "overhead_ms"
        for values in [getattr(volumes, name)]
    }
    memory = _memory(state, scenario, larger["peak_memory"])
    execution = replace(execution, volumes=replace(volumes, **larger))
    return replace(state, execution=execution, parts_ms=parts).assuming(WorkGrows(), memory)


def _memory(state: State, scenario: Scenario, peak_bytes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Assumption:
    """The assumption about memory: whether tasks would exceed their share of it; spills of that cost nothing here."""
    execution = state.execution
    memory, rule = execution.recorded.get("memory"), execution.planner.memory
    if memory is None or rule is None or not len(peak_bytes):
        return MemorySuffices()
    slots = max(execution.recorded.get("cores") or 1, 1) * scenario.ratio("cores")
    slot = rule.usable(memory * scenario.ratio("memory"), execution.properties) / slots
    short = int((peak_bytes > slot).sum())
    return MemoryPressure(short, len(peak_bytes)) if short else TasksFit()
