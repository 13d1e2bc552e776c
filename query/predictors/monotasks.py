"""Monotasks: a stage takes as long as its busiest resource, which is the work on it over its capacity.

    T(stage) = max over resources of work / capacity

The recorded runtime changes by the ratio of the sums over all stages.  Work is the tasks' time on a resource, and the
capacity is that of the recorded slots; time on no known resource counts as a resource that only slots change.
"""

from __future__ import annotations

import numpy as np

from crystalperf.plugin import Execution, Floats, Predictor, Scenario


def ideal_ms(work_ms: Floats, capacity: Floats) -> float:
    """The sum of the times of stages, ms: `work_ms` is (stages, resources), `capacity` is (resources,)."""
    return float((work_ms / capacity).max(axis=1, initial=0.0).sum())


def _settings(execution: Execution) -> tuple[str, ...]:
    return ("workers", "cores", *(each.setting for each in execution.resources))


def _capacity(execution: Execution, scenario: Scenario) -> Floats:
    """The factor on the capacity of each resource, and of the slots: (resources + 1,)."""
    workers = scenario.ratio("workers")
    slots = workers * scenario.ratio("cores")
    factors = [
        scenario.ratio(each.setting) * (slots if each.unit == "speed" else workers) for each in execution.resources
    ]
    return np.array([*factors, slots])


def _predict(execution: Execution, scenario: Scenario) -> float:
    tasks = execution.tasks
    work_ms = np.zeros((len(execution.dag.stages), tasks.parts_ms.shape[1]))
    np.add.at(work_ms, tasks.stage, tasks.parts_ms)
    before_ms = ideal_ms(work_ms, np.ones(work_ms.shape[1]))
    after_ms = ideal_ms(work_ms, _capacity(execution, scenario))
    return execution.runtime_ms * (after_ms / before_ms if before_ms > 0 else 1.0)


MONOTASKS = Predictor(
    _predict,
    source="Ousterhout et al., Monotasks, SOSP 2017, section 6",
    runs=frozenset(("batch",)),
    settings=_settings,
)
