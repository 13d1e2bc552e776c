"""Scheduling policies: how a framework assigns slots to the tasks of stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.dag import Dag, StageRun


@frozen
class Waiting:
    """A stage with tasks to launch, as a scheduler sees it."""

    stage: StageRun
    waiting: int
    running: int


Order = Callable[[Sequence[Waiting]], int]
"""The stage with waiting tasks that launches the next one, as a position in the sequence."""


def by_rank(ready: Sequence[Waiting]) -> int:
    """First in, first out: the stage with the lowest `priority`."""
    return min(range(len(ready)), key=lambda i: ready[i].stage.priority)


def fair_share(ready: Sequence[Waiting]) -> int:
    """Equal shares: the stage with the fewest running tasks first (queues of equal weight, no minimum share)."""
    return min(range(len(ready)), key=lambda i: (ready[i].running, ready[i].stage.priority))


@frozen
class LongestFirst:
    """Longest remaining path first; `left_ms` is that path by stage id, the stage's own length included."""

    left_ms: Mapping[str, float]

    def __call__(self, ready: Sequence[Waiting]) -> int:
        def most(position: int) -> tuple[float, int]:
            stage = ready[position].stage
            return self.left_ms[stage.stage_id], -stage.priority

        return max(range(len(ready)), key=most)


def remaining_path_ms(dag: Dag) -> dict[str, float]:
    """By node, the longest path from its start to the end, ms, with recorded lengths of nodes."""
    import networkx as nx  # takes as long to import as everything else, and this request is rare

    graph = dag.graph()
    found: dict[str, float] = {}
    for node_id in reversed(list(nx.topological_sort(graph))):
        node = dag.nodes[node_id]
        behind = max((found[each] for each in graph.successors(node_id)), default=0.0)
        found[node_id] = node.end_ms - node.start_ms + behind
    return found


@frozen
class Policy:
    """How a framework assigns slots: which stage goes first, and how long its tasks wait for the host of their data
    (delay scheduling).

    A task that is AT_HOME on a busy host lets other tasks go first, and runs elsewhere once its stage has waited for
    `patience_ms`; a task that ran ELSEWHERE had waited for that.  A stage's wait starts when slots are left idle for
    it or, if the wait `restarts`, when it last launched a task at home.  Idle slots are offered to it every
    `offers_ms`, so on average it continues half of that later.

    If workers come `on_demand`, none is idle while another can run a task.
    """

    order: Order = by_rank
    patience_ms: float = 0.0
    restarts: bool = False
    offers_ms: float = 0.0
    on_demand: bool = False


FIRST_COME = Policy()


def chosen(name: str, dag: Dag, policy: Policy) -> Policy:
    """The policy that a user chooses by name, fifo, fair or longest; it waits for hosts as `policy` does."""
    orders = {"fifo": by_rank, "fair": fair_share}
    return replace(policy, order=orders[name] if name in orders else LongestFirst(remaining_path_ms(dag)))
