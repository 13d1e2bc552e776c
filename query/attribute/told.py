"""Functions that a trace itself tells of its units, and what labels of their code make of the units' time.

No thread's state is known there, and most of what a program does is computing.  So a label counts where a device is
much more likely than all else, and then for all of a unit's time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import numpy as np

from indexes.resources import CPU
from query.model.records import Ints
from query.model.trace import Bounds

CERTAIN = 0.7
"""A device's share of a function's vector, from which on the function is taken to be on it."""


def labelled(connection: duckdb.DuckDBPyConnection, bounds: Bounds, stack: Ints, names: Sequence[str]) -> Bounds:
    """Bounds whose likely time is on the devices that the units' functions are for.

    `stack` has the number of each unit's function in the table `stacks`, -1 for none, (units,).
    """
    likely = bounds.likely_ms.copy()
    for column, device in enumerate(names):
        if device == CPU:
            continue
        found = connection.execute(f"SELECT stack_id FROM stacks WHERE {device} >= ?", [CERTAIN]).fetchall()
        on_it = np.isin(stack, [number for (number,) in found])
        whole_ms = likely[on_it].sum(axis=1)
        likely[on_it] = 0.0
        likely[on_it, column] = whole_ms
    return replace(bounds, likely_ms=likely)
