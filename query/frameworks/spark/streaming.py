"""What Spark measured of its streaming queries, as sentences: where a batch's time went, and whether it keeps up."""

from __future__ import annotations

from typing import Any

import duckdb

from crystalperf.query import sql
from crystalperf.query.model.amounts import counted
from crystalperf.query.model.execution import Execution

BUSY = 0.95
"""Share of the time in triggers above which a query has no room left, where it ran several batches."""

_FEW = 3  # batches, below which their pauses tell nothing
_MOST_QUERIES = 5

_WORDS = {
    "add_batch_ms": "running the batch (addBatch)",
    "latest_offset_ms": "asking the sources for new data (latestOffset)",
    "query_planning_ms": "planning (queryPlanning)",
    "wal_commit_ms": "noting in the checkpoint what to read (walCommit)",
    "get_batch_ms": "making the sources' data frames (getBatch)",
    "commit_offsets_ms": "noting in the checkpoint what is done (commitOffsets)",
}


def told(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[str]:
    """A sentence for each streaming query with batches within a scope, the one with most time first."""
    question = sql.text("batches", __package__)
    answer = connection.execute(question, {"start": execution.scope.start_ms, "end": execution.scope.end_ms})
    names = [each[0] for each in answer.description or ()]
    found = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    sentences = [sentence(each) for each in found[:_MOST_QUERIES]]
    if len(found) > _MOST_QUERIES:
        sentences.append(f"{len(found) - _MOST_QUERIES} more streaming queries are in the table spark_batches")
    return sentences


def sentence(query: dict[str, Any]) -> str:
    """What batches.sql says of one query, in words."""
    name = f"streaming query {query['name'] or query['query_id']}"
    if not query["batches"]:
        return f"{name}: {counted(query['triggers'], 'trigger')}, none of which found rows to process"
    parts = sorted(((query[key] or 0.0, words) for key, words in _WORDS.items()), reverse=True)
    whole = query["trigger_ms"] or sum(time for time, _ in parts)
    told_parts = [f"{100 * time / whole:.0f} % {words}" for time, words in parts[:2] if whole and time >= 0.01 * whole]
    middle = f" of {_seconds(query['middle_ms'])} each (the middle one; the longest {_seconds(query['longest_ms'])})"
    if query["batches"] == 1:
        middle = f" of {_seconds(query['middle_ms'])}"
    where = f", {' and '.join(told_parts)}" if told_parts else ""
    return f"{name}: {counted(query['batches'], 'batch')}{middle}{where}; {_keeps_up(query)}"


def _keeps_up(query: dict[str, Any]) -> str:
    came, could = query["input_rate"], query["processed_rate"]
    rates = f"{_rate(came)} came in and {_rate(could)} could be processed" if came is not None and could else ""
    grew = query["waiting_first"] is not None and query["waiting_last"] > query["waiting_first"]
    if rates and came > could:
        return f"{rates}: it falls behind"
    if grew:
        waits = f"what waits at its sources grew from {query['waiting_first']:.0f} to {query['waiting_last']:.0f}"
        return f"{f'{rates}, and ' if rates else ''}{waits}: it falls behind"
    if query["batches"] >= _FEW and query["busy"] is not None and query["busy"] >= BUSY:
        return (
            f"{f'{rates}, but ' if rates else ''}{100 * query['busy']:.0f} % of the time is in batches: it has no room"
            " left, and the log does not say whether more waits at its sources"
        )
    pauses = ""
    if query["batches"] >= _FEW and query["busy"] is not None:
        pauses = (
            f", a batch begins every {_seconds(query['interval_ms'])} and is busy {100 * query['busy']:.0f} % of it"
        )
    return f"{rates}{pauses}: it keeps up" if rates else f"rates are not in the log{pauses}"


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def _rate(rows: float) -> str:
    return f"{rows:,.0f} rows/s".replace(",", " ") if rows >= 10 else f"{rows:.1f} rows/s"
