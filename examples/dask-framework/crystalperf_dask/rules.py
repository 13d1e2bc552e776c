"""What is taken for granted of a run of Dask, and what its user can do."""

from __future__ import annotations

from typing import Any

from crystalperf.plugin import Advisor, Assumption
from crystalperf_dask.assumptions import ComputingTogether, ThreadsByProfile
from crystalperf_dask.trace import PROFILED


def assumptions(connection: Any, execution: Any) -> list[Assumption]:
    """Where the time of tasks is from."""
    return [ThreadsByProfile(), ComputingTogether()] if PROFILED in execution.properties else []


def idle(detail: Any) -> str | None:
    """What to do about threads without work while a step ran: nothing about a single task, others ran beside it."""
    return None if detail.facts.units == 1 else "more, smaller partitions would use the idle threads"


def unmeasured(connection: Any) -> str | None:
    """What to record beside a report alone."""
    found = connection.execute("SELECT 1 FROM import_stats WHERE name = 'no dependencies'").fetchone()
    return None if found is None else "Dump the cluster's state too: a report does not say what tasks waited for"


RULES = Advisor(idle=idle, assumptions=assumptions, unmeasured=unmeasured)
