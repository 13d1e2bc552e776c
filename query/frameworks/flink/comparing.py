"""Flink's part in comparing runs: streams whose metrics were not collected, by the summed times of their subtasks."""

from __future__ import annotations

import duckdb

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks import Comparer, StreamAccount
from crystalperf.query.frameworks.flink.advise import LOOP
from crystalperf.query.frameworks.flink.planning import STOPPED
from crystalperf.query.frameworks.flink.unbounded import FULL
from crystalperf.query.results.stream_comparison import StationSide, StreamSide


def stream(connection: duckdb.DuckDBPyConnection, execution: Execution) -> StreamAccount | None:
    """How busy an unbounded stream without collected metrics was; None for any other job."""
    if STOPPED not in execution.properties:
        return None
    tasks = dict(connection.execute("SELECT name, task_count FROM stages").fetchall())
    stations = {}
    for name, _, *shares in connection.execute(sql.text("unbounded", __package__)).fetchall():
        busy, idle, blocked = (None if each is None else min(each, 1.0) for each in shares)
        if not name.startswith(LOOP):
            mean = busy if idle is None or blocked is None else max(1.0 - idle - blocked, 0.0)
            stations[name] = StationSide(tasks[name], None, mean or 0.0, busy or 0.0, blocked or 0.0, idle or 0.0, None)
    busiest = max(stations, key=lambda name: stations[name].busiest_share, default="")
    full = bool(stations) and stations[busiest].busiest_share >= FULL
    known = any(each.busy_share or each.idle_share for each in stations.values())
    figures = StreamSide(None, None, None, None, not full if known else None, None, busiest if full else "")
    return StreamAccount(None, figures, stations, {})


COMPARER = Comparer(
    settings={
        "parallelism": ("slots",),
        "taskmanager.": ("slots", "memory"),
        "execution.": ("compute",),
        "state.": ("compute",),
    },
    stream=stream,
)
