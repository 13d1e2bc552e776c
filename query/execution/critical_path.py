"""The critical path of a run and the bottleneck on it (paper §4.2).

The path is walked backwards from the end: what ended last before a node could start held it up.  Its pieces tile
the scope, so the seconds on each resource along it sum to the runtime.  The bottleneck is summed over the path
only; what ran beside it cost nothing.

The coordinator is on the path only while no unit runs.  Where some do that the path does not wait for, as another
thread of the program started them, the stretch is that of their group: what the coordinator did then was not seen to
hold anything up.  Likewise a group is on the path while units of its own run, or none: while it waits for slots, the
stretch is that of the groups that have them.

Where groups run in a pipeline, the busier of two holds up the other: the path leaves a group for the one it reads when
that one ended, if it was the busier, and else where the group itself began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from crystalperf.indexes.resources import OTHER
from crystalperf.query.execution.dag import Dag, Node, Units
from crystalperf.query.execution.intervals import Timeline, left_open, merged, overlapping
from crystalperf.query.trace.arrays import members
from crystalperf.query.trace.records import Floats, Ints

_KEPT = 4
"""Groups whose timelines are kept; the path may come back to a long one many times."""

CoordinatorParts = Callable[[float, float], Floats]
"""(start_ms, end_ms) → wall-clock of the coordinator in each resource and `other`, (resources + 1,)."""


@dataclass(frozen=True)
class Piece:
    """One node's stretch of the critical path, as long as the path is its; `parts_ms` sums to end − start."""

    node: Node
    start_ms: float
    end_ms: float
    parts_ms: Floats


def critical_path(dag: Dag, units: Units, coordinator_parts: CoordinatorParts, names: Sequence[str]) -> list[Piece]:
    """The pieces in order of time; they tile the scope of the DAG.  `names` are the run's resources."""
    return path_by(WallClock(dag, units, coordinator_parts, names))


def path_by(clock: WallClock) -> list[Piece]:
    """The same, with stretches split as the clock does."""
    dag = clock.dag
    sources: dict[str, list[tuple[Node, bool]]] = {node_id: [] for node_id in dag.nodes}
    for (source, target), dependency in dag.edges.items():
        sources[target].append((dag.nodes[source], dependency.kind == "pipelined"))
    node = max(dag.nodes.values(), key=lambda each: (each.end_ms, each.start_ms), default=None)
    stretches: list[tuple[Node, float, float]] = []
    cursor = dag.end_ms
    while node is not None:
        before, start = None, dag.start_ms
        for each, flows in sources[node.node_id]:
            left_ms = each.end_ms if not flows or clock.busy(each) > clock.busy(node) else node.start_ms
            if before is None or left_ms > start:
                before, start = each, left_ms
        start = min(start, cursor)
        for each, begin, end in clock.seen(node, start, cursor):
            if stretches and stretches[-1][0] is each:  # once for what waited for it, and once for itself
                end = stretches.pop()[2]
            stretches.append((each, begin, end))
        cursor, node = start, before
    return [Piece(each, begin, end, clock.parts(each, begin, end)) for each, begin, end in reversed(stretches)]


class WallClock:
    """Splits stretches of a node's wall-clock by resource."""

    def __init__(self, dag: Dag, units: Units, coordinator_parts: CoordinatorParts, names: Sequence[str]) -> None:
        self.dag, self.units, self.coordinator_parts, self.names = dag, units, coordinator_parts, names
        self.of_group = members(units.group, len(dag.groups))
        self.running = merged(units.launch_ms, units.finish_ms)
        self.nodes = {node.group: node for node in dag.nodes.values() if node.group is not None}
        self._timeline = lru_cache(_KEPT)(lambda group: Timeline(units, self.of_group[group]))

    def seen(self, node: Node, start_ms: float, end_ms: float) -> Iterator[tuple[Node, float, float]]:
        """A stretch of a node, its end first; what other groups' units ran in while it stood still is theirs."""
        runs = self._taken(node, start_ms, end_ms)
        if not len(runs):
            if end_ms > start_ms:
                yield node, start_ms, end_ms
            return
        since_ms, until_ms, groups = self._latest_first
        near = (since_ms < end_ms) & (until_ms > start_ms)
        ran = zip(np.maximum(since_ms[near], start_ms).tolist(), groups[near].tolist(), strict=True)
        ends = until_ms[near].tolist()
        seen, first, group = 0, np.inf, -1
        for begin, end in runs[::-1].tolist():
            if end_ms > end:
                yield node, end, end_ms
            end_ms = end
            while end_ms > begin:
                # Of the groups that ran just before, the one that did so for the longest: all that ended since began
                # no earlier than the stretches already told, or would have been told for them.
                while seen < len(ends) and ends[seen] >= end_ms:
                    first, group = min((first, group), next(ran))
                    seen += 1
                yield self.nodes[group], max(first, begin), end_ms
                end_ms = max(first, begin)
        if end_ms > start_ms:
            yield node, start_ms, end_ms

    def _taken(self, node: Node, start_ms: float, end_ms: float) -> Floats:
        """When units ran while a node moved nothing forward itself: a coordinator, or a group of which none did."""
        if node.kind == "transfer":
            return np.empty((0, 2))
        if node.group is None:
            return _within(self.running, start_ms, end_ms)
        own = _within(self._runs[node.group], start_ms, end_ms)
        gaps = np.array(left_open(own, start_ms, end_ms)).reshape(-1, 2)
        first, last = overlapping(self.running, gaps[:, 0], gaps[:, 1])
        return np.concatenate([np.empty((0, 2)), *(_within(self.running, *gap) for gap in gaps[last > first].tolist())])

    def parts(self, node: Node, start_ms: float, end_ms: float) -> Floats:
        """(resources + 1,) that sum to end − start; what nothing accounts for is `other`."""
        if node.resource is not None:
            parts = np.zeros(len(self.names) + 1)
            parts[list(self.names).index(node.resource)] = end_ms - start_ms
        elif node.group is None:
            parts = self.coordinator_parts(start_ms, end_ms)
        else:
            # While none of its own runs a group waits for slots: then the units in the slots say what the time went to.
            own = self._timeline(node.group).between(start_ms, end_ms)
            gaps = left_open(_within(self._runs[node.group], start_ms, end_ms), start_ms, end_ms)
            parts = own + self._everything.over(gaps) if len(gaps) else own
        return fill(parts, end_ms - start_ms)

    @cached_property
    def _everything(self) -> Timeline:
        return Timeline(self.units)

    @cached_property
    def _runs(self) -> list[Floats]:
        """When units of each group ran, disjoint."""
        return [merged(self.units.launch_ms[mine], self.units.finish_ms[mine]) for mine in self.of_group]

    @cached_property
    def _latest_first(self) -> tuple[Floats, Floats, Ints]:
        """When units of each group ran: from, until, and the group, each (stretches,), in the order of their ends."""
        since_ms, until_ms = np.concatenate([np.empty((0, 2)), *self._runs]).T
        groups = np.repeat(np.arange(len(self._runs)), [len(each) for each in self._runs])
        order = np.argsort(-until_ms, kind="stable")
        return since_ms[order], until_ms[order], groups[order]

    def busy(self, node: Node) -> float:
        """The share of a group's time in which its units did not wait for those that they share a pipeline with."""
        if node.group is None:
            return 1.0
        mine = self.of_group[node.group]
        length = float(self.units.duration_ms[mine].sum())
        return 1.0 - float(self.units.upstream_ms[mine].sum()) / length if length > 0 else 0.0


def _within(intervals: Floats, start_ms: float, end_ms: float) -> Floats:
    """What of sorted disjoint intervals lies in a stretch."""
    first, last = overlapping(intervals, start_ms, end_ms)
    return np.minimum(np.maximum(intervals[first:last], start_ms), end_ms)


def fill(parts_ms: Floats, length_ms: float) -> Floats:
    """The parts brought to a length: what is missing is `other`, what is too much is scaled down."""
    parts, total = parts_ms.copy(), float(parts_ms.sum())
    if total > length_ms:
        return parts * (length_ms / total)
    parts[-1] += length_ms - total
    return parts


def bottleneck(pieces: Sequence[Piece], names: Sequence[str], other_ms: float | None = None) -> str:
    """The resource with the most time on the path, `other` where other time exceeds all of theirs, or nothing ran.

    Where `other` is known to have several causes, `other_ms` is the time of the largest, which then stands for it.
    """
    total = np.sum([piece.parts_ms for piece in pieces], axis=0) if pieces else np.zeros(len(names) + 1)
    if other_ms is not None:
        total[-1] = min(total[-1], other_ms)
    return (*names, OTHER)[int(np.argmax(total)) if total.any() else -1]
