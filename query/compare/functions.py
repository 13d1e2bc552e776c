"""The functions whose sampled time changed most between two sides, as the differential flame graph counts it.

Times are those of one run, the mean over the runs of a side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import OTHER
from crystalperf.query.execution.sampled import UNKNOWN, WAITING, SampledRows, name_of, sampled
from crystalperf.query.results.flame_difference import FunctionChange
from crystalperf.query.trace.records import Floats, Ints

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution

MOST = 40
"""Maximum functions in the list of those that changed most."""

DECIMALS = 1
"""Decimals of sampled times in ms: a sample represents about 20 ms."""


@frozen
class SampledFunctions:
    """The stacks of one run: its rows, the kinds of their columns, and the function of each stack."""

    rows: SampledRows
    kinds: tuple[str, ...]
    functions: Sequence[str]


def sampled_functions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> SampledFunctions | None:
    """The sampled stacks of a scope of one run; None without samples."""
    rows = sampled(connection, execution, list(dict.fromkeys(each.stage_id for each in execution.dag.stages)))
    if not len(rows.stacks):
        return None
    named = connection.execute(
        f"SELECT stack_id, {name_of('frames[coalesce(attributed_depth, 0) + 1]')} FROM stacks"
        " WHERE list_contains(?::INTEGER[], stack_id)",
        [rows.stacks.tolist()],
    ).fetchall()
    function = dict(named)
    kinds = (*(name for name in execution.names if name != OTHER), WAITING, UNKNOWN)
    return SampledFunctions(rows, kinds, [function[each] or "?" for each in rows.stacks.tolist()])


@frozen
class SidedRows:
    """Rows of the runs of both sides: the side of each (0 before, 1 after), its time by kind and its variance, each
    divided by the number of runs of its side."""

    kinds: tuple[str, ...]
    side: Ints
    time_ms: Floats
    variance_ms2: Floats

    def sums(self, which: Ints, side: int, count: int) -> Floats:
        """The time of a side by group, (count, kinds); `which` is the group of each row."""
        own = np.where(self.side == side, 1.0, 0.0)
        return np.stack([np.bincount(which, own * column, count).astype(np.float64) for column in self.time_ms.T], 1)


def together(before: Sequence[SampledFunctions], after: Sequence[SampledFunctions]) -> SidedRows:
    """The rows of all runs, those before first."""
    runs = [*before, *after]
    kinds = [kind for each in runs for kind in each.kinds if kind not in (WAITING, UNKNOWN)]
    kinds = [*dict.fromkeys(kinds), WAITING, UNKNOWN]
    side, tables, variances = [], [], []
    for number, run in enumerate(runs):
        is_after = number >= len(before)
        weight = 1 / len(after if is_after else before)
        side.append(np.full(len(run.rows.place), int(is_after)))
        table = np.zeros((len(run.rows.place), len(kinds)))
        table[:, [kinds.index(each) for each in run.kinds]] = run.rows.time_ms * weight
        tables.append(table)
        variances.append(run.rows.square_ms2 * weight**2)
    return SidedRows(tuple(kinds), np.concatenate(side), np.concatenate(tables), np.concatenate(variances))


def function_changes(
    before: Sequence[SampledFunctions], after: Sequence[SampledFunctions], rows: SidedRows | None = None
) -> tuple[FunctionChange, ...]:
    """The functions whose time changed most, the largest change first; empty if a side has no samples.

    `rows` are those of together(), if known.
    """
    if not before or not after:
        return ()
    runs, rows = [*before, *after], rows or together(before, after)
    names = sorted({name for run in runs for name in run.functions})
    number = {name: place for place, name in enumerate(names)}
    which = np.concatenate([np.array([number[each] for each in run.functions])[run.rows.place] for run in runs])
    one, other = (rows.sums(which, side, len(names)) for side in (0, 1))
    noise = np.sqrt(np.bincount(which, rows.variance_ms2, len(names)))
    change = np.round((other - one).sum(axis=1), DECIMALS)
    most = sorted(range(len(names)), key=lambda place: (-abs(change[place]), names[place]))[:MOST]
    return tuple(
        FunctionChange(
            name=names[place],
            kind=rows.kinds[int(np.abs(other[place] - one[place]).argmax())],
            before_ms=round(float(one[place].sum()), DECIMALS),
            after_ms=round(float(other[place].sum()), DECIMALS),
            noise_ms=round(float(noise[place]), DECIMALS),
        )
        for place in most
        if change[place]
    )
