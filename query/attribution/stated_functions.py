"""Functions that a trace itself tells of its units, and what labels of their code make of the units' time.

No thread's state is known there, and most of what a program does is computing.  So a label counts where a device is
much more likely than all else, and then for all of a unit's time.  A unit is in its function and in no other below, for
what takes less is not told; where it is there for long, it is less likely to compute, for code that does has loops or
calls.  Then a device counts that is about as likely as computing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.trace.contract import Bounds
from crystalperf.query.trace.records import Ints

CERTAIN = 0.7
"""A device's share of a function's vector, from which on the function is taken to be on it …"""

LONG_MS, LIKELY = 1.0, 0.45
"""… and from which on where a unit was that long in it at a time."""


def labelled(connection: duckdb.DuckDBPyConnection, bounds: Bounds, stack: Ints, names: Sequence[str]) -> Bounds:
    """Bounds whose likely time is on the devices that the units' functions are for.

    `stack` has the number of each unit's function in the table `stacks`, -1 for none, (units,).
    """
    devices = [each for each in names if each != CPU]
    told = {"position": np.arange(len(stack)), "stack_id": stack}  # noqa: F841 (read by DuckDB)
    shares = ", ".join(f"coalesce({each}, 0)::DOUBLE AS {each}" for each in devices)
    found = connection.execute(f"SELECT {shares} FROM told LEFT JOIN stacks USING (stack_id) ORDER BY position")
    columns = found.fetchnumpy()
    shares_of = np.column_stack([columns[each] for each in devices])
    least = np.where(bounds.held_ms >= LONG_MS, LIKELY, CERTAIN)
    on_one = shares_of.max(axis=1) >= least
    column = np.array([list(names).index(each) for each in devices])[shares_of.argmax(axis=1)]
    likely = bounds.likely_ms.copy()
    likely[on_one] = 0.0
    likely[on_one, column[on_one]] = bounds.likely_ms[on_one].sum(axis=1)
    return replace(bounds, likely_ms=likely)
