"""operator.NAME: an operator of the plans that is so many times as fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.query.execution.scenario import World, is_meant
from crystalperf.query.results.assumptions import OperatorTime
from crystalperf.query.simulate.effects import State, computing
from crystalperf.query.trace.records import Floats


def apply(state: State, world: World) -> State:
    """The state with less time for the operators asked for: in each unit, their share of its group's time.

    What a unit computed at least, by its CPU time, shrinks with its time on the CPU.
    """
    if not world.operators:
        return state
    execution, parts = state.execution, state.parts_ms.copy()
    group, groups = execution.units.group, len(execution.dag.groups)
    whole = _sums(execution.units.parts_ms, group, groups)
    assumed, saved = list[OperatorTime](), np.zeros_like(whole)
    for asked, ratio in world.operators.items():
        meant = [times for name, times in execution.operators.items() if _is_asked(asked, name, world)]
        theirs = np.sum(meant, axis=0) if meant else np.zeros_like(whole)
        saved += theirs * (1 - 1 / ratio)
        assumed.append(OperatorTime(asked, float(theirs.sum()), float(whole.sum())))
    parts *= 1 - np.divide(saved, whole, out=np.zeros_like(whole), where=whole > 0).clip(max=1.0)[group]
    return replace(state, execution=computing(state, parts), parts_ms=parts).assuming(*assumed)


def _is_asked(asked: str, name: str, world: World) -> bool:
    """Whether an operator is meant, by the most exact of the settings that mean it: Sort and `Sort a` are not both."""
    return is_meant(asked, name) and max((each for each in world.operators if is_meant(each, name)), key=len) == asked


def _sums(parts_ms: Floats, group: np.ndarray[tuple[int], np.dtype[np.int64]], groups: int) -> Floats:
    """(groups, resources + 1) of (units, resources + 1)."""
    return np.stack([np.bincount(group, column, groups) for column in parts_ms.T], axis=1)
