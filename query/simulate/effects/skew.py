"""skew=none: the work of each stage, spread evenly over its tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.results.assumptions import WorkEven
from crystalperf.query.simulate.effects import State, pipeline_wait
from crystalperf.query.trace.records import Floats


def apply(state: State, scenario: Scenario) -> State:
    """The state in which every task of a stage has the stage's mean time on each resource, and its mean volumes."""
    if scenario.choice("skew") is None:
        return state
    execution = state.execution
    stage, count = execution.tasks.stage, np.maximum(np.bincount(execution.tasks.stage), 1)

    def mean(values: Floats) -> Floats:
        return np.asarray((np.bincount(stage, values) / count)[stage], np.float64)

    parts = state.parts_ms - pipeline_wait(state)
    parts = np.stack([mean(column) for column in parts.T], axis=1) + pipeline_wait(state)
    even: dict[str, Any] = {}
    for name in Volumes.__dataclass_fields__:
        values = getattr(execution.volumes, name)
        found = mean(values.astype(np.float64))
        even[name] = found if values.dtype.kind == "f" else np.rint(found).astype(np.int64)
    return replace(state, execution=replace(execution, volumes=Volumes(**even)), parts_ms=parts).assuming(WorkEven())
