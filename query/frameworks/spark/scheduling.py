"""How Spark gives out slots, and what its driver waits for."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from query.frameworks.spark.settings import duration_ms
from query.model.dag import Group
from query.model.policy import Policy, by_rank, fair_share

LOCALITY_WAIT_MS = 3000.0
"""Spark's default of spark.locality.wait."""


def schedule(scheduler: str | None, properties: Mapping[str, str]) -> Policy:
    """How Spark gives out slots: FIFO unless the run says FAIR; tasks wait for the host of their data
    (spark.locality.wait, 3 s)."""
    patience_ms = duration_ms(properties.get("spark.locality.wait.node") or properties.get("spark.locality.wait"))
    order = fair_share if scheduler == "FAIR" else by_rank
    return Policy(order, LOCALITY_WAIT_MS if patience_ms is None else patience_ms)


class JobBarriers:
    """What the driver waited for before it submitted a stage that reads no shuffled rows of another.

    Such a stage opens a job.  The program, or the adaptive planner, submitted it after what had ended by then in the
    same query; across queries only the order of submission is known.
    """

    def __init__(self) -> None:
        self._of_query: dict[str, list[Group]] = {}
        self._waited_for: dict[str, frozenset[str]] = {}
        self._open: list[tuple[float, str]] = []  # heap of ends not yet passed by a submission
        self._latest: str | None = None

    def sources(self, group: Group, limit_ms: float, known: Mapping[str, str]) -> dict[str, str]:
        while self._open and self._open[0][0] <= limit_ms:
            self._latest = heapq.heappop(self._open)[1]
        same = [each for each in self._of_query.get(group.scope_id or "", ()) if each.end_ms <= limit_ms]
        awaited = frozenset[str]().union(*(self._waited_for[each.group_id] for each in same))
        found = {each.group_id: "job barrier" for each in same if each.group_id not in awaited}
        if not found and not known and self._latest is not None:
            return {self._latest: "submission order"}
        return found

    def add(self, group: Group, sources: Mapping[str, str]) -> None:
        self._waited_for[group.group_id] = frozenset(sources)
        if group.scope_id is not None:
            self._of_query.setdefault(group.scope_id, []).append(group)
        heapq.heappush(self._open, (group.end_ms, group.group_id))
