"""Sampled stacks as one tree (flame graph), with their stages, operators, and the labels of attributed frames.

A tree of a million samples has too many branches to look at, so branches with the least time are merged into their
parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from crystalperf.indexes import guard
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.places import load_part
from crystalperf.indexes.resources import OTHER, with_other
from crystalperf.query.attribution.code.names import declaring_names
from crystalperf.query.execution.sampled import name_of, sampled
from crystalperf.query.page.stacktree import Tree, least_cut, pairs, tree_of
from crystalperf.query.results.page import FlameGraph, Labels, Sampled
from crystalperf.query.text.figures import grouped
from crystalperf.query.trace.records import Floats, Ints

if TYPE_CHECKING:
    from crystalperf.query.execution.execution import Execution

MAX_NODES = 12_000
"""Maximum nodes of the tree on a page …"""

MAX_ROWS = 30_000
"""… and maximum rows of sampled time."""

MIXED = 0.6
"""A function is of mixed resource if no resource has this share of its time."""

WHY = "crystalperf index show {name} --index {index} --why"

_DECIMALS = 1
"""Decimals of sampled times in ms: a sample represents about 20 ms."""


def flame_graph(
    connection: duckdb.DuckDBPyConnection, execution: Execution, stages: Sequence[str]
) -> FlameGraph | None:
    """The sampled stacks of a scope; None without samples.  `stages` are those of the timeline."""
    rows = sampled(connection, execution, stages)
    if not len(rows.stacks):
        return None
    frames, tree = tree_of(connection, rows.stacks)
    operators, of_stack = _operators(connection, rows.stacks)
    stage, operator = rows.owner, of_stack[rows.place]
    owner = pairs(stage + 1, operator + 1)
    node = tree.end[rows.place]
    total_ms = tree.totals(np.bincount(node, rows.time_ms.sum(axis=1), len(tree.parent)).astype(np.float64))
    kept, target, cut_ms = least_cut(tree, total_ms, node, owner, most_nodes=MAX_NODES, most_rows=MAX_ROWS)
    _, first, which = np.unique(pairs(target[node], owner), return_index=True, return_inverse=True)
    sums = np.stack([np.bincount(which, column, len(first)).astype(np.float64) for column in rows.time_ms.T], axis=1)
    names = with_other(execution.names)
    used, frame = renumbered(kept.frame)
    return FlameGraph(
        frames=tuple(frames[each] for each in used),
        parent=tuple(kept.parent.tolist()),
        frame=tuple(frame.tolist()),
        operators=operators,
        sampled=Sampled(
            node=tuple(target[node[first]].tolist()),
            stage=tuple(stage[first].tolist()),
            operator=tuple(operator[first].tolist()),
            resource_ms={name: _column(sums, number) for number, name in enumerate(names) if name != OTHER},
            waiting_ms=_column(sums, len(names) - 1),
            unknown_ms=_column(sums, len(names)),
        ),
        labels=_labels(connection, execution, {frames[each]: row for row, each in enumerate(used)}),
        mixed_below_share=MIXED,
        why=WHY,
        coarsened=cut_sentence(kept, tree, cut_ms),
    )


def cut_sentence(kept: Tree, tree: Tree, cut_ms: float) -> str:
    """How many branches of a tree are shown; '' if all are."""
    if not cut_ms:
        return ""
    return (
        f"{grouped(len(kept.frame))} of {grouped(len(tree.frame))} branches are shown; the time of every other one"
        f" (at most {cut_ms:.0f} ms) is added to its nearest shown caller"
    )


def _operators(connection: duckdb.DuckDBPyConnection, stacks: Ints) -> tuple[tuple[str, ...], Ints]:
    """The operators of stacks, sorted, and the position of each stack's operator; -1 if no frame names one."""
    rows = connection.execute("SELECT stack_id, operator FROM stacks WHERE operator IS NOT NULL").fetchall()
    of = dict(rows)
    of_stacks = [of.get(each) for each in stacks.tolist()]
    known = tuple(sorted({each for each in of_stacks if each is not None}))
    number = {each: position for position, each in enumerate(known)}
    return known, np.array([-1 if each is None else number[each] for each in of_stacks], dtype=np.int64)


def _column(sums: Floats, number: int) -> tuple[float, ...]:
    return tuple(np.round(sums[:, number], _DECIMALS).tolist())


def renumbered(frame: Ints) -> tuple[list[int], Ints]:
    """The used frames, in order, and the position of each node's frame among them; -1 stays."""
    used, place = np.unique(frame, return_inverse=True)
    return used[1:].tolist(), place.ravel() - 1  # the first is that of the root, -1


def _labels(connection: duckdb.DuckDBPyConnection, execution: Execution, frames: dict[str, int]) -> Labels:
    """The labels of attributed functions, from the run's own stacks and from the available indexes."""
    vector = ", ".join(f"arg_min(stacks.{name}, stack_id)" for name in execution.names)
    rows = connection.execute(
        f"""
        SELECT {name_of("frames[attributed_depth + 1]")} AS name, index_name, symbol, {vector}
        FROM stacks
        WHERE attributed_depth IS NOT NULL AND symbol IS NOT NULL
        GROUP BY name, index_name, symbol
        QUALIFY row_number() OVER (PARTITION BY name ORDER BY count(*) DESC, symbol, index_name) = 1
        ORDER BY name
        """
    ).fetchall()
    shown = [row for row in rows if row[0] in frames]
    known = _from_indexes(execution, [(row[1], row[0], row[2]) for row in shown])
    facts = [known.get((row[1], row[2]), (None, (), ())) for row in shown]
    return Labels(
        frame=tuple(frames[row[0]] for row in shown),
        index=tuple(row[1] for row in shown),
        shares=tuple(_rounded(row[3:]) for row in shown),
        confidence=tuple(None if each[0] is None else round(each[0], 3) for each in facts),
        code=tuple(each[1] for each in facts),
        documentation=tuple(each[2] for each in facts),
    )


def _rounded(shares: Sequence[float | None]) -> tuple[float, ...]:
    return () if any(each is None for each in shares) else tuple(round(float(each or 0.0), 3) for each in shares)


_Known = dict[tuple[str, str], tuple[float | None, tuple[float, ...], tuple[float, ...]]]


def _from_indexes(execution: Execution, wanted: Sequence[tuple[str, str, str]]) -> _Known:
    """Confidence and the two classifiers' shares by (index, symbol), without functions that no available index has.

    `wanted` are (index, class and method, symbol).
    """
    found: _Known = {}
    columns = ", ".join(f"{kind}_{name}" for kind in ("code", "doc") for name in execution.names)
    count = len(execution.names)
    with guard.fresh() as connection:  # the run's own connection must not open other files
        for number, index in enumerate(sorted({each[0] for each in wanted})):
            of_index = [each for each in wanted if each[0] == index]
            classes = {name for _, frame, _ in of_index for name in declaring_names(frame.rpartition(".")[0])}
            names = "CREATE OR REPLACE TEMP TABLE names_shown AS SELECT unnest(?::VARCHAR[]) AS name"
            connection.execute(names, [sorted(classes)])
            try:
                schema = load_part(connection, index, f"shown_{number}", "names_shown")
                rows = connection.execute(f"SELECT symbol, confidence, {columns} FROM {schema}.functions").fetchall()
            except (CrystalPerfError, duckdb.Error):  # not available, or of other resources: the stacks have the shares
                continue
            symbols = {each[2] for each in of_index}
            found |= {
                (index, row[0]): (row[1], _rounded(row[2 : 2 + count]), _rounded(row[2 + count :]))
                for row in rows
                if row[0] in symbols
            }
    return found
