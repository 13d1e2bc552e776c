"""A differential flame graph: the sampled stacks of two sides of a comparison as one tree.

Stacks of all runs are merged by the names of their frames.  Times are those of one run, the mean over the runs of a
side, so that the changes of all branches sum to the change of the sampled time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crystalperf.indexes.resources import OTHER
from crystalperf.query.page.flame_graph import SampledRows, cut_sentence, renumbered, sampled
from crystalperf.query.page.stacktree import Tree, least_cut, merged, name_of, tree_of
from crystalperf.query.results.flame_difference import (
    NOISE_DEVIATIONS,
    FlameDifference,
    FunctionChange,
    SampledChange,
)
from crystalperf.query.trace.records import Floats, Ints

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution

MAX_NODES = 8_000
"""Maximum nodes of the tree on a page."""

MAX_FUNCTIONS = 40
"""Maximum functions in the list of those that changed most."""

WAITING, UNKNOWN = "waiting", "unknown"

_DECIMALS = 1


@dataclass(frozen=True)
class SampledRun:
    """The stacks of one run: its rows, the kinds of their columns, the tree, and the function of each stack."""

    rows: SampledRows
    kinds: tuple[str, ...]
    frames: Sequence[str]
    tree: Tree
    functions: Sequence[str]


def sampled_run(connection: duckdb.DuckDBPyConnection, execution: Execution) -> SampledRun | None:
    """The sampled stacks of a scope of one run; None without samples."""
    rows = sampled(connection, execution, list(dict.fromkeys(each.stage_id for each in execution.dag.stages)))
    if not len(rows.stacks):
        return None
    frames, tree = tree_of(connection, rows.stacks)
    named = connection.execute(
        f"SELECT stack_id, {name_of('frames[coalesce(attributed_depth, 0) + 1]')} FROM stacks"
        " WHERE list_contains(?::INTEGER[], stack_id)",
        [rows.stacks.tolist()],
    ).fetchall()
    function = dict(named)
    kinds = (*(name for name in execution.names if name != OTHER), WAITING, UNKNOWN)
    return SampledRun(rows, kinds, frames, tree, [function[each] or "?" for each in rows.stacks.tolist()])


def flame_difference(before: Sequence[SampledRun], after: Sequence[SampledRun]) -> FlameDifference | None:
    """The stacks of both sides as one tree; None if a side has no samples."""
    if not before or not after:
        return None
    runs = [*before, *after]
    kinds = list(dict.fromkeys(kind for each in runs for kind in each.kinds if kind not in (WAITING, UNKNOWN)))
    kinds += [WAITING, UNKNOWN]
    frames, tree, nodes = merged([(each.frames, each.tree) for each in runs])
    share = [1 / len(before)] * len(before) + [1 / len(after)] * len(after)
    node, side, table, variance = _together(runs, kinds, nodes, share, len(before))
    functions = _functions(runs, kinds, side, table, variance)
    total_ms = tree.totals(np.bincount(node, table.sum(axis=1), len(tree.parent)).astype(np.float64))
    kept, target, cut_ms = least_cut(
        tree, total_ms, node, np.zeros(len(node), dtype=np.int64), most_nodes=MAX_NODES, most_rows=MAX_NODES
    )
    ends, which = np.unique(target[node], return_inverse=True)
    sums = [_sums(which, np.where(side == each, 1.0, 0.0)[:, None] * table, len(ends)) for each in (0, 1)]
    used, frame = renumbered(kept.frame)
    return FlameDifference(
        frames=tuple(frames[each] for each in used),
        parent=tuple(kept.parent.tolist()),
        frame=tuple(frame.tolist()),
        sampled=SampledChange(
            node=tuple(ends.tolist()),
            before_ms=_columns(kinds, sums[0]),
            after_ms=_columns(kinds, sums[1]),
            variance_ms2=tuple(np.round(np.bincount(which, variance, len(ends)), _DECIMALS).tolist()),
        ),
        runs=(len(before), len(after)),
        total_ms=(float(table[side == 0].sum()), float(table[side == 1].sum())),
        noise_deviations=NOISE_DEVIATIONS,
        functions=functions,
        coarsened=cut_sentence(kept, tree, cut_ms),
    )


def _together(
    runs: Sequence[SampledRun], kinds: Sequence[str], nodes: Sequence[Ints], share: Sequence[float], before: int
) -> tuple[Ints, Ints, Floats, Floats]:
    """Rows of all runs: the node of the merged tree, the side (0 before, 1 after), time by kind, and variance.

    `share` is the weight of each run in the mean of its side; the first `before` runs are those before.
    """
    node, side, tables, variances = [], [], [], []
    for number, (run, place, weight) in enumerate(zip(runs, nodes, share, strict=True)):
        node.append(place[run.tree.end[run.rows.place]])
        side.append(np.full(len(run.rows.place), int(number >= before)))
        table = np.zeros((len(run.rows.place), len(kinds)))
        table[:, [kinds.index(each) for each in run.kinds]] = run.rows.time_ms * weight
        tables.append(table)
        variances.append(run.rows.square_ms2 * weight**2)
    return np.concatenate(node), np.concatenate(side), np.concatenate(tables), np.concatenate(variances)


def _functions(
    runs: Sequence[SampledRun], kinds: Sequence[str], side: Ints, table: Floats, variance: Floats
) -> tuple[FunctionChange, ...]:
    """The functions whose time changed most, the largest change first."""
    names = sorted({name for run in runs for name in run.functions})
    number = {name: place for place, name in enumerate(names)}
    which = np.concatenate([np.array([number[each] for each in run.functions])[run.rows.place] for run in runs])
    before = _sums(which, np.where(side == 0, 1.0, 0.0)[:, None] * table, len(names))
    after = _sums(which, np.where(side == 1, 1.0, 0.0)[:, None] * table, len(names))
    noise = np.sqrt(np.bincount(which, variance, len(names)))
    change = np.round((after - before).sum(axis=1), _DECIMALS)
    most = sorted(range(len(names)), key=lambda place: (-abs(change[place]), names[place]))[:MAX_FUNCTIONS]
    return tuple(
        FunctionChange(
            name=names[place],
            kind=kinds[int(np.abs(after[place] - before[place]).argmax())],
            before_ms=round(float(before[place].sum()), _DECIMALS),
            after_ms=round(float(after[place].sum()), _DECIMALS),
            noise_ms=round(float(noise[place]), _DECIMALS),
        )
        for place in most
        if change[place]
    )


def _sums(which: Ints, table: Floats, count: int) -> Floats:
    """The sums of a table's rows by group, (count, columns)."""
    return np.stack([np.bincount(which, column, count).astype(np.float64) for column in table.T], axis=1)


def _columns(kinds: Sequence[str], sums: Floats) -> dict[str, tuple[float, ...]]:
    return {kind: tuple(np.round(sums[:, place], _DECIMALS).tolist()) for place, kind in enumerate(kinds)}
