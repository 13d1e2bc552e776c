"""What is taken for granted of a run of Dask, and what its user can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from crystalperf.plugin import Advice, Advisor, Recommendation, Saving, Sentences, Words
from crystalperf_dask.trace import PROFILED


def assumptions(connection: Any, execution: Any) -> list[str]:
    """Where the time of tasks is from."""
    if PROFILED not in execution.properties:
        return []
    return [
        "what tasks' threads did is taken from Dask's own profile: tasks of one name are alike, and a thread that does"
        " not wait in Python's own modules computes",
        "numpy, pandas and the like compute beside other threads of their worker; of other Python code only one thread"
        " of a worker runs at a time",
    ]


@dataclass(frozen=True)
class MorePartitions(Advice):
    """More, smaller partitions, for threads had no work while a step ran."""

    kind: ClassVar[str] = "more-partitions"


@dataclass(frozen=True, kw_only=True)
class DumpState(Recommendation):
    """Dump the state of the cluster besides a report, which does not say what tasks waited for."""

    kind: ClassVar[str] = "dump-state"


SENTENCES = Sentences()


@SENTENCES.of(MorePartitions)
def more_partitions(_advice: MorePartitions, _words: Words) -> str:
    return "more, smaller partitions would use the idle threads"


@SENTENCES.of(DumpState)
def dump_state(_found: DumpState, _words: Words) -> str:
    return "Dump the cluster's state too: a report does not say what tasks waited for"


def idle(detail: Any) -> MorePartitions | None:
    """What to do about threads without work while a step ran: nothing about a single task, for others ran then."""
    return None if detail.facts.units == 1 else MorePartitions()


def unmeasured(connection: Any) -> DumpState | None:
    """What to record besides a report alone."""
    found = connection.execute("SELECT 1 FROM import_stats WHERE name = 'no dependencies'").fetchone()
    return None if found is None else DumpState(price="record", because="measure", saving=Saving("measured"))


RULES = Advisor(idle=idle, assumptions=assumptions, unmeasured=unmeasured, sentences=SENTENCES)
