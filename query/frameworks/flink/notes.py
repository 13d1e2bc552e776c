"""Remarks on a TaskManager's helper threads, and on what a stream's analysis lacks or assumes."""

from __future__ import annotations

import duckdb

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.stream import Stream
from crystalperf.query.frameworks.flink.advise import lacking
from crystalperf.query.frameworks.flink.frames import helper
from crystalperf.query.frameworks.flink.held import asynchronous_stages
from crystalperf.query.frameworks.flink.remarks import (
    AssumedTimeout,
    HeldRecords,
    Helper,
    Helpers,
    NoFlow,
    UntimedRequests,
)
from crystalperf.query.results.remarks import Remark
from crystalperf.query.trace.sample_kinds import RUNNING

MIN_MS = 100.0
"""Helpers that ran for less are not reported."""


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """Helper threads by their task; why a stream's latency is unknown, and its assumed buffer timeout."""
    found: list[Remark] = [*_helpers(connection, execution)]
    stream = connection.execute("SELECT coalesce(properties['stream'], '') = 'true' FROM runs").fetchone()
    if stream is not None and stream[0] and execution.stream is None:
        found.append(NoFlow(lacking(connection)))
    assumed = () if execution.stream is None else [each for each in execution.stream.hops if each.is_due_assumed]
    if assumed:
        found.append(AssumedTimeout(max(each.due_ms for each in assumed)))
    if execution.stream is not None:
        found += _requests(connection, execution.stream)
    return found


def _requests(connection: duckdb.DuckDBPyConnection, stream: Stream) -> list[Remark]:
    """How long asynchronous requests take, by vertex, or that it is unknown."""
    asynchronous, _ = asynchronous_stages(connection)
    found: list[Remark] = [
        HeldRecords(each.name, each.external_wait_ms) for each in stream.stations if each.external_wait_ms > 0
    ]
    if unknown := sorted(
        each.name for each in stream.stations if each.id in asynchronous and not each.external_wait_ms
    ):
        found.append(UntimedRequests(tuple(unknown)))
    return found


def _helpers(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Helpers]:
    """By measured CPU time; if no recording has it, by the time in which samples saw them running."""
    scope = [execution.scope.start_ms, execution.scope.end_ms]
    rows = connection.execute(
        "SELECT thread, sum(cpu_ms) FROM thread_loads WHERE task_id IS NULL AND end_ms BETWEEN ? AND ? GROUP BY thread",
        scope,
    ).fetchall()
    is_cpu_time = bool(rows)
    if not rows:
        question = sql.text("helpers", __package__)
        parameters = {"start": scope[0], "end": scope[1], "kinds": [RUNNING, "execution", "native"]}
        rows = connection.execute(question, parameters).fetchall()
    sums: dict[str, float] = {}
    for thread, ms in rows:
        if (does := helper(thread)) is not None:
            sums[does] = sums.get(does, 0.0) + ms
    worth = sorted(((ms, does) for does, ms in sums.items() if ms >= MIN_MS), reverse=True)
    if not worth:
        return []
    return [Helpers(is_cpu_time, tuple(Helper(does, ms) for ms, does in worth))]
