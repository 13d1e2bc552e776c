"""Resource profiles: what executors have and tasks request, and the slots of executors for the tasks of a profile.

Spark runs the tasks of a profile on executors of that profile.  A profile that requests nothing of executors uses those
that there are, unless dynamic allocation starts others (ResourceProfileManager.canBeScheduled).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.spark.log.events import ResourceProfile
from crystalperf.query.frameworks.spark.settings import flag, number

_MAX_SLOTS = (1 << 31) - 1
_MIB = 1 << 20
_IN_MIB = frozenset(["memory", "memoryOverhead", "offHeap", "pyspark.memory"])
"""Requests of executors whose amounts are in MiB."""
_MOST_REQUESTS = 100
"""Kinds of resources of one profile that are kept."""


@frozen
class Profiles:
    """The resource profiles of a run, by id, and its settings."""

    known: Mapping[int, ResourceProfile]
    settings: Mapping[str, str]

    def slots(self, cores: float, executor: int, task: int) -> float:
        """Concurrent tasks of profile `task` on an executor of profile `executor` with so many cores; 0 if Spark runs
        none there."""
        if not self._runs_on(task, executor):
            return 0.0
        requested = self._task_requests(task)
        if not requested:
            requested = self._task_requests(0)
        per_task = requested.pop("cpus", None) or number(self.settings.get("spark.task.cpus")) or 1.0
        found = cores // per_task if per_task > 0 else cores
        profile = self.known.get(executor)
        given = {name: each.amount for name, each in (profile.executor or {}).items()} if profile else {}
        for name, amount in requested.items():
            has = given.get(name)
            if amount and has and amount > 0:
                # An amount below 1 is a share: 0.25 of a device means four tasks on each.
                found = min(found, has * (1.0 / amount) if amount < 1 else has // amount)
        return float(int(min(found, _MAX_SLOTS)))

    def _runs_on(self, task: int, executor: int) -> bool:
        if task == executor:
            return True
        profile = self.known.get(task)
        of_tasks_only = profile is not None and not profile.executor
        return of_tasks_only and not flag(self.settings.get("spark.dynamicAllocation.enabled"))

    def _task_requests(self, profile_id: int) -> dict[str, float | None]:
        profile = self.known.get(profile_id)
        return {name: each.amount for name, each in (profile.task or {}).items()} if profile else {}

    def rows(self) -> Iterator[tuple[int, str, str, float]]:
        """(profile, executor or task, resource, amount) of each request; amounts of memory in bytes."""
        for profile_id, profile in sorted(self.known.items()):
            for who, requests in (("executor", profile.executor), ("task", profile.task)):
                for name, each in list((requests or {}).items())[:_MOST_REQUESTS]:
                    if each.amount is not None and 0 <= each.amount < 2**53:
                        yield profile_id, who, name[:100], each.amount * (_MIB if name in _IN_MIB else 1)
