"""The critical path of a run and the bottleneck on it (paper §4.2).

The path is walked backwards from the end: a node waited for the predecessor that ended last.  The pieces tile the
scope, so the seconds on each resource along the path sum to the runtime.  The bottleneck is summed over the path only;
concurrent work off the path costs no time.

The driver is on the path only while no task runs.  If tasks run that the path does not wait for, because another
thread of the program started them, the interval belongs to their stage: nothing shows that the driver delayed
anything then.  Likewise a stage is on the path only while its own tasks run, or while no task runs.  While it waits
for slots, the interval belongs to the stages that occupy them.

In a pipeline, the busier of two stages delays the other: the path leaves a stage for the one it reads at the end of
that one, if it was the busier, and otherwise at the start of the stage itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import OTHER
from crystalperf.query.execution.dag import Dag, Node, Tasks
from crystalperf.query.execution.intervals import Timeline, merged, overlapping, uncovered
from crystalperf.query.trace.arrays import members
from crystalperf.query.trace.records import Floats, Ints

_KEPT = 4
"""Number of stages whose timelines are cached; the path may return to a long stage many times."""

DriverParts = Callable[[float, float], Floats]
"""(start_ms, end_ms) → wall-clock time of the driver by resource and `other`, (resources + 1,)."""


@frozen
class Piece:
    """One node's segment of the critical path; `parts_ms` is its time by resource and sums to end − start."""

    node: Node
    start_ms: float
    end_ms: float
    parts_ms: Floats


def critical_path(dag: Dag, tasks: Tasks, driver_parts: DriverParts, names: Sequence[str]) -> list[Piece]:
    """The critical path, in order of time; its pieces tile the scope of the DAG.  `names` are the run's resources."""
    return path_by(WallClock(dag, tasks, driver_parts, names))


def path_by(clock: WallClock) -> list[Piece]:
    """The critical path, with segments split by resource as `clock` does."""
    dag = clock.dag
    sources: dict[str, list[tuple[Node, bool]]] = {node_id: [] for node_id in dag.nodes}
    for (source, target), dependency in dag.edges.items():
        sources[target].append((dag.nodes[source], dependency.kind == "pipelined"))
    node = max(dag.nodes.values(), key=lambda each: (each.end_ms, each.start_ms), default=None)
    segments: list[tuple[Node, float, float]] = []
    cursor = dag.end_ms
    while node is not None:
        before, start = None, dag.start_ms
        for each, flows in sources[node.node_id]:
            left_ms = each.end_ms if not flows or clock.busy(each) > clock.busy(node) else node.start_ms
            if before is None or left_ms > start:
                before, start = each, left_ms
        start = min(start, cursor)
        for each, begin, end in clock.seen(node, start, cursor):
            if segments and segments[-1][0] is each:  # once for the node that waited for it, and once for itself
                end = segments.pop()[2]
            segments.append((each, begin, end))
        cursor, node = start, before
    return [Piece(each, begin, end, clock.parts(each, begin, end)) for each, begin, end in reversed(segments)]


class WallClock:
    """Splits a node's wall-clock time by resource."""

    def __init__(self, dag: Dag, tasks: Tasks, driver_parts: DriverParts, names: Sequence[str]) -> None:
        self.dag, self.tasks, self.driver_parts, self.names = dag, tasks, driver_parts, names
        self.of_stage = members(tasks.stage, len(dag.stages))
        self.running = tasks.running
        self.nodes = {node.stage: node for node in dag.nodes.values() if node.stage is not None}
        self._timeline = lru_cache(_KEPT)(lambda stage: Timeline(tasks, self.of_stage[stage]))

    def seen(self, node: Node, start_ms: float, end_ms: float) -> Iterator[tuple[Node, float, float]]:
        """The segments of a node's interval, latest first; time in which it made no progress and tasks of other stages
        ran belongs to those stages."""
        runs = self._taken(node, start_ms, end_ms)
        if not len(runs):
            if end_ms > start_ms:
                yield node, start_ms, end_ms
            return
        since_ms, until_ms, stages = self._latest_first
        near = (since_ms < end_ms) & (until_ms > start_ms)
        ran = zip(np.maximum(since_ms[near], start_ms).tolist(), stages[near].tolist(), strict=True)
        ends = until_ms[near].tolist()
        seen, first, stage = 0, np.inf, -1
        for begin, end in runs[::-1].tolist():
            if end_ms > end:
                yield node, end, end_ms
            end_ms = end
            while end_ms > begin:
                # Of the stages that ran just before, the one that ran for the longest: all stages that ended since then
                # began no earlier than the segments already returned, or would have been returned for them.
                while seen < len(ends) and ends[seen] >= end_ms:
                    first, stage = min((first, stage), next(ran))
                    seen += 1
                yield self.nodes[stage], max(first, begin), end_ms
                end_ms = max(first, begin)
        if end_ms > start_ms:
            yield node, start_ms, end_ms

    def _taken(self, node: Node, start_ms: float, end_ms: float) -> Floats:
        """The intervals in which tasks ran while the node itself made no progress: it is a driver, or none of its
        stage's tasks ran."""
        if node.kind == "transfer":
            return np.empty((0, 2))
        if node.stage is None:
            return _within(self.running, start_ms, end_ms)
        own = _within(self._runs[node.stage], start_ms, end_ms)
        gaps = np.array(uncovered(own, start_ms, end_ms)).reshape(-1, 2)
        first, last = overlapping(self.running, gaps[:, 0], gaps[:, 1])
        return np.concatenate([np.empty((0, 2)), *(_within(self.running, *gap) for gap in gaps[last > first].tolist())])

    def parts(self, node: Node, start_ms: float, end_ms: float) -> Floats:
        """Wall-clock time by resource, (resources + 1,), that sums to end − start; unknown time is `other`."""
        if node.resource is not None:
            parts = np.zeros(len(self.names) + 1)
            parts[list(self.names).index(node.resource)] = end_ms - start_ms
        elif node.stage is None:
            parts = self.driver_parts(start_ms, end_ms)
        else:
            # While none of its own tasks run, a stage waits for slots: then the tasks in slots decide the resources.
            own = self._timeline(node.stage).between(start_ms, end_ms)
            gaps = uncovered(_within(self._runs[node.stage], start_ms, end_ms), start_ms, end_ms)
            parts = own + self._everything.over(gaps) if len(gaps) else own
        return fill(parts, end_ms - start_ms)

    @cached_property
    def _everything(self) -> Timeline:
        return Timeline(self.tasks)

    @cached_property
    def _runs(self) -> list[Floats]:
        """By stage, the disjoint intervals in which its tasks ran."""
        return [merged(self.tasks.launch_ms[own], self.tasks.finish_ms[own]) for own in self.of_stage]

    @cached_property
    def _latest_first(self) -> tuple[Floats, Floats, Ints]:
        """When tasks of each stage ran: from, until, and the stage, each (intervals,), latest end first."""
        since_ms, until_ms = np.concatenate([np.empty((0, 2)), *self._runs]).T
        stages = np.repeat(np.arange(len(self._runs)), [len(each) for each in self._runs])
        order = np.argsort(-until_ms, kind="stable")
        return since_ms[order], until_ms[order], stages[order]

    def busy(self, node: Node) -> float:
        """The share of a stage's task time without waits for the other stages of its pipeline."""
        if node.stage is None:
            return 1.0
        own = self.of_stage[node.stage]
        length = float(self.tasks.duration_ms[own].sum())
        return 1.0 - float(self.tasks.pipeline_wait_ms[own].sum()) / length if length > 0 else 0.0


def _within(intervals: Floats, start_ms: float, end_ms: float) -> Floats:
    """The parts of sorted disjoint intervals from start to end."""
    first, last = overlapping(intervals, start_ms, end_ms)
    return np.minimum(np.maximum(intervals[first:last], start_ms), end_ms)


def fill(parts_ms: Floats, length_ms: float) -> Floats:
    """The parts, made to sum to a length: missing time is added to `other`, excess time is scaled down."""
    parts, total = parts_ms.copy(), float(parts_ms.sum())
    if total > length_ms:
        return parts * (length_ms / total)
    parts[-1] += length_ms - total
    return parts


def bottleneck(pieces: Sequence[Piece], names: Sequence[str], other_ms: float | None = None) -> str:
    """The resource with the most time on the path; `other` if other time is larger than each, or if nothing ran.

    If `other` is known to have several causes, `other_ms` is the time of the largest cause, which is compared instead.
    """
    total = np.sum([piece.parts_ms for piece in pieces], axis=0) if pieces else np.zeros(len(names) + 1)
    if other_ms is not None:
        total[-1] = min(total[-1], other_ms)
    return (*names, OTHER)[int(np.argmax(total)) if total.any() else -1]
