"""A tree of sampled stacks, and its pruning to the branches with the most time.

All operations process a whole level at a time: a million samples may have half a million branches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.execution.sampled import name_of
from crystalperf.query.trace.records import Floats, Ints

Chosen = np.ndarray[Any, np.dtype[np.bool_]]


@frozen
class Tree:
    """A tree as arrays of nodes, level by level: row 0 is the root, and a parent comes before its children.

    parent  parent of each node, (nodes,); -1 for the root
    frame   row of the frames for each node, (nodes,); -1 for the root
    end     the node where each stack ends, (stacks,)
    levels  the first node of each depth, then the number of nodes
    """

    parent: Ints
    frame: Ints
    end: Ints
    levels: tuple[int, ...]

    def totals(self, own_ms: Floats) -> Floats:
        """Inclusive time of each node, from the time of stacks that end at it, (nodes,) in ms."""
        total = own_ms.copy()
        below = zip(self.levels, self.levels[1:], self.levels[2:], strict=False)
        for above, first, last in reversed(list(below)):
            total[above:first] += np.bincount(self.parent[first:last] - above, total[first:last], first - above)
        return total

    def without(self, keep: Chosen) -> tuple[Tree, Ints]:
        """The tree of kept nodes, and for each node its row there: its own, or that of its nearest kept ancestor.

        `keep` must contain the parents of all kept nodes.
        """
        number = np.cumsum(keep) - 1
        target = np.where(keep, number, -1)
        for first, last in pairwise(self.levels[1:]):
            target[first:last] = np.where(keep[first:last], target[first:last], target[self.parent[first:last]])
        parent = np.where(self.parent[keep] < 0, -1, number[np.maximum(self.parent[keep], 0)])
        levels = tuple(np.r_[0, np.cumsum(keep)][list(self.levels)].tolist())
        return Tree(parent, self.frame[keep], target[self.end], levels), target


def tree_of(connection: duckdb.DuckDBPyConnection, stacks: Ints) -> tuple[list[str], Tree]:
    """The names of frames, and the tree of the stacks with these sorted ids; Tree.end is aligned with them.

    Stacks share a node if they have the same parent node and frame name.
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
        stack = place[first:last]
        keys, which = np.unique(end[stack] * len(names) + frame[first:last], return_inverse=True)
        parents.append(keys // len(names))
        frames.append(keys % len(names))
        end[stack] = levels[-1] + which
        levels.append(levels[-1] + len(keys))
    return names, Tree(np.concatenate(parents), np.concatenate(frames), end, tuple(levels))


def merged(trees: Sequence[tuple[Sequence[str], Tree]]) -> tuple[list[str], Tree, list[Ints]]:
    """Trees of several runs as one: the names of its frames, the tree, and the node in it of each node of each tree.

    Nodes of two trees are the same if their parents are, and the names of their frames.  Tree.end is empty.
    """
    names = sorted({name for of_run, _ in trees for name in of_run})
    number = {name: place for place, name in enumerate(names)}
    frame_of = [np.array([number[name] for name in of_run], dtype=np.int64) for of_run, _ in trees]
    nodes = [np.zeros(len(tree.parent), dtype=np.int64) for _, tree in trees]
    parents, frames, levels = [np.array([-1])], [np.array([-1])], [0, 1]
    for depth in range(1, max(len(tree.levels) for _, tree in trees) - 1):
        parts = [
            slice(*tree.levels[depth : depth + 2]) if depth + 1 < len(tree.levels) else slice(0) for _, tree in trees
        ]
        keys = [
            place[tree.parent[part]] * len(names) + numbers[tree.frame[part]]
            for (_, tree), numbers, place, part in zip(trees, frame_of, nodes, parts, strict=True)
        ]
        known, which = np.unique(np.concatenate(keys), return_inverse=True)
        bounds = np.cumsum([0, *map(len, keys)])
        for place, part, (first, last) in zip(nodes, parts, pairwise(bounds.tolist()), strict=True):
            place[part] = levels[-1] + which[first:last]
        parents.append(known // len(names))
        frames.append(known % len(names))
        levels.append(levels[-1] + len(known))
    tree = Tree(np.concatenate(parents), np.concatenate(frames), np.zeros(0, dtype=np.int64), tuple(levels))
    return names, tree, nodes


def least_cut(
    tree: Tree, total_ms: Floats, node: Ints, owner: Ints, *, most_nodes: int, most_rows: int
) -> tuple[Tree, Ints, float]:
    """Prune a tree to its longest branches: the tree, the row of each node in it, and the longest cut branch in ms.

    Sampled time has rows of `node` and `owner`; after pruning there are at most `most_rows` distinct pairs of the two.
    The search keeps as many nodes as that permits, or up to 10 % less, because each step goes through all rows.
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
    """A key for each pair; keys sort as the pairs do."""
    return node * (int(owner.max(initial=0)) + 1) + owner
