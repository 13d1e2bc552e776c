"""What a TaskManager's other threads did, and what a stream's answer lacks or rests on, a sentence each."""

from __future__ import annotations

import duckdb

from crystalperf.query import sql
from crystalperf.query.frameworks.flink.advise import lacking
from crystalperf.query.frameworks.flink.frames import helper
from crystalperf.query.frameworks.flink.held import asking
from crystalperf.query.model.execution import Execution
from crystalperf.query.model.flow import Flow
from crystalperf.query.model.kinds import RUNNING

LEAST_MS = 100.0
"""Helpers that were seen running for less are not worth a word."""


def told(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[str]:
    """Helper threads by what they do; why a stream's latency is not told, and what was taken for its timeout."""
    found = _helpers(connection, execution)
    stream = connection.execute("SELECT coalesce(properties['stream'], '') = 'true' FROM runs").fetchone()
    if stream is not None and stream[0] and execution.flow is None:
        found.append(_lacking(connection))
    assumed = () if execution.flow is None else [each for each in execution.flow.hops if each.is_due_assumed]
    if assumed:
        found.append(
            f"Buffers are taken to be due after {max(each.due_ms for each in assumed):.0f} ms, as Flink has it by"
            " itself: no execution.buffer-timeout.interval was collected, and too few records came to tell, or all in"
            " bursts"
        )
    if execution.flow is not None:
        found += _requests(connection, execution.flow)
    return found


def _requests(connection: duckdb.DuckDBPyConnection, flow: Flow) -> list[str]:
    """How long asynchronous requests take, by vertex, or that nothing tells that."""
    asks, _ = asking(connection)
    found = [
        f"Operators of {each.name} hold a record for {each.held_ms:.1f} ms in the mean, by those that went in and had"
        " not come out, as for answers of asynchronous requests; at any other rate they are taken to last as long, for"
        " nothing tells what answers them"
        for each in flow.stations
        if each.held_ms > 0
    ]
    if unknown := sorted(each.name for each in flow.stations if each.id in asks and not each.held_ms):
        found.append(
            f"Asynchronous requests are made in {', '.join(unknown)}: nothing that is collected tells how long their"
            " answers take, and each record's time is longer by that"
        )
    return found


def _lacking(connection: duckdb.DuckDBPyConnection) -> str:
    """What a stream lacks for an answer: metrics, an exchange at which records are counted, or some more time."""
    what = lacking(connection)
    if what == "order":
        return (
            "Records of this stream go round in it (an iteration), which no flow does here: neither its rate nor its"
            " latency is told"
        )
    if what == "exchanges":
        return (
            "This stream's metrics were collected, but it is one chain: Flink counts records that vertices exchange, so"
            " neither its rate nor its latency can be told; a chain that is cut once, by `disableChaining()` on the"
            " operator behind the source, tells both"
        )
    if what == "time":
        return (
            "This stream's metrics were collected, but not for half a minute without a restart and with the same"
            " subtasks, so no latency can be predicted: collect them for longer"
        )
    return (
        "This job is a stream, but nothing tells its sources' rate over time, so no latency can be predicted:"
        " `crystalperf collect flink URL` while it runs keeps what that takes, at least half a minute of it"
    )


def _helpers(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[str]:
    """By their measured CPU time; where no recording has that, by the time that samples saw them running."""
    scope = [execution.scope.start_ms, execution.scope.end_ms]
    rows = connection.execute(
        "SELECT thread, sum(cpu_ms) FROM thread_loads WHERE unit_id IS NULL AND end_ms BETWEEN ? AND ? GROUP BY thread",
        scope,
    ).fetchall()
    what = "used the CPU"
    if not rows:
        what = "were seen running"
        question = sql.text("helpers", __package__)
        asked = {"start": scope[0], "end": scope[1], "kinds": [RUNNING, "execution", "native"]}
        rows = connection.execute(question, asked).fetchall()
    sums: dict[str, float] = {}
    for thread, ms in rows:
        if (does := helper(thread)) is not None:
            sums[does] = sums.get(does, 0.0) + ms
    worth = sorted(((ms, does) for does, ms in sums.items() if ms >= LEAST_MS), reverse=True)
    if not worth:
        return []
    listed = ", ".join(f"{does} {ms / 1e3:.1f} s" for ms, does in worth)
    return [f"Beside subtasks, threads of TaskManagers {what}: {listed}"]
