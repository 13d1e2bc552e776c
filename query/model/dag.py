"""The execution DAG of a run: job → stage → task, with the driver's own time between stages as nodes.

    driver:0 ──► stage:0.0 ──► driver:1 ──► stage:2.0 ──► driver:2
            └──► stage:1.0 ──────┘

A stage starts when the stages it reads have ended and the driver has submitted it.  The log says which stages it
reads; stages of separate jobs are tied by what was observed, since the log does not say what the user's program or
the adaptive planner waited for (reading-the-paper: stage parents alone leave nearly every stage without a parent).
What the driver did between is a node of its own, so that the nodes on any path account for every millisecond.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import networkx as nx

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EPSILON_MS = 1.0
"""Events are stamped in whole milliseconds, so an end and the start it causes may be one apart either way."""


@dataclass(frozen=True)
class Stage:
    """One attempt of a stage that ran at least one task.  Times in ms since application start."""

    stage_id: int
    attempt: int
    job_id: int | None
    sql_id: int | None
    name: str
    parents: tuple[int, ...]
    submit_ms: float
    start_ms: float
    end_ms: float
    pool: str | None = None

    @property
    def node_id(self) -> str:
        return f"stage:{self.stage_id}.{self.attempt}"


ANYWHERE, AT_HOME, ELSEWHERE = range(3)
"""Where a task wants to run: on any slot; on its recorded host, for its data are there; or it did want another host,
one that was busy for so long that it gave up."""


@dataclass(frozen=True)
class Tasks:
    """Task attempts as arrays of one length, sorted by launch.

    `stage` indexes the sequence of stages; `parts_ms` is (n, resources + 1), the last column is `other`, and its
    rows sum to finish − launch.  `executor` and `host` number the executors (as in Slots, -1 unknown) and hosts.
    `placement` is ANYWHERE, AT_HOME or ELSEWHERE.
    """

    task_id: Ints
    stage: Ints
    executor: Ints
    host: Ints
    launch_ms: Floats
    finish_ms: Floats
    parts_ms: Floats
    placement: Ints

    def __len__(self) -> int:
        return len(self.task_id)

    @property
    def duration_ms(self) -> Floats:
        return self.finish_ms - self.launch_ms

    def select(self, mask: NDArray[np.bool_] | Ints) -> Tasks:
        return Tasks(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Node:
    """A stage, or an interval in which only the driver moved its successors forward."""

    node_id: str
    name: str
    start_ms: float
    end_ms: float
    stage: int | None = None  # position in Dag.stages
    sql_id: int | None = None

    @property
    def kind(self) -> str:
        return "driver" if self.stage is None else "stage"


@dataclass(frozen=True)
class Dag:
    """The nodes of a scope and why each waits for which.  Start and end in ms since application start."""

    start_ms: float
    end_ms: float
    stages: tuple[Stage, ...]
    nodes: dict[str, Node]
    edges: dict[tuple[str, str], str] = field(default_factory=dict)

    def graph(self) -> nx.DiGraph[str]:
        """The same as a networkx graph; nodes carry `node`, edges `why`."""
        import networkx as nx  # takes as long to import as all the rest, and most questions do not ask for it

        graph: nx.DiGraph[str] = nx.DiGraph()
        for node_id, node in self.nodes.items():
            graph.add_node(node_id, node=node)
        for (source, target), why in self.edges.items():
            graph.add_edge(source, target, why=why)
        return graph

    def check(self) -> None:
        """Raise AssertionError unless the graph is acyclic and all its nodes lie within the scope."""
        import networkx as nx

        assert nx.is_directed_acyclic_graph(self.graph()), "the execution DAG has a cycle"
        for node in self.nodes.values():
            assert node.start_ms <= node.end_ms, f"{node.node_id} ends before it starts"
            assert self.start_ms - 1e-6 <= node.start_ms, f"{node.node_id} starts before the scope"
            assert node.end_ms <= self.end_ms + 1e-6, f"{node.node_id} ends after the scope"


def build(stages: Sequence[Stage], tasks: Tasks, start_ms: float, end_ms: float, slots: int) -> Dag:
    """The DAG of the given stages between two times.

    `stages` are those of the scope and `tasks.stage` indexes them; `slots` is how many tasks the cluster could run
    at a time, which tells waiting for the driver from waiting for a slot.
    """
    ordered = sorted(range(len(stages)), key=lambda i: (stages[i].submit_ms, stages[i].stage_id, stages[i].attempt))
    builder = _Builder(stages, start_ms, end_ms)
    busy = _Concurrency(tasks.launch_ms, tasks.finish_ms)
    for index in ordered:
        stage = stages[index]
        sources = builder.sources_of(stage)
        # With slots free all the time, what passes up to the first launch is the driver's (it serialises the tasks);
        # otherwise it is a wait for slots, which the replay finds again by itself.
        waited = busy.highest(stage.submit_ms, stage.start_ms) >= slots
        released_ms = stage.submit_ms if waited else stage.start_ms
        builder.add_stage(index, sources, released_ms)
    return builder.finish()


class _Builder:
    """Adds stages in order of submission; the driver's intervals between them come to light on the way."""

    def __init__(self, stages: Sequence[Stage], start_ms: float, end_ms: float) -> None:
        self.stages = tuple(stages)
        self.start_ms, self.end_ms = start_ms, end_ms
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str], str] = {}
        self.driver_count = 0
        self.latest_driver: dict[tuple[str, ...], str] = {}
        self.waited_for: dict[str, frozenset[str]] = {}
        self.by_stage_id: dict[int, list[Stage]] = {}
        self.by_sql_id: dict[int, list[Stage]] = {}
        self.still_open: list[tuple[float, str]] = []  # heap of ends not yet passed by a submission
        self.latest_end: tuple[float, str] | None = None

    def sources_of(self, stage: Stage) -> dict[str, str]:
        """The stage nodes this one had to wait for, with the reason."""
        limit = stage.submit_ms + EPSILON_MS
        while self.still_open and self.still_open[0][0] <= limit:
            self.latest_end = heapq.heappop(self.still_open)
        sources: dict[str, str] = {}
        for parent in stage.parents:
            ended = [each for each in self.by_stage_id.get(parent, ()) if each.end_ms <= limit]
            sources |= {each.node_id: "shuffle" for each in ended}
        for each in self.by_stage_id.get(stage.stage_id, ()):
            if each.end_ms <= limit:
                sources[each.node_id] = "earlier attempt"
        if "shuffle" in sources.values():
            return sources
        # A stage without parents that ran: it opens a job.  The program, or the adaptive planner, submitted it
        # after what had ended by then in the same query; across queries only the order of submission is known.
        if stage.sql_id is not None:
            same = [each for each in self.by_sql_id.get(stage.sql_id, ()) if each.end_ms <= limit]
            awaited = frozenset[str]().union(*(self.waited_for[each.node_id] for each in same))
            for each in same:
                if each.node_id not in awaited:
                    sources.setdefault(each.node_id, "job barrier")
        if not sources and self.latest_end is not None:
            sources[self.latest_end[1]] = "submission order"
        return sources

    def add_stage(self, index: int, sources: dict[str, str], released_ms: float) -> None:
        stage = self.stages[index]
        start_ms = _clip(stage.start_ms, self.start_ms, self.end_ms)
        end_ms = _clip(stage.end_ms, start_ms, self.end_ms)
        released_ms = _clip(released_ms, self.start_ms, start_ms)
        gate, gate_end = self._driver_until(sources, released_ms, start_ms, stage)
        start_ms = max(start_ms, gate_end)
        node = Node(stage.node_id, stage.name, start_ms, max(end_ms, start_ms), index, stage.sql_id)
        self.nodes[node.node_id] = node
        self.edges[gate, node.node_id] = "driver"
        self.waited_for[node.node_id] = frozenset(sources)
        self.by_stage_id.setdefault(stage.stage_id, []).append(stage)
        if stage.sql_id is not None:
            self.by_sql_id.setdefault(stage.sql_id, []).append(stage)
        heapq.heappush(self.still_open, (stage.end_ms, node.node_id))

    def _driver_until(
        self, sources: dict[str, str], released_ms: float, start_ms: float, stage: Stage
    ) -> tuple[str, float]:
        """The driver node that releases a stage; stages released by the same ends share the driver's time."""
        key = tuple(sorted(sources))
        previous = self.latest_driver.get(key)
        if previous is not None and self.nodes[previous].end_ms > start_ms + EPSILON_MS:
            previous = None  # submitted later, it started before the one that the driver released then
        if previous is not None:
            begin = self.nodes[previous].end_ms
            if released_ms <= begin + EPSILON_MS:
                return previous, begin
            edges = {previous: "driver"}
        else:
            begin = max((self.nodes[source].end_ms for source in sources), default=self.start_ms)
            edges = dict(sources)
        name = f"before {stage.name}" if sources or previous else "start, up to the first stage"
        driver = self._new_driver(begin, max(begin, released_ms), name, stage.sql_id)
        for source, why in edges.items():
            self.edges[source, driver] = why
        self.latest_driver[key] = driver
        return driver, self.nodes[driver].end_ms

    def _new_driver(self, begin: float, end: float, name: str, sql_id: int | None) -> str:
        node = Node(f"driver:{self.driver_count}", name, begin, max(begin, end), None, sql_id)
        self.nodes[node.node_id] = node
        self.driver_count += 1
        return node.node_id

    def finish(self) -> Dag:
        last = max((node.end_ms for node in self.nodes.values()), default=self.start_ms)
        closing = self._new_driver(min(last, self.end_ms), self.end_ms, "after the last stage", None)
        has_successor = {source for source, _ in self.edges}
        for node_id in list(self.nodes):
            if node_id != closing and node_id not in has_successor:
                self.edges[node_id, closing] = "driver"
        return Dag(self.start_ms, self.end_ms, self.stages, self.nodes, self.edges)


class _Concurrency:
    """How many intervals are open over time."""

    def __init__(self, begin: Floats, end: Floats) -> None:
        moments = np.concatenate([begin, end])
        order = np.lexsort((np.concatenate([np.ones(len(begin)), np.zeros(len(end))]), moments))  # ends go first
        self.moments = moments[order]
        self.level = np.cumsum(np.where(order < len(begin), 1, -1))

    def highest(self, start_ms: float, end_ms: float) -> int:
        """The most open at a time from start to just before end, what was open at the start included."""
        first = int(np.searchsorted(self.moments, start_ms, side="right")) - 1
        last = int(np.searchsorted(self.moments, end_ms, side="left"))
        return int(self.level[max(first, 0) : last].max(initial=0))


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
