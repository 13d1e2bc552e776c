"""Assumptions about a run of Dask, and recommendations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from crystalperf.plugin import Advice, Advisor, Assumption, Recommendation, Saving
from crystalperf_dask.assumptions import ComputingTogether, ThreadsByProfile
from crystalperf_dask.trace import PROFILED


def assumptions(connection: Any, execution: Any) -> list[Assumption]:
    """The sources of the tasks' resource times."""
    return [ThreadsByProfile(), ComputingTogether()] if PROFILED in execution.properties else []


@dataclass(frozen=True)
class MorePartitions(Advice):
    """More, smaller partitions, because threads were idle while a step ran."""

    kind: ClassVar[str] = "more-partitions"


@dataclass(frozen=True, kw_only=True)
class DumpState(Recommendation):
    """Dump the cluster's state in addition to a report, which lacks the tasks' dependencies."""

    kind: ClassVar[str] = "dump-state"


def idle_advice(detail: Any) -> MorePartitions | None:
    """The recommendation for idle threads during a step; none for a single task, because other tasks ran then."""
    return None if detail.facts.tasks == 1 else MorePartitions()


def required_recording(connection: Any) -> DumpState | None:
    """The recommendation to record more than a report."""
    found = connection.execute("SELECT 1 FROM import_stats WHERE name = 'no dependencies'").fetchone()
    return None if found is None else DumpState(price="record", because="measure", saving=Saving("measured"))


RULES = Advisor(idle_advice=idle_advice, assumptions=assumptions, required_recording=required_recording)
