"""operator.NAME: an operator of the plans that is so many times as fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexes.resources import CPU
from query.model.records import Floats
from query.model.world import World, is_meant
from query.whatif.effects import State

_SECONDS_MS = 10_000.0
"""Time from which on it is said in seconds."""


def apply(state: State, world: World) -> State:
    """The state with less time for the operators asked for: in each unit, their share of its group's time.

    What a unit computed at least, by its CPU time, shrinks with its time on the CPU.
    """
    if not world.operators:
        return state
    execution, parts = state.execution, state.parts_ms.copy()
    cpu = execution.names.index(CPU)
    group, groups = execution.units.group, len(execution.dag.groups)
    whole = _sums(execution.units.parts_ms, group, groups)
    said = []
    for asked, ratio in world.operators.items():
        meant = [times for name, times in execution.operators.items() if is_meant(asked, name)]
        theirs = np.sum(meant, axis=0)
        share = np.divide(theirs, whole, out=np.zeros_like(whole), where=whole > 0).clip(0.0, 1.0)
        parts *= 1 - share[group] * (1 - 1 / ratio)
        unit, digits = ("s", 1e3) if whole.sum() >= _SECONDS_MS else ("ms", 1.0)
        said.append(
            f"{asked} took {theirs.sum() / digits:.1f} of {whole.sum() / digits:.1f} {unit} of"
            f" {execution.framework.vocabulary.unit} time"
        )
    before = state.parts_ms[:, cpu]
    left = np.divide(parts[:, cpu], before, out=np.ones(len(before)), where=before > 0)
    volumes = replace(execution.volumes, on_cpu_ms=execution.volumes.on_cpu_ms * left)
    return replace(state, execution=replace(execution, volumes=volumes), parts_ms=parts).assuming(*said)


def _sums(parts_ms: Floats, group: np.ndarray[tuple[int], np.dtype[np.int64]], groups: int) -> Floats:
    """(groups, resources + 1) of (units, resources + 1)."""
    return np.stack([np.bincount(group, column, groups) for column in parts_ms.T], axis=1)
