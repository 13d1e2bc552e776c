"""How a framework gives out slots, as values: what schedulers are made of."""

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
"""Which of the groups with waiting units launches next: a position in the sequence."""


def by_rank(ready: Sequence[Waiting]) -> int:
    """First in, first out: the group of the lowest rank."""
    return min(range(len(ready)), key=lambda i: ready[i].group.rank)


def fair_share(ready: Sequence[Waiting]) -> int:
    """Equal shares: the group with the fewest running units first (queues of equal weight, no minimum share)."""
    return min(range(len(ready)), key=lambda i: (ready[i].running, ready[i].group.rank))


@dataclass(frozen=True)
class LongestFirst:
    """The group behind which most is left to do goes first; `left_ms` by group id, its own length included."""

    left_ms: Mapping[str, float]

    def __call__(self, ready: Sequence[Waiting]) -> int:
        def most(position: int) -> tuple[float, int]:
            group = ready[position].group
            return self.left_ms[group.group_id], -group.rank

        return max(range(len(ready)), key=most)


def left_behind(dag: Dag) -> dict[str, float]:
    """By node, the longest way from its start to the end, ms, each node as long as it was in the run."""
    import networkx as nx  # takes as long to import as all the rest, and this question is rare

    graph = dag.graph()
    found: dict[str, float] = {}
    for node_id in reversed(list(nx.topological_sort(graph))):
        node = dag.nodes[node_id]
        behind = max((found[each] for each in graph.successors(node_id)), default=0.0)
        found[node_id] = node.end_ms - node.start_ms + behind
    return found


@dataclass(frozen=True)
class Policy:
    """How a framework gives out slots: which group goes first, and how long its units wait for the host of their data.

    A unit that is AT_HOME on a busy host lets others go first, and goes elsewhere once its group has waited for
    `patience_ms`; one that ran ELSEWHERE had waited for that.  A group waits since slots have been left idle for its
    sake, or, where that `restarts`, since it last launched a unit at home.  Slots that stay idle are offered to it
    every `offers_ms`, so that it goes on half of that later in the mean.

    Whoever gets its workers `on_demand` has none that runs nothing while another could.
    """

    order: Order = by_rank
    patience_ms: float = 0.0
    restarts: bool = False
    offers_ms: float = 0.0
    on_demand: bool = False


FIRST_COME = Policy()


def chosen(name: str, dag: Dag, policy: Policy) -> Policy:
    """The policy of a name that a user chooses, fifo, fair or longest, which waits as another does."""
    orders = {"fifo": by_rank, "fair": fair_share}
    return replace(policy, order=orders[name] if name in orders else LongestFirst(left_behind(dag)))
