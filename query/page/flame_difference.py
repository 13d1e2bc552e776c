"""A differential flame graph: the sampled stacks of two sides of a comparison as one tree.

Stacks of all runs are merged by the names of their frames.  Times are those of one run, the mean over the runs of a
side, so that the changes of all branches sum to the change of the sampled time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.compare.functions import (
    DECIMALS,
    SampledFunctions,
    function_changes,
    sampled_functions,
    together,
)
from crystalperf.query.page.flame_graph import cut_sentence, renumbered
from crystalperf.query.page.stacktree import Tree, least_cut, merged, tree_of
from crystalperf.query.results.flame_difference import NOISE_DEVIATIONS, FlameDifference, SampledChange
from crystalperf.query.trace.records import Floats

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution

MAX_NODES = 8_000
"""Maximum nodes of the tree on a page."""


@frozen
class SampledRun(SampledFunctions):
    """The stacks of one run, and their tree, with the names of its frames."""

    frames: Sequence[str]
    tree: Tree


def sampled_run(connection: duckdb.DuckDBPyConnection, execution: Execution) -> SampledRun | None:
    """The sampled stacks of a scope of one run; None without samples."""
    found = sampled_functions(connection, execution)
    if found is None:
        return None
    frames, tree = tree_of(connection, found.rows.stacks)
    return SampledRun(found.rows, found.kinds, found.functions, frames, tree)


def flame_difference(before: Sequence[SampledRun], after: Sequence[SampledRun]) -> FlameDifference | None:
    """The stacks of both sides as one tree; None if a side has no samples."""
    if not before or not after:
        return None
    runs = [*before, *after]
    frames, tree, nodes = merged([(each.frames, each.tree) for each in runs])
    node = np.concatenate([place[run.tree.end[run.rows.place]] for run, place in zip(runs, nodes, strict=True)])
    rows = together(before, after)
    whole_ms = rows.time_ms.sum(axis=1)
    total_ms = tree.totals(np.bincount(node, whole_ms, len(tree.parent)).astype(np.float64))
    kept, target, cut_ms = least_cut(
        tree, total_ms, node, np.zeros(len(node), dtype=np.int64), most_nodes=MAX_NODES, most_rows=MAX_NODES
    )
    ends, which = np.unique(target[node], return_inverse=True)
    sums = [rows.sums(which, each, len(ends)) for each in (0, 1)]
    used, frame = renumbered(kept.frame)
    return FlameDifference(
        frames=tuple(frames[each] for each in used),
        parent=tuple(kept.parent.tolist()),
        frame=tuple(frame.tolist()),
        sampled=SampledChange(
            node=tuple(ends.tolist()),
            before_ms=_columns(rows.kinds, sums[0]),
            after_ms=_columns(rows.kinds, sums[1]),
            variance_ms2=tuple(np.round(np.bincount(which, rows.variance_ms2, len(ends)), DECIMALS).tolist()),
        ),
        runs=(len(before), len(after)),
        total_ms=(float(whole_ms[rows.side == 0].sum()), float(whole_ms[rows.side == 1].sum())),
        noise_deviations=NOISE_DEVIATIONS,
        functions=function_changes(before, after, rows),
        coarsened=cut_sentence(kept, tree, cut_ms),
    )


def _columns(kinds: Sequence[str], sums: Floats) -> dict[str, tuple[float, ...]]:
    return {kind: tuple(np.round(sums[:, place], DECIMALS).tolist()) for place, kind in enumerate(kinds)}
