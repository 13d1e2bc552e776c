"""What the time on the critical path was that no resource accounts for.

Time without a resource is not all alike: nothing can run before an executor is there, between two queries the user's
own program decides what comes next, and a task waits to be started.  The log tells these apart; the rest is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from query.model.critical import Piece
from query.model.dag import Floats
from query.model.execution import Execution

EXECUTORS = "waiting for executors"
PROGRAM = "no query running (the program itself)"
DRIVER = "driver (planning, submitting, collecting)"
NO_TASK = "no task running"
STARTING = "starting and ending tasks"
UNKNOWN = "unknown"


def waiting(
    connection: duckdb.DuckDBPyConnection, execution: Execution, pieces: Sequence[Piece]
) -> tuple[dict[str, float], dict[str, float]]:
    """ms of `other` on the path by cause, the largest first; they sum to the path's `other`.  And the path's whole
    time without a task, by what was missing: an executor, a query, or the driver's answer.
    """
    alive = merged(execution.slots.available_ms, execution.slots.until_ms)
    queries = _busy_queries(connection, execution)
    tasks = execution.tasks
    running = merged(tasks.launch_ms, tasks.finish_ms)
    starting = _starting_share(connection)
    other_ms = dict.fromkeys((EXECUTORS, PROGRAM, DRIVER, NO_TASK, STARTING, UNKNOWN), 0.0)
    alone_ms = dict.fromkeys((EXECUTORS, PROGRAM, DRIVER), 0.0)
    for piece in pieces:
        start, end = piece.start_ms, piece.end_ms
        other = float(piece.parts_ms[-1])
        without = _without(alive, start, end) if len(alive) else []
        lacking = sum(stop - begin for begin, stop in without)
        waited = min(other, lacking)
        other_ms[EXECUTORS] += waited
        rest = other - waited
        if piece.node.stage is None:
            # Whether a query was under way is asked of the time when there were executors only.
            inside = _covered(queries, start, end) - sum(_covered(queries, *each) for each in without)
            length = end - start - lacking
            alone_ms[EXECUTORS] += lacking
            alone_ms[DRIVER] += inside
            alone_ms[PROGRAM] += length - inside
            share = min(inside / length, 1.0) if length > 0 else 1.0
            other_ms[DRIVER] += rest * share
            other_ms[PROGRAM] += rest * (1.0 - share)
        else:
            stage = execution.dag.stages[piece.node.stage]
            idle = min(rest, max(end - start - _covered(running, start, end) - lacking, 0.0))
            other_ms[NO_TASK] += idle
            known = (rest - idle) * starting.get((stage.stage_id, stage.attempt), 0.0)
            other_ms[STARTING] += known
            other_ms[UNKNOWN] += rest - idle - known
    return {cause: ms for cause, ms in sorted(other_ms.items(), key=lambda each: -each[1]) if ms > 0}, alone_ms


def merged(start_ms: Floats, end_ms: Floats) -> Floats:
    """The union of intervals as sorted disjoint rows of (start, end)."""
    if len(start_ms) == 0:
        return np.empty((0, 2))
    order = np.argsort(start_ms, kind="stable")
    start, end = start_ms[order], np.maximum.accumulate(end_ms[order])
    opens = np.concatenate([[True], start[1:] > end[:-1]])
    return np.column_stack([start[opens], end[np.concatenate([opens[1:], [True]])]])


def _covered(intervals: Floats, start_ms: float, end_ms: float) -> float:
    """How much of a stretch the disjoint intervals cover."""
    if len(intervals) == 0:
        return 0.0
    inside = np.minimum(intervals[:, 1], end_ms) - np.maximum(intervals[:, 0], start_ms)
    return float(np.maximum(inside, 0.0).sum())


def _without(intervals: Floats, start_ms: float, end_ms: float) -> list[tuple[float, float]]:
    """The parts of a stretch that the disjoint intervals leave."""
    found, begin = [], start_ms
    for first, last in intervals.tolist():
        if first > begin:
            found.append((begin, min(first, end_ms)))
        begin = max(begin, last)
        if begin >= end_ms:
            break
    if begin < end_ms:
        found.append((begin, end_ms))
    return [(low, high) for low, high in found if high > low]


def _busy_queries(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Floats:
    """When a query or a job was under way."""
    end = execution.scope.end_ms
    rows = connection.execute(
        """
        SELECT start_ms, coalesce(end_ms, $1) FROM sql_executions
        UNION ALL SELECT submit_ms, coalesce(end_ms, $1) FROM jobs
        """,
        [end],
    ).fetchall()
    times = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return merged(times[:, 0], times[:, 1])


def _starting_share(connection: duckdb.DuckDBPyConnection) -> dict[tuple[int, int], float]:
    """Of each stage's `other`, the share that was spent in starting and ending its tasks."""
    rows = connection.execute(
        """
        SELECT stage_id, stage_attempt, sum(other_ms) FILTER (basis = 'task metrics') / sum(other_ms)
        FROM operator_times
        GROUP BY stage_id, stage_attempt
        HAVING sum(other_ms) > 0
        """
    ).fetchall()
    return {(stage_id, attempt): float(share or 0.0) for stage_id, attempt, share in rows}
