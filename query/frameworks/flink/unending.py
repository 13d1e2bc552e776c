"""What is told of a stream that runs until it is stopped, where no metrics were collected: what its vertices were busy.

How long such a stream took is no answer.  Flink sums up how long each subtask was busy, idle and back-pressured since
it began, from 1.13 on; that says whether it kept up with its records, and else which vertex held it up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import duckdb

from crystalperf.query import sql
from crystalperf.query.frameworks.flink.advise import LOOP
from crystalperf.query.frameworks.flink.planning import STOPPED
from crystalperf.query.model.execution import Execution

FULL = 0.95
"""A vertex with a subtask that is busy for this share of its time takes no more records."""

WAITING = 0.9
"""Sources that are idle for this share of their time wait for records."""

HELD = 0.2
"""Sources that are back-pressured for this share of their time are held up."""


@dataclass(frozen=True)
class _Vertex:
    """The share of its time that its busiest subtask was busy, and that all of them were idle and back-pressured."""

    name: str
    is_source: bool
    busy: float
    idle: float
    pressed: float


def told(connection: duckdb.DuckDBPyConnection, execution: Execution) -> str | None:
    """What is said first of a stream without an end of its own; None of any other job, and where it was measured."""
    if STOPPED not in execution.properties or execution.flow is not None:
        return None
    first_ms = connection.execute("SELECT min(launch_ms) FROM units").fetchall()[0][0]
    if first_ms is None or first_ms > execution.runtime_ms / 2:  # it waited for slots for longer than it ran
        return None
    rows = connection.execute(sql.text("unending", __package__)).fetchall()
    found = [
        _Vertex(name, source, *(min(each or 0.0, 1.0) for each in (busy, idle, held)))
        for name, source, busy, idle, held in rows
        if busy is not None and not name.startswith(LOOP)
    ]
    if not found:
        return (
            "What holds this stream's records up is not known: nothing here says how busy its vertices were. It goes on"
            " until it is stopped, so how long it took says nothing."
        )
    busiest = max(found, key=lambda each: each.busy)
    sources = [each for each in found if each.is_source]
    if busiest.busy >= FULL:
        held = max((each.pressed for each in sources), default=0.0)
        what = f"{busiest.name} was busy for {100 * busiest.busy:.0f} % of its time"
        if held >= HELD:
            return f"{what} and holds this stream up: its sources were back-pressured for {100 * held:.0f} % of theirs."
        return f"{what}, so this stream takes few more records than it gets."
    if sources and all(each.idle >= WAITING for each in sources):
        least = min(each.idle for each in sources)
        return f"This stream waits for records: its sources were idle for {100 * least:.0f} % of their time."
    whose = "" if len(found) == len(rows) else f" of the {len(found)} of its {len(rows)} vertices that were measured"
    return (
        f"This stream kept up with its records: none{whose or ' of its vertices'} was busy for more than"
        f" {max(math.ceil(100 * busiest.busy), 1)} % of its time ({busiest.name})."
    )
