"""Remarks on streaming queries: where a batch's time went, and whether the query keeps up."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import duckdb

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.micro_batches import FEW
from crystalperf.query.frameworks import StreamAccount
from crystalperf.query.frameworks.spark.remarks import (
    BatchPart,
    FallsBehind,
    MoreQueries,
    Pace,
    StreamingQuery,
    StreamState,
)
from crystalperf.query.results.remarks import Remark
from crystalperf.query.results.stream_comparison import StreamSide

BUSY = 0.95
"""Share of the time in triggers above which a query has no capacity left, if it ran several batches."""

MOST = 0.5
"""Minimum share of the tasks' time in batches from which a run is a stream."""

WORTH = 0.1
"""Minimum share of a batch that fewer partitions have to save."""

_FEW = 3  # batches; with fewer, pauses between them show nothing
_MAX_QUERIES = 5

_PARTS = ("add_batch_ms", "latest_offset_ms", "query_planning_ms", "wal_commit_ms", "get_batch_ms", "commit_offsets_ms")


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """A remark for each streaming query with batches within a scope, the one with most time first."""
    found = queries(connection, execution)
    shown: list[Remark] = [_with_highest_rate(streaming_query(each), execution) for each in found[:_MAX_QUERIES]]
    more: list[Remark] = [MoreQueries(len(found) - _MAX_QUERIES)] if len(found) > _MAX_QUERIES else []
    return [*shown, *(_state(connection, execution) if found else ()), *more]


def _state(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """The operator with state whose commits take most time; empty without one."""
    rows = _rows(connection, execution, "stream_states")
    if not rows:
        return []
    row = rows[0]
    partitions = round(row["partitions"])
    fewer, batch_ms = _fewer_partitions(execution, row["query"], partitions)
    return [
        StreamState(
            query=row["query"],
            operator=row["operator"],
            partitions=partitions,
            rows_first=row["rows_first"],
            rows_last=row["rows_last"],
            size_bytes=row["bytes"],
            batch_ms=row["batch_ms"],
            updates_ms=None if row["updates_ms"] is None else row["updates_ms"] / partitions,
            commit_ms=row["commit_ms"] / partitions,
            in_rocksdb=row["in_rocksdb"],
            others=sum(each["query"] == row["query"] for each in rows) - 1,
            fewer_partitions=fewer,
            fewer_batch_ms=batch_ms,
        )
    ]


def _fewer_partitions(execution: Execution, query: str, partitions: int) -> tuple[int | None, float | None]:
    """As many partitions as slots, and the time of a batch with them, ms; None if that saves little, or is unknown."""
    batches = execution.micro_batches
    if batches is None or batches.query != query or batches.alike or not batches.stages or not batches.slots:
        return None, None
    wanted = max(int(batches.slots), 1)
    batch_ms = batches.changed(wanted / partitions, 1.0).time_ms
    worth = partitions > wanted and batch_ms <= (1 - WORTH) * batches.cost.time_ms
    return (wanted, batch_ms) if worth else (None, None)


def _with_highest_rate(found: StreamingQuery, execution: Execution) -> StreamingQuery:
    """The remark with the highest rate that the batches of its query sustain, if that is known."""
    batches = execution.micro_batches
    if batches is None or batches.query != found.query or len(batches) < FEW:
        return found
    rate, far = batches.highest_rate(batches.cost)
    return replace(found, max_per_s=rate, is_lower_bound=far) if math.isfinite(rate) else found


def share_of_tasks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> float:
    """The share of the tasks' time in a scope that is in batches of streaming queries; 0 without tasks."""
    if not sql.has_rows(connection, "spark_batches"):
        return 0.0
    row = connection.execute(
        """
        SELECT sum(finish_ms - launch_ms) FILTER (stage_id IN (
            SELECT stage_id FROM stages JOIN spark_batches
                ON submit_ms BETWEEN start_ms AND start_ms + coalesce(trigger_ms, 0)
        )) / sum(finish_ms - launch_ms)
        FROM tasks WHERE launch_ms < $end AND finish_ms > $start
        """,
        {"start": execution.scope.start_ms, "end": execution.scope.end_ms},
    ).fetchone()
    return 0.0 if row is None else row[0] or 0.0


def queries(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[dict[str, Any]]:
    """The rows of batches.sql of a scope."""
    if not sql.has_rows(connection, "spark_batches"):
        return []
    return _rows(connection, execution, "batches")


def _rows(connection: duckdb.DuckDBPyConnection, execution: Execution, name: str) -> list[dict[str, Any]]:
    """The rows of a question about a scope, by column."""
    question = sql.text(name, __package__)
    answer = connection.execute(question, {"start": execution.scope.start_ms, "end": execution.scope.end_ms})
    names = [each[0] for each in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def mean_batch(connection: duckdb.DuckDBPyConnection, execution: Execution) -> StreamAccount | None:
    """The mean batch of the streaming query with most time, by its parts; None if no batch had input."""
    row = next((each for each in queries(connection, execution) if each["batches"] and each["trigger_ms"]), None)
    if row is None:
        return None
    count = row["batches"]
    parts = {key.removesuffix("_ms"): (row[key] or 0.0) / count for key in _PARTS}
    parts["rest"] = row["trigger_ms"] / count - sum(parts.values())
    keeping, first, last = pace(row), row["waiting_first"], row["waiting_last"]
    passed_s = (row["interval_ms"] or 0.0) * (count - 1) / 1e3
    figures = StreamSide(
        input_per_s=row["input_rate"],
        output_per_s=None,
        max_per_s=row["processed_rate"],
        latency_ms=None,
        keeps_up=None if keeping == "unknown" else keeping != "falls-behind",
        queued_per_s=(last - first) / passed_s if first is not None and last is not None and passed_s > 0 else None,
        limit="",
    )
    return StreamAccount("batch", figures, {}, {("batch", name): ms for name, ms in parts.items() if ms})


def falls_behind(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Remark | None:
    """The streaming query that falls behind most; None if all keep up."""
    found = [
        each
        for each in remarks(connection, execution)
        if isinstance(each, StreamingQuery) and each.pace == "falls-behind" and each.batches >= _FEW
    ]
    return FallsBehind(found[0]) if found else None


def stages_of_streams(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The stages of streaming queries that read no files: their sources decide how many tasks read them."""
    if not sql.has_rows(connection, "spark_batches"):
        return set()
    rows = connection.execute(
        """
        SELECT DISTINCT stage_id
        FROM stages JOIN spark_batches
            ON submit_ms BETWEEN start_ms AND start_ms + coalesce(trigger_ms, 0) AND NOT coalesce(reads_files, true)
        """
    ).fetchall()
    return {stage for (stage,) in rows}


def streaming_query(row: dict[str, Any]) -> StreamingQuery:
    """A row of batches.sql as a remark."""
    parts = sorted(((row[key] or 0.0, key.removesuffix("_ms")) for key in _PARTS), reverse=True)
    whole = row["trigger_ms"] or sum(time for time, _ in parts)
    return StreamingQuery(
        query=row["name"] or row["query_id"],
        triggers=row["triggers"],
        batches=row["batches"],
        middle_ms=row["middle_ms"],
        longest_ms=row["longest_ms"],
        parts=tuple(BatchPart(key, time / whole) for time, key in parts if whole and time > 0),
        input_per_s=row["input_rate"],
        processed_per_s=row["processed_rate"],
        waiting_first=row["waiting_first"],
        waiting_last=row["waiting_last"],
        interval_ms=row["interval_ms"],
        busy_share=row["busy"] if row["batches"] >= _FEW else None,
        pace=pace(row),
    )


def pace(row: dict[str, Any]) -> Pace:
    """Whether a query keeps up, from a row of batches.sql."""
    came, could = row["input_rate"], row["processed_rate"]
    has_rates = came is not None and bool(could)
    if has_rates and came > could:
        return "falls-behind"
    if row["waiting_first"] is not None and row["waiting_last"] > row["waiting_first"]:
        return "falls-behind"
    if row["batches"] >= _FEW and row["busy"] is not None and row["busy"] >= BUSY:
        return "no-headroom"
    return "keeps-up" if has_rates else "unknown"
