"""What workers keep in memory between groups, and units that read it anew because it was not there any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from query.model.arrays import members, over
from query.model.execution import Execution
from query.model.records import Floats

QUICKEST = 0.1
"""Units that found what they read in memory take as long as this share of them do at most, had all found it: those that
did not are in the way of the others too."""


def anew(execution: Execution) -> NDArray[np.bool_]:
    """Which units read files for what others of their group found in their worker's memory, (units,)."""
    volumes, group = execution.volumes, execution.units.group
    keeps = np.bincount(group, volumes.kept > 0, len(execution.dag.groups)) > 0
    found: NDArray[np.bool_] = keeps[group] & (volumes.kept == 0) & (volumes.input > 0)
    return found


def anew_ms(execution: Execution) -> Floats:
    """How much longer each unit took, at most, for want of what was to be in memory, (units,)."""
    units, volumes, again = execution.units, execution.volumes, anew(execution)
    found = np.zeros(len(units))
    if not again.any():
        return found
    for mine in members(units.group, len(execution.dag.groups)):
        if again[mine].any():
            takes = units.duration_ms[mine]
            found[mine] = np.maximum(takes - np.quantile(takes[volumes.kept[mine] > 0], QUICKEST), 0.0)
    return found


def had_room(execution: Execution) -> Execution:
    """The execution, had all that was to be kept been there, at best."""
    units = execution.units
    parts = units.parts_ms * (1.0 - over(anew_ms(execution), units.duration_ms))[:, None]
    return replace(execution, units=replace(units, parts_ms=parts))


def kept_bytes(execution: Execution) -> float:
    """What a group that reads what workers kept read of it, the median: so much they have to have room for.

    A group may read the same twice, so the most that one read may be more than was there.
    """
    kept = np.bincount(execution.units.group, execution.volumes.kept, len(execution.dag.groups))
    return float(np.median(kept[kept > 0])) if kept.any() else 0.0
