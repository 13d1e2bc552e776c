"""Attributes tasks' time to devices by the labels of the functions that the trace itself names.

Thread states are unknown there, and most of a program's time is computing.  So a label counts only if a device is much
more likely than all else, and then for all of the task's time.  The trace does not show shorter calls below the
function.  The longer a task stays in it, the less likely it computes, because computing code has loops or calls; then
a device counts that is about as likely as computing.
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
"""Minimum share of a device in a function's resource vector for the function to count as on that device …"""

LONG_MS, LIKELY = 1.0, 0.45
"""… and the minimum share if a task stayed that long in the function."""


def labelled(connection: duckdb.DuckDBPyConnection, bounds: Bounds, stack: Ints, names: Sequence[str]) -> Bounds:
    """The bounds with likely time moved to the devices of the tasks' functions.

    `stack` has the number of each task's function in the table `stacks`, -1 for none, (tasks,).
    """
    devices = [each for each in names if each != CPU]
    stated = {"position": np.arange(len(stack)), "stack_id": stack}  # noqa: F841 (read by DuckDB)
    shares = ", ".join(f"coalesce({each}, 0)::DOUBLE AS {each}" for each in devices)
    found = connection.execute(f"SELECT {shares} FROM stated LEFT JOIN stacks USING (stack_id) ORDER BY position")
    columns = found.fetchnumpy()
    shares_of = np.column_stack([columns[each] for each in devices])
    least = np.where(bounds.slot_ms >= LONG_MS, LIKELY, CERTAIN)
    on_one = shares_of.max(axis=1) >= least
    column = np.array([list(names).index(each) for each in devices])[shares_of.argmax(axis=1)]
    likely = bounds.likely_ms.copy()
    likely[on_one] = 0.0
    likely[on_one, column[on_one]] = bounds.likely_ms[on_one].sum(axis=1)
    return replace(bounds, likely_ms=likely)
