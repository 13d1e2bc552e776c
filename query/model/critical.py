"""The critical path of a run and the bottleneck on it (paper §4.2).

The path is walked backwards from the end: what ended last before a node could start held it up.  Its pieces tile
the scope, so the seconds on each resource along it sum to the runtime.  The bottleneck is summed over the path
only; what ran beside it cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from query.model.dag import Dag, Floats, Node, Tasks
from query.model.timeline import Timeline

DriverParts = Callable[[float, float], Floats]
"""(start_ms, end_ms) → wall-clock of the driver in each resource and `other`, (resources + 1,)."""


@dataclass(frozen=True)
class Piece:
    """One node's stretch of the critical path; `parts_ms` sums to end − start."""

    node: Node
    start_ms: float
    end_ms: float
    parts_ms: Floats


def critical_path(dag: Dag, tasks: Tasks, driver_parts: DriverParts) -> list[Piece]:
    """The pieces in order of time; they tile the scope of the DAG."""
    clock = WallClock(dag, tasks, driver_parts)
    sources: dict[str, list[str]] = {node_id: [] for node_id in dag.nodes}
    for source, target in dag.edges:
        sources[target].append(source)
    node = max(dag.nodes.values(), key=lambda each: (each.end_ms, each.start_ms), default=None)
    pieces: list[Piece] = []
    cursor = dag.end_ms
    while node is not None:
        before = max((dag.nodes[s] for s in sources[node.node_id]), key=lambda each: each.end_ms, default=None)
        start = dag.start_ms if before is None else min(before.end_ms, cursor)
        if cursor > start:
            pieces.append(Piece(node, start, cursor, clock.parts(node, start, cursor)))
        cursor, node = start, before
    return pieces[::-1]


class WallClock:
    """Splits stretches of a node's wall-clock by resource."""

    def __init__(self, dag: Dag, tasks: Tasks, driver_parts: DriverParts) -> None:
        self.dag, self.tasks, self.driver_parts = dag, tasks, driver_parts
        self.everything = Timeline(tasks)
        order = np.argsort(tasks.stage, kind="stable")
        bounds = np.searchsorted(tasks.stage[order], np.arange(len(dag.stages) + 1))
        self.of_stage = [order[bounds[i] : bounds[i + 1]] for i in range(len(dag.stages))]

    def parts(self, node: Node, start_ms: float, end_ms: float) -> Floats:
        """(resources + 1,) that sum to end − start; what nothing accounts for is `other`."""
        if node.stage is None:
            parts = self.driver_parts(start_ms, end_ms)
        else:
            # Before its first task a stage waits for slots: then the tasks in the slots say what the time went to.
            own = Timeline(self.tasks.select(self.of_stage[node.stage]))
            begun = min(max(node.start_ms, start_ms), end_ms)
            parts = self.everything.between(start_ms, begun) + own.between(begun, end_ms)
        return fill(parts, end_ms - start_ms)


def fill(parts_ms: Floats, length_ms: float) -> Floats:
    """The parts brought to a length: what is missing is `other`, what is too much is scaled down."""
    parts, total = parts_ms.copy(), float(parts_ms.sum())
    if total > length_ms:
        return parts * (length_ms / total)
    parts[-1] += length_ms - total
    return parts


def bottleneck(pieces: list[Piece], names: tuple[str, ...], other_ms: float | None = None) -> str:
    """The resource with the most time on the path, `other` where other time exceeds all of theirs, or nothing ran.

    Where `other` is known to have several causes, `other_ms` is the time of the largest, which then stands for it.
    """
    total = np.sum([piece.parts_ms for piece in pieces], axis=0) if pieces else np.zeros(len(names) + 1)
    if other_ms is not None:
        total[-1] = min(total[-1], other_ms)
    return (*names, "other")[int(np.argmax(total)) if total.any() else -1]
