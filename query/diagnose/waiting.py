"""Causes of the time on the critical path that no resource accounts for.

Such time has several causes: no worker is available, the user's own program runs between two scopes, a task waits
to be started, or it waits for the other tasks of its pipeline.  The trace distinguishes these; the rest is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import duckdb
import numpy as np

from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.execution.critical_path import Piece
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.intervals import covered, merged, uncovered
from crystalperf.query.results.answers import Cause
from crystalperf.query.trace.records import Floats

_ALONE: tuple[Cause, ...] = ("no worker", "start", "no scope", "end", "driver")


def waiting(
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    advisor: Advisor,
    pieces: Sequence[Piece],
    alive: Floats,
) -> tuple[dict[Cause, float], dict[Cause, float]]:
    """Time on no resource by cause, and the path's time in which only the driver was active by cause; ms.

    The first has the path's `other`, the largest cause first, and sums to it.  The causes of the second are a missing
    worker, no active scope, or the driver itself.  `alive` is with_workers().
    """
    running = execution.tasks.running
    busy = _busy_scopes(connection, execution)
    starting, upstream = _starting_share(connection), _upstream_share(execution)
    delegated = _delegated_share(connection, execution, advisor)
    other_ms: dict[Cause, float] = dict.fromkeys(get_args(Cause), 0.0)
    alone_ms: dict[Cause, float] = dict.fromkeys(_ALONE, 0.0)
    for piece in pieces:
        start, end = piece.start_ms, piece.end_ms
        without = uncovered(alive, start, end)
        lacking = sum(stop - begin for begin, stop in without)
        other = float(piece.parts_ms[-1])
        waited = min(other, lacking)
        other_ms["no worker"] += waited
        rest = other - waited
        if piece.node.stage is not None:
            idle = min(rest, max(end - start - covered(running, start, end) - lacking, 0.0))
            rest -= idle
            begun = rest * starting.get(piece.node.node_id, 0.0)
            flowed = min(rest * float(upstream[piece.node.stage]), rest - begun)
            other_ms["no slot" if execution.dag.stages[piece.node.stage].held else "no task"] += idle
            other_ms["starting"] += begun
            other_ms["upstream"] += flowed
            handed = min(other * delegated.get(piece.node.node_id, 0.0), rest - begun - flowed)
            other_ms["delegated"] += handed
            other_ms["unknown"] += rest - begun - flowed - handed
        elif piece.node.held:
            alone_ms["no worker"] += lacking
            other_ms["no slot"] += rest
        elif piece.node.kind == "driver":
            # Scopes count only for the time in which workers were available.
            inside = covered(busy, start, end) - sum(covered(busy, *each) for each in without)
            length = end - start - lacking
            alone_ms["no worker"] += lacking
            if not len(busy):  # a log without scopes does not record whether one was active
                other_ms["unknown"] += rest
                continue
            alone_ms["driver"] += inside
            share = min(inside / length, 1.0) if length > 0 else 1.0
            other_ms["driver"] += rest * share
            for cause, part in _outside(busy, without, start, end, inside).items():
                alone_ms[cause] += part * (length - inside)
                other_ms[cause] += part * rest * (1.0 - share)
        else:
            other_ms["unknown"] += rest
    return {cause: ms for cause, ms in sorted(other_ms.items(), key=lambda each: -each[1]) if ms > 0}, alone_ms


def _outside(
    busy: Floats, without: Sequence[tuple[float, float]], start: float, end: float, inside: float
) -> dict[Cause, float]:
    """The time of an interval with workers and without a scope, as shares: before all scopes, between them, after them.

    `busy` are all scopes, `without` the intervals without workers, `inside` is the time in scopes.
    """
    first, last = float(busy[0, 0]), float(busy[-1, 1])
    found: dict[Cause, float] = {
        "start": _length(start, min(end, first), without),
        "no scope": max(_length(max(start, first), min(end, last), without) - inside, 0.0),
        "end": _length(max(start, last), end, without),
    }
    whole = sum(found.values())
    return {cause: ms / whole for cause, ms in found.items()} if whole > 0 else {"no scope": 1.0}


def _cut(interval: tuple[float, float], within: tuple[float, float]) -> tuple[float, float]:
    """The part of an interval within another, of length 0 if there is none."""
    start = min(max(interval[0], within[0]), within[1])
    return start, max(min(interval[1], within[1]), start)


def _length(start: float, end: float, without: Sequence[tuple[float, float]]) -> float:
    """The length of an interval, less the parts in `without`."""
    if end <= start:
        return 0.0
    return max(end - start - sum(stop - begin for begin, stop in (_cut(each, (start, end)) for each in without)), 0.0)


def with_workers(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Floats:
    """The intervals in which at least one worker was available, (intervals, 2), ms.

    If no worker ever started and no task ran, these are the times in which no stage waited for a worker.
    """
    running, slots = execution.tasks.running, execution.slots
    # A running task implies a worker, whatever start and end the log has for it.
    alive = merged(np.concatenate([slots.available_ms, running[:, 0]]), np.concatenate([slots.until_ms, running[:, 1]]))
    if len(alive):
        return alive
    first, last = connection.execute(
        """
        SELECT min(submit_ms), max(coalesce(end_ms, ?))
        FROM stages WHERE submit_ms IS NOT NULL AND task_count > 0 AND NOT EXISTS (FROM tasks)
        """,
        [execution.scope.end_ms],
    ).fetchall()[0]
    if first is None:
        return np.array([[-np.inf, np.inf]])
    return np.array([[-np.inf, execution.clock.when(first)], [execution.clock.when(last), np.inf]])


def without_task(execution: Execution) -> float:
    """Wall-clock time of a scope, ms, without a running task."""
    ran = execution.tasks.running
    return execution.runtime_ms - float((ran[:, 1] - ran[:, 0]).sum())


def has_scopes(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the log has scopes, so that time without a running task can be attributed."""
    return connection.execute("SELECT 1 FROM scopes LIMIT 1").fetchone() is not None


def _busy_scopes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Floats:
    """The intervals in which a scope of any kind was active, (intervals, 2), ms."""
    rows = connection.execute("SELECT start_ms, coalesce(end_ms, ?) FROM scopes", [execution.scope.end_ms]).fetchall()
    times = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return merged(execution.clock.at(times[:, 0]), execution.clock.at(times[:, 1]))


def _starting_share(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By stage, the share of `other` that was spent in starting and ending its tasks.

    It comes from the operator times if there are any, else from the overhead that the framework measured of each task.
    """
    rows = connection.execute(
        """
        WITH by_operator AS (
            SELECT stage_id, sum(other_ms) FILTER (basis = 'task metrics') / sum(other_ms) AS share
            FROM operator_times
            GROUP BY stage_id
            HAVING sum(other_ms) > 0
        ),
        measured AS (
            SELECT stage_id, sum(least(coalesce(overhead_ms, 0), other_ms)) / sum(other_ms) AS share
            FROM tasks
            GROUP BY stage_id
            HAVING sum(other_ms) > 0
        )
        SELECT
            stage_id, CASE WHEN by_operator.stage_id IS NULL THEN measured.share ELSE coalesce(by_operator.share, 0) END
        FROM measured LEFT JOIN by_operator USING (stage_id)
        WHERE by_operator.stage_id IS NOT NULL OR NOT EXISTS (FROM operator_times)
        """
    ).fetchall()
    return {stage_id: float(share) for stage_id, share in rows}


def _delegated_share(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> dict[str, float]:
    """By stage, the maximum share of `other` in which its tasks waited for processes that compute for them.

    Samples show what a task waits for; without samples, a stage that delegates is assumed to wait for nothing else.
    """
    if execution.has_samples:
        return {}
    shares = advisor.delegated_shares(connection)
    stages = [execution.dag.stages[number].stage_id for number in execution.delegating]
    return {stage: shares.get(stage, 1.0) for stage in stages}


def _upstream_share(execution: Execution) -> Floats:
    """The share of each stage's `other` in which its tasks waited for other tasks of their pipeline, (stages,)."""
    tasks, count = execution.tasks, len(execution.dag.stages)
    waited = np.bincount(tasks.stage, weights=tasks.pipeline_wait_ms, minlength=count)
    other = np.bincount(tasks.stage, weights=tasks.parts_ms[:, -1], minlength=count)
    return np.minimum(np.divide(waited, other, out=np.zeros(count), where=other > 0), 1.0)
