"""Load of an unbounded stream without collected metrics: how busy its vertices were.

The runtime of such a stream says nothing about its performance.  From 1.13 on, Flink sums up how long each subtask
was busy, idle and back-pressured since its start.  From these sums CrystalPerf derives whether the stream kept up with
its records, and if not, which vertex is the bottleneck.
"""

from __future__ import annotations

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.flink.advise import LOOP
from crystalperf.query.frameworks.flink.planning import STOPPED
from crystalperf.query.frameworks.flink.remarks import FullVertex, IdleSources, KeptUp, UnknownLoad
from crystalperf.query.results.remarks import Remark

FULL = 0.95
"""A vertex with a subtask that is busy for this share of its time is at capacity."""

WAITING = 0.9
"""Sources that are idle for this share of their time wait for records."""

HELD = 0.2
"""Sources that are back-pressured for this share of their time are slowed down."""


@frozen
class _Vertex:
    """Shares of time: its busiest subtask was busy, all of its subtasks were idle and back-pressured."""

    name: str
    is_source: bool
    busy: float
    idle: float
    pressed: float


def load(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Remark | None:
    """The first remark about an unbounded stream; None for any other job, and if metrics were collected."""
    if STOPPED not in execution.properties or execution.stream is not None:
        return None
    first_ms = connection.execute("SELECT min(launch_ms) FROM tasks").fetchall()[0][0]
    if first_ms is None or first_ms > execution.runtime_ms / 2:  # it waited for slots for longer than it ran
        return None
    rows = connection.execute(sql.text("unbounded", __package__)).fetchall()
    found = [
        _Vertex(name, source, *(min(each or 0.0, 1.0) for each in (busy, idle, held)))
        for name, source, busy, idle, held in rows
        if busy is not None and not name.startswith(LOOP)
    ]
    if not found:
        return UnknownLoad()
    busiest = max(found, key=lambda each: each.busy)
    sources = [each for each in found if each.is_source]
    if busiest.busy >= FULL:
        held = max((each.pressed for each in sources), default=0.0)
        return FullVertex(busiest.name, busiest.busy, held if held >= HELD else None)
    if sources and all(each.idle >= WAITING for each in sources):
        return IdleSources(min(each.idle for each in sources))
    return KeptUp(busiest.name, busiest.busy, len(found), len(rows))
