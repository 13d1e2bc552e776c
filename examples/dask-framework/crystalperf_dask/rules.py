"""What is taken for granted of a run of Dask, and what its user can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from crystalperf.plugin import Advice, Advisor, Assumption, Recommendation, Saving
from crystalperf_dask.assumptions import ComputingTogether, ThreadsByProfile
from crystalperf_dask.trace import PROFILED


def assumptions(connection: Any, execution: Any) -> list[Assumption]:
    """Where the time of tasks is from."""
    return [ThreadsByProfile(), ComputingTogether()] if PROFILED in execution.properties else []


@dataclass(frozen=True)
class MorePartitions(Advice):
    """More, smaller partitions, for threads had no work while a step ran."""

    kind: ClassVar[str] = "more-partitions"


@dataclass(frozen=True, kw_only=True)
class DumpState(Recommendation):
    """Dump the state of the cluster besides a report, which does not say what tasks waited for."""

    kind: ClassVar[str] = "dump-state"


def idle_advice(detail: Any) -> MorePartitions | None:
    """What to do about threads without work while a step ran: nothing about a single task, for others ran then."""
    return None if detail.facts.units == 1 else MorePartitions()


def required_recording(connection: Any) -> DumpState | None:
    """What to record besides a report alone."""
    found = connection.execute("SELECT 1 FROM import_stats WHERE name = 'no dependencies'").fetchone()
    return None if found is None else DumpState(price="record", because="measure", saving=Saving("measured"))


RULES = Advisor(idle_advice=idle_advice, assumptions=assumptions, required_recording=required_recording)
