"""How a framework gives out slots, as values: what schedulers are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from query.model.dag import Group


@dataclass(frozen=True)
class Waiting:
    """A group with units to launch, as a scheduler sees it."""

    group: Group
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
class Policy:
    """How a framework gives out slots: which group goes first, and how long its units wait for the host of their data.

    A unit that is AT_HOME on a busy host lets others go first, and goes elsewhere once slots have been left idle for
    its sake for `patience_ms`; one that ran ELSEWHERE had waited for that.
    """

    order: Order = by_rank
    patience_ms: float = 0.0


FIRST_COME = Policy()
