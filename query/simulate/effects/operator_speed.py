"""operator.NAME: time of an operator of the plans, divided by its speedup."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.query.execution.scenario import Scenario, is_meant
from crystalperf.query.results.assumptions import OperatorTime
from crystalperf.query.simulate.effects import State, with_scaled_cpu_time
from crystalperf.query.trace.records import Floats


def apply(state: State, scenario: Scenario) -> State:
    """The state with less time for the scenario's operators: in each task, their share of its stage's time.

    The CPU time of a task, the minimum that it computes, shrinks with its time on the CPU.
    """
    if not scenario.operators:
        return state
    execution, parts = state.execution, state.parts_ms.copy()
    stage, stages = execution.tasks.stage, len(execution.dag.stages)
    whole = _sums(execution.tasks.parts_ms, stage, stages)
    assumed, saved = list[OperatorTime](), np.zeros_like(whole)
    for wanted, ratio in scenario.operators.items():
        matches = [times for name, times in execution.operators.items() if _matches_best(wanted, name, scenario)]
        operator_ms = np.sum(matches, axis=0) if matches else np.zeros_like(whole)
        saved += operator_ms * (1 - 1 / ratio)
        assumed.append(OperatorTime(wanted, float(operator_ms.sum()), float(whole.sum())))
    parts *= 1 - np.divide(saved, whole, out=np.zeros_like(whole), where=whole > 0).clip(max=1.0)[stage]
    return replace(state, execution=with_scaled_cpu_time(state, parts), parts_ms=parts).assuming(*assumed)


def _matches_best(wanted: str, name: str, scenario: Scenario) -> bool:
    """Whether `wanted` is the longest of the settings that match an operator: of Sort and `Sort a` only one applies."""
    return (
        is_meant(wanted, name) and max((each for each in scenario.operators if is_meant(each, name)), key=len) == wanted
    )


def _sums(parts_ms: Floats, stage: np.ndarray[tuple[int], np.dtype[np.int64]], stages: int) -> Floats:
    """Sums over the tasks of each stage, (stages, resources + 1), from (tasks, resources + 1)."""
    return np.stack([np.bincount(stage, column, stages) for column in parts_ms.T], axis=1)
