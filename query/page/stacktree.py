"""Stacks as one tree, and that tree without its least branches.

Everything goes a whole level at a time: a million samples may have half a million branches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np

from crystalperf.query import sql
from crystalperf.query.trace.records import Floats, Ints

_NAMED = (
    (r":\d+$", ""),
    (r"(\$\$Lambda|LambdaForm\$\w+)[^\w].*\.([^.]+)$", r"\1.\2"),
    (r"(Generated\w+Accessor|\$Proxy)\d+", r"\1"),
)
"""What of a frame is no part of its name: its line, and the numbers that a JVM gives classes which it makes itself.
Two JVMs give the same class other numbers, and their stacks would be two trees."""

Chosen = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Tree:
    """Nodes, level by level: row 0 is the root of all, and a parent comes before its children.

    parent  of each node; -1 of the root
    frame   of each node a row of the frames; -1 of the root
    end     of each stack the node where it ends
    levels  by depth the first node, and at last how many nodes there are
    """

    parent: Ints
    frame: Ints
    end: Ints
    levels: tuple[int, ...]

    def totals(self, own_ms: Floats) -> Floats:
        """The time of each node with all that branches off it, from what ends at each, (nodes,) in ms."""
        total = own_ms.copy()
        below = zip(self.levels, self.levels[1:], self.levels[2:], strict=False)
        for above, first, last in reversed(list(below)):
            total[above:first] += np.bincount(self.parent[first:last] - above, total[first:last], first - above)
        return total

    def without(self, keep: Chosen) -> tuple[Tree, Ints]:
        """The nodes that are kept as a tree, and by node the one of it that stands for it: itself, or its trunk.

        `keep` has the parents of all that it has.
        """
        number = np.cumsum(keep) - 1
        target = np.where(keep, number, -1)
        for first, last in pairwise(self.levels[1:]):
            target[first:last] = np.where(keep[first:last], target[first:last], target[self.parent[first:last]])
        parent = np.where(self.parent[keep] < 0, -1, number[np.maximum(self.parent[keep], 0)])
        levels = tuple(np.r_[0, np.cumsum(keep)][list(self.levels)].tolist())
        return Tree(parent, self.frame[keep], target[self.end], levels), target


def name_of(frame: str) -> str:
    """SQL: the name of a frame."""
    for pattern, instead in _NAMED:
        frame = f"regexp_replace({frame}, '{pattern}', '{instead}')"
    return frame


def tree_of(connection: duckdb.DuckDBPyConnection, stacks: Ints) -> tuple[list[str], Tree]:
    """The names of frames, and the tree of the stacks of these ids, which are sorted; Tree.end is aligned with them.

    A node is a parent and a name.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE shown_stacks AS SELECT unnest(?::INTEGER[]) AS stack_id", [stacks.tolist()]
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE shown_names AS {sql.text('frame_names').format(name=name_of('frame'))}"
    )
    rows = connection.execute("SELECT DISTINCT number, name FROM shown_names ORDER BY number").fetchall()
    names = [name for _, name in rows]
    found = connection.execute(sql.text("stack_frames")).fetchnumpy()
    for table in ("shown_stacks", "shown_names"):
        connection.execute(f"DROP TABLE {table}")
    place = np.searchsorted(stacks, np.asarray(found["stack_id"]).astype(np.int64))
    frame = np.asarray(found["number"]).astype(np.int64)
    depth = np.asarray(found["depth"]).astype(np.int64)
    end = np.zeros(len(stacks), dtype=np.int64)
    parents, frames, levels = [np.array([-1])], [np.array([-1])], [0, 1]
    bounds = np.searchsorted(depth, np.arange(int(depth.max(initial=-1)) + 2))
    for first, last in pairwise(bounds.tolist()):
        mine = place[first:last]
        keys, which = np.unique(end[mine] * len(names) + frame[first:last], return_inverse=True)
        parents.append(keys // len(names))
        frames.append(keys % len(names))
        end[mine] = levels[-1] + which
        levels.append(levels[-1] + len(keys))
    return names, Tree(np.concatenate(parents), np.concatenate(frames), end, tuple(levels))


def least_cut(
    tree: Tree, total_ms: Floats, node: Ints, owner: Ints, *, most_nodes: int, most_rows: int
) -> tuple[Tree, Ints, float]:
    """The tree with its longest branches, by node the one that stands for it, and the time that no cut branch has, ms.

    Sampled time comes in rows of `node` and `owner`, and there may be `most_rows` pairs of the two once the time of
    branches that are cut is that of their trunk.  Nodes are kept as many as that allows, or up to a tenth less: each
    try goes through all rows.
    """
    ranked = np.lexsort((np.arange(len(total_ms)), -total_ms))  # of equal time a parent comes first

    def cut(most: int) -> tuple[Tree, Ints]:
        keep = np.zeros(len(total_ms), dtype=np.bool_)
        keep[ranked[:most]] = True
        keep[0] = True
        return tree.without(keep)

    def fits(most: int) -> bool:
        return len(np.unique(pairs(cut(most)[1][node], owner))) <= most_rows

    low, high = 1, min(most_nodes, len(ranked))
    if fits(high):
        low = high
    while high - low > max(low // 10, 1):  # low fits, high does not
        middle = max(math.isqrt(low * high), low + 1)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return *cut(low), float(total_ms[ranked[low]]) if low < len(ranked) else 0.0


def pairs(node: Ints, owner: Ints) -> Ints:
    """One number for each pair, which are in the order of the pairs."""
    return node * (int(owner.max(initial=0)) + 1) + owner
