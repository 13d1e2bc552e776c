"""Scheduling policies: how a framework assigns slots to the units of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from crystalperf.query.execution.dag import Dag, GroupRun


@dataclass(frozen=True)
class Waiting:
    """A group with units to launch, as a scheduler sees it."""

    group: GroupRun
    waiting: int
    running: int


Order = Callable[[Sequence[Waiting]], int]
"""The group with waiting units that launches the next one, as a position in the sequence."""


def by_rank(ready: Sequence[Waiting]) -> int:
    """First in, first out: the group of the lowest rank."""
    return min(range(len(ready)), key=lambda i: ready[i].group.rank)


def fair_share(ready: Sequence[Waiting]) -> int:
    """Equal shares: the group with the fewest running units first (queues of equal weight, no minimum share)."""
    return min(range(len(ready)), key=lambda i: (ready[i].running, ready[i].group.rank))


@dataclass(frozen=True)
class LongestFirst:
    """Longest remaining path first; `left_ms` is that path by group id, the group's own length included."""

    left_ms: Mapping[str, float]

    def __call__(self, ready: Sequence[Waiting]) -> int:
        def most(position: int) -> tuple[float, int]:
            group = ready[position].group
            return self.left_ms[group.group_id], -group.rank

        return max(range(len(ready)), key=most)


def left_behind(dag: Dag) -> dict[str, float]:
    """By node, the longest path from its start to the end, ms, with recorded lengths of nodes."""
    import networkx as nx  # takes as long to import as everything else, and this request is rare

    graph = dag.graph()
    found: dict[str, float] = {}
    for node_id in reversed(list(nx.topological_sort(graph))):
        node = dag.nodes[node_id]
        behind = max((found[each] for each in graph.successors(node_id)), default=0.0)
        found[node_id] = node.end_ms - node.start_ms + behind
    return found


@dataclass(frozen=True)
class Policy:
    """How a framework assigns slots: which group goes first, and how long its units wait for the host of their data
    (delay scheduling).

    A unit that is AT_HOME on a busy host lets other units go first, and runs elsewhere once its group has waited for
    `patience_ms`; a unit that ran ELSEWHERE had waited for that.  A group's wait starts when slots are left idle for
    it or, if the wait `restarts`, when it last launched a unit at home.  Idle slots are offered to it every
    `offers_ms`, so on average it continues half of that later.

    If workers come `on_demand`, none is idle while another can run a unit.
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
    return replace(policy, order=orders[name] if name in orders else LongestFirst(left_behind(dag)))
