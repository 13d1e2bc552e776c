"""The execution DAG of a run: stages of tasks, and the driver's own time between them, as nodes.

    driver:0 ──► stage:0 ──► driver:1 ──► stage:2 ──► driver:2
                 └──► stage:1 ──────┘

A stage that the driver submits starts when the stages it reads have ended and the driver has submitted it.  The
driver's time in between is a node of its own, so the nodes on any path account for every millisecond.  The trace
states which stages a stage reads; the framework infers from observed times what else the driver waited for.

A stage without submission starts by its dependencies alone: a pipelined stage runs concurrently with those it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.intervals import merged
from crystalperf.query.execution.slots import Slots, SlotUse
from crystalperf.query.trace.contract import EdgeKind
from crystalperf.query.trace.records import Floats, Ints

if TYPE_CHECKING:
    import networkx as nx

EPSILON_MS = 1.0
"""Timestamps are whole milliseconds, so an end and the start it causes may differ by one either way."""


@frozen
class SlotDemand:
    """The slots that a stage needs, of a framework whose stages need different ones.

    usable    slots that its tasks can use at a time, of the recorded ones; None for all
    per_task  slots of a worker that one of its tasks takes
    together  whether all of its tasks start at the same time
    own_workers  whether only workers of its own run its tasks
    """

    usable: int | None = None
    per_task: float = 1.0
    together: bool = False
    own_workers: bool = False

    def most(self, worker_slots: float, workers: float = 1.0, slots: float = 1.0) -> int | None:
        """The most tasks of the stage at a time, with `workers` and `slots` of a worker times the recorded ones.

        A worker had `worker_slots`.  None if only slots limit the tasks; 0 if a worker has too few for one task.
        """
        if self.usable is None:
            return None
        before = max(math.floor(worker_slots / self.per_task + _ROUNDING), 1)
        after = math.floor(worker_slots * slots / self.per_task + _ROUNDING)
        return round(max(self.usable * workers, 1.0)) * after // before


_ROUNDING = 1e-9


@frozen
class StageRun:
    """One attempt of a stage that ran at least one task.  Times in ms since application start.

    `submit_ms` is None if no driver submitted it.  Of stages with waiting tasks, the one with the lowest
    `priority` goes first.
    """

    stage_id: str
    name: str
    scope_id: str | None
    priority: int
    submit_ms: float | None
    start_ms: float
    end_ms: float
    pool: str | None = None
    held: bool = False
    """whether it waited for slots although others were free, from its submission to its first task"""
    demand: SlotDemand = SlotDemand()
    """the slots that it needs"""


class Barriers(Protocol):
    """Infers what a driver waited for before it submitted a stage, if the log does not state its dependencies.

    Called in order of submission: `sources` for each stage, then `add` once the stage is in the graph.
    """

    def sources(self, stage: StageRun, limit_ms: float, known: Mapping[str, str]) -> dict[str, str]:
        """The stages that it waited for and why, of those that had ended by `limit_ms`; `known` are the stated ones."""

    def add(self, stage: StageRun, sources: Mapping[str, str]) -> None:
        """Add a stage and all the stages that it waited for."""


@frozen
class Dependency:
    """How and why a stage waits for another; a `transfer` uses the device of `resource`."""

    kind: EdgeKind
    why: str
    resource: str | None = None


COORDINATED = Dependency("barrier", "driver")

ANYWHERE, AT_HOME, ELSEWHERE = range(3)
"""Placement of a task: on any slot; on its recorded host, where its data are; or on another host than that of its data,
which was busy for too long."""


@frozen
class Tasks:
    """Task attempts as arrays of one length, sorted by launch.

    `stage` is the position of each task's stage; `parts_ms` is (n, resources + 1), the last column is `other`, and its
    rows sum to finish − launch.  `worker` and `host` number the workers (as in Slots, -1 unknown) and hosts.
    `placement` is ANYWHERE, AT_HOME or ELSEWHERE.  Of `other`, `pipeline_wait_ms` was spent waiting for pipelined
    stages.  `follows` is the task_id of the task whose worker has its data cached, -1 for none.
    """

    task_id: Ints
    stage: Ints
    worker: Ints
    host: Ints
    launch_ms: Floats
    finish_ms: Floats
    parts_ms: Floats
    placement: Ints
    pipeline_wait_ms: Floats
    follows: Ints

    def __len__(self) -> int:
        return len(self.task_id)

    @cached_property
    def duration_ms(self) -> Floats:
        return self.finish_ms - self.launch_ms

    @cached_property
    def running(self) -> Floats:
        """The intervals in which any task ran, as sorted disjoint rows of (start, end), ms."""
        return merged(self.launch_ms, self.finish_ms)

    def select(self, mask: NDArray[np.bool_] | Ints) -> Tasks:
        return Tasks(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


@frozen
class Node:
    """A stage, or an interval of the driver or of a transfer that its successors waited for.

    `resource` is that of a transfer's device.
    """

    node_id: str
    name: str
    start_ms: float
    end_ms: float
    stage: int | None = None  # position in Dag.stages
    scope_id: str | None = None
    resource: str | None = None
    held: bool = False
    """whether a submitted stage waited for slots meanwhile, so that the driver had nothing to do for it"""

    @property
    def kind(self) -> str:
        return "stage" if self.stage is not None else "driver" if self.resource is None else "transfer"


@frozen
class Dag:
    """The nodes of a scope, and the dependencies between them.  Start and end in ms since application start."""

    start_ms: float
    end_ms: float
    stages: tuple[StageRun, ...]
    nodes: dict[str, Node]
    edges: dict[tuple[str, str], Dependency] = field(default_factory=dict)

    def graph(self) -> nx.DiGraph[str]:
        """The same as a networkx graph; nodes have `node`, edges `kind` and `why`."""
        import networkx as nx  # takes as long to import as everything else, and most requests do not need it

        graph: nx.DiGraph[str] = nx.DiGraph()
        for node_id, node in self.nodes.items():
            graph.add_node(node_id, node=node)
        for (source, target), dependency in self.edges.items():
            graph.add_edge(source, target, kind=dependency.kind, why=dependency.why)
        return graph

    def check(self) -> None:
        """Raise AssertionError unless the graph is acyclic and all its nodes are within the scope."""
        import networkx as nx

        assert nx.is_directed_acyclic_graph(self.graph()), "the execution DAG has a cycle"
        for node in self.nodes.values():
            assert node.start_ms <= node.end_ms, f"{node.node_id} ends before it starts"
            assert self.start_ms - 1e-6 <= node.start_ms, f"{node.node_id} starts before the scope"
            assert node.end_ms <= self.end_ms + 1e-6, f"{node.node_id} ends after the scope"


@frozen
class Unstarted:
    """A submitted stage none of whose tasks ran: it waited for slots from `start_ms` to `end_ms`."""

    name: str
    start_ms: float
    end_ms: float


@frozen
class DagRules:
    """A framework's rules for building a DAG.

    barriers       infers dependencies of stages in addition to the stated ones
    driver, stage  the framework's words for the driver and a stage, for names of intervals
    epsilon_ms     maximum difference between the timestamps of an end and of the start that it causes
    """

    barriers: Callable[[Sequence[StageRun]], Barriers] | None = None
    driver: str = "driver"
    stage: str = "stage"
    epsilon_ms: float = EPSILON_MS


USUAL_RULES = DagRules()


def build(
    stages: Sequence[StageRun],
    tasks: Tasks,
    start_ms: float,
    end_ms: float,
    slots: Slots,
    stated: Mapping[tuple[str, str], Dependency],
    rules: DagRules = USUAL_RULES,
) -> Dag:
    """The DAG of the given stages between two times.

    `stages` are those of the scope and `tasks.stage` indexes them.  `slots` are the recorded slots: they distinguish
    waits for the driver from waits for a slot.  `stated` are the dependencies of the trace by (source, target).
    """
    builder = _Builder(stages, start_ms, end_ms, stated, rules)
    use = SlotUse(tasks.launch_ms, tasks.finish_ms, slots.available_ms, slots.until_ms)
    for index in sorted(range(len(stages)), key=lambda i: (_released(stages[i]), stages[i].priority, i)):
        stage = stages[index]
        if stage.submit_ms is None:
            # When it could have started is not recorded: it waited for a slot if none was free since its sources ended.
            sources = builder.stated_sources(stage)
            since_ms = max((builder.by_id[each].end_ms for each in sources), default=start_ms)
            full = use.stays_full(since_ms, stage.start_ms)
            builder.add(index, sources, since_ms if full else stage.start_ms)
            continue
        # If slots were free all the time, the time up to the first launch is the driver's (it serializes the
        # tasks); otherwise it is a wait for slots, which the replay computes by itself.
        waited = use.is_full(stage.submit_ms, stage.start_ms)
        released_ms = stage.submit_ms if waited or stage.held else stage.start_ms
        builder.add(index, builder.all_sources(stage), released_ms, held=stage.held and not waited)
    return builder.finish()


def _released(stage: StageRun) -> float:
    return stage.start_ms if stage.submit_ms is None else stage.submit_ms


class _Builder:
    """Adds stages in order of submission, and the driver's intervals between them."""

    def __init__(
        self,
        stages: Sequence[StageRun],
        start_ms: float,
        end_ms: float,
        stated: Mapping[tuple[str, str], Dependency],
        rules: DagRules,
    ) -> None:
        self.epsilon_ms = rules.epsilon_ms
        self.stages = tuple(stages)
        self.start_ms, self.end_ms = start_ms, end_ms
        self.barriers = None if rules.barriers is None else rules.barriers(stages)
        self.driver, self.word = rules.driver, rules.stage
        self.stated: dict[str, dict[str, Dependency]] = {}
        for (source, target), dependency in stated.items():
            self.stated.setdefault(target, {})[source] = dependency
        self.by_id = {each.stage_id: each for each in stages}
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str], Dependency] = {}
        self.intervals = 0
        self.latest: dict[tuple[str, ...], str] = {}  # by what a submission waited for, the interval that led to it

    def stated_sources(self, stage: StageRun) -> dict[str, Dependency]:
        """The stated dependencies of a stage on stages that had ended by its submission."""
        limit_ms = _released(stage) + self.epsilon_ms
        return {
            source: dependency
            for source, dependency in self.stated.get(stage.stage_id, {}).items()
            if dependency.kind != "pipelined" and source in self.nodes and self.by_id[source].end_ms <= limit_ms
        }

    def all_sources(self, stage: StageRun) -> dict[str, Dependency]:
        """The dependencies of a submitted stage: those the trace states, and those the framework infers."""
        known = self.stated_sources(stage)
        if self.barriers is None:
            return known
        inferred = self.barriers.sources(
            stage, _released(stage) + self.epsilon_ms, {source: each.why for source, each in known.items()}
        )
        found = {**{source: Dependency("barrier", why) for source, why in inferred.items()}, **known}
        self.barriers.add(stage, {source: each.why for source, each in found.items()})
        return found

    def add(self, index: int, sources: dict[str, Dependency], released_ms: float, *, held: bool = False) -> None:
        """Add a stage after the driver's interval that released it; a stage of a pipeline needs no interval.

        If it is `held`, an interval follows in which it waited for slots that no replay has."""
        stage = self.stages[index]
        start_ms = _clip(stage.start_ms, self.start_ms, self.end_ms)
        end_ms = _clip(stage.end_ms, start_ms, self.end_ms)
        flows = any(each.kind == "pipelined" for each in self.stated.get(stage.stage_id, {}).values())
        if sources or not flows:
            released_ms = _clip(released_ms, self.start_ms, start_ms)
            gate, gate_end = self._driver_until(sources, released_ms, start_ms, stage)
            if held and start_ms > gate_end:
                wait = self._interval(gate_end, start_ms, _waits(stage.name), stage.scope_id, held=True)
                self.edges[gate, wait] = COORDINATED
                gate, gate_end = wait, start_ms
            start_ms = max(start_ms, gate_end)
            self.edges[gate, stage.stage_id] = COORDINATED
        self.nodes[stage.stage_id] = Node(
            stage.stage_id, stage.name, start_ms, max(end_ms, start_ms), index, stage.scope_id
        )

    def _driver_until(
        self, sources: dict[str, Dependency], released_ms: float, start_ms: float, stage: StageRun
    ) -> tuple[str, float]:
        """The interval that releases a stage, and its end; stages that waited for the same stages share it."""
        key = tuple(sorted(sources))
        previous = self.latest.get(key)
        if previous is not None and self.nodes[previous].end_ms > start_ms + self.epsilon_ms:
            previous = None  # submitted later, but started before the end of that interval
        if previous is not None:
            begin = self.nodes[previous].end_ms
            if released_ms <= begin + self.epsilon_ms:
                return previous, begin
            edges = {previous: COORDINATED}
        else:
            begin = max((self.nodes[source].end_ms for source in sources), default=self.start_ms)
            edges = dict(sources)
        name = f"before {stage.name}" if sources or previous else f"start, up to the first {self.word}"
        moved = next((each.resource for each in sources.values() if each.kind == "transfer"), None)
        interval = self._interval(begin, max(begin, released_ms), name, stage.scope_id, moved)
        for source, dependency in edges.items():
            self.edges[source, interval] = dependency
        self.latest[key] = interval
        return interval, self.nodes[interval].end_ms

    def _interval(
        self,
        begin: float,
        end: float,
        name: str,
        scope_id: str | None,
        resource: str | None = None,
        *,
        held: bool = False,
    ) -> str:
        node_id = f"{self.driver}:{self.intervals}"
        node = Node(node_id, name, begin, max(begin, end), None, scope_id, resource, held)
        self.nodes[node.node_id] = node
        self.intervals += 1
        return node.node_id

    def finish(self) -> Dag:
        for target, sources in self.stated.items():
            for source, dependency in sources.items():
                if dependency.kind == "pipelined" and source in self.nodes and target in self.nodes:
                    self.edges[source, target] = dependency
        last = max((node.end_ms for node in self.nodes.values()), default=self.start_ms)
        closing = self._interval(min(last, self.end_ms), self.end_ms, f"after the last {self.word}", None)
        has_successor = {source for source, _ in self.edges}
        for node_id in list(self.nodes):
            if node_id != closing and node_id not in has_successor:
                self.edges[node_id, closing] = COORDINATED
        return Dag(self.start_ms, self.end_ms, self.stages, self.nodes, self.edges)


def with_unstarted(dag: Dag, unstarted: Sequence[Unstarted]) -> Dag:
    """The DAG with an interval for each stage none of whose tasks ran, after all others: it waited for slots."""
    nodes, edges = dict(dag.nodes), dict(dag.edges)
    last = nodes[list(nodes)[-1]]  # of the driver, after all stages
    driver = last.node_id.partition(":")[0]
    for each in sorted(unstarted, key=lambda each: each.start_ms):
        begin, end = max(each.start_ms, last.start_ms), min(each.end_ms, dag.end_ms)
        if end <= begin:
            continue
        number = sum(node.kind == "driver" for node in nodes.values())
        wait = Node(f"{driver}:{number}", _waits(each.name), begin, end, held=True)
        rest = Node(f"{driver}:{number + 1}", last.name, end, dag.end_ms)
        nodes[last.node_id] = replace(last, name=f"before {each.name}", end_ms=begin)
        nodes |= {wait.node_id: wait, rest.node_id: rest}
        edges |= {(last.node_id, wait.node_id): COORDINATED, (wait.node_id, rest.node_id): COORDINATED}
        last = rest
    return replace(dag, nodes=nodes, edges=edges)


def _waits(stage: str) -> str:
    return f"{stage} waits for slots"


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
