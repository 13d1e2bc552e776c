"""What the time on the critical path was that no resource accounts for.

Time without a resource is not all alike: nothing can run before a worker is there, between two scopes the user's
own program decides what comes next, a unit waits to be started, or for those that it shares a pipeline with.  The
trace tells these apart; the rest is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import duckdb
import numpy as np

from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.execution.critical_path import Piece
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.intervals import covered, left_open, merged
from crystalperf.query.results.answers import Cause
from crystalperf.query.trace.records import Floats

_ALONE: tuple[Cause, ...] = ("no worker", "no scope", "coordinator")


def waiting(
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    advisor: Advisor,
    pieces: Sequence[Piece],
    alive: Floats,
) -> tuple[dict[Cause, float], dict[Cause, float]]:
    """ms of `other` on the path by cause, the largest first; they sum to the path's `other`.  And the path's time in
    which the coordinator alone moved it on, by what was missing: a worker, a scope under way, or its own answer.
    `alive` is with_workers().
    """
    units = execution.units
    running = merged(units.launch_ms, units.finish_ms)
    busy = _busy_scopes(connection, execution)
    starting, upstream = _starting_share(connection), _upstream_share(execution)
    delegated = _delegated_share(connection, execution, advisor)
    other_ms: dict[Cause, float] = dict.fromkeys(get_args(Cause), 0.0)
    alone_ms: dict[Cause, float] = dict.fromkeys(_ALONE, 0.0)
    for piece in pieces:
        start, end = piece.start_ms, piece.end_ms
        without = left_open(alive, start, end)
        lacking = sum(stop - begin for begin, stop in without)
        other = float(piece.parts_ms[-1])
        waited = min(other, lacking)
        other_ms["no worker"] += waited
        rest = other - waited
        if piece.node.group is not None:
            idle = min(rest, max(end - start - covered(running, start, end) - lacking, 0.0))
            rest -= idle
            begun = rest * starting.get(piece.node.node_id, 0.0)
            flowed = min(rest * float(upstream[piece.node.group]), rest - begun)
            other_ms["no unit"] += idle
            other_ms["starting"] += begun
            other_ms["upstream"] += flowed
            handed = min(other * delegated.get(piece.node.node_id, 0.0), rest - begun - flowed)
            other_ms["delegated"] += handed
            other_ms["unknown"] += rest - begun - flowed - handed
        elif piece.node.kind == "coordinator":
            # Whether a scope was under way is asked of the time when there were workers only.
            inside = covered(busy, start, end) - sum(covered(busy, *each) for each in without)
            length = end - start - lacking
            alone_ms["no worker"] += lacking
            if not len(busy):  # a log without any scope tells neither that one was under way nor that none was
                other_ms["unknown"] += rest
                continue
            alone_ms["coordinator"] += inside
            alone_ms["no scope"] += length - inside
            share = min(inside / length, 1.0) if length > 0 else 1.0
            other_ms["coordinator"] += rest * share
            other_ms["no scope"] += rest * (1.0 - share)
        else:
            other_ms["unknown"] += rest
    return {cause: ms for cause, ms in sorted(other_ms.items(), key=lambda each: -each[1]) if ms > 0}, alone_ms


def with_workers(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Floats:
    """When a worker was there, (stretches, 2).

    Where none ever came, and no unit ran, all times count in which no group waited for one: nothing lacked a worker
    then.
    """
    units, slots = execution.units, execution.slots
    # Where a unit runs there is a worker, whatever the log says of when that came and went.
    alive = merged(
        np.concatenate([slots.available_ms, units.launch_ms]), np.concatenate([slots.until_ms, units.finish_ms])
    )
    if len(alive):
        return alive
    first, last = connection.execute(
        """
        SELECT min(submit_ms), max(coalesce(end_ms, ?))
        FROM groups WHERE submit_ms IS NOT NULL AND unit_count > 0 AND NOT EXISTS (FROM units)
        """,
        [execution.scope.end_ms],
    ).fetchall()[0]
    if first is None:
        return np.array([[-np.inf, np.inf]])
    return np.array([[-np.inf, execution.clock.when(first)], [execution.clock.when(last), np.inf]])


def without_unit(execution: Execution) -> float:
    """Wall-clock of a scope, ms, in which no unit of it ran."""
    ran = merged(execution.units.launch_ms, execution.units.finish_ms)
    return execution.runtime_ms - float((ran[:, 1] - ran[:, 0]).sum())


def tells_scopes(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the log has scopes, so that it says whose time passes while no unit runs."""
    return connection.execute("SELECT 1 FROM scopes LIMIT 1").fetchone() is not None


def _busy_scopes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Floats:
    """When a scope was under way, of whatever kind."""
    rows = connection.execute("SELECT start_ms, coalesce(end_ms, ?) FROM scopes", [execution.scope.end_ms]).fetchall()
    times = np.array(rows, dtype=np.float64).reshape(-1, 2)
    return merged(execution.clock.at(times[:, 0]), execution.clock.at(times[:, 1]))


def _starting_share(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Of each group's `other`, the share that was spent in starting and ending its units.

    Where time is told apart by operator, a row of it says so; else what the framework measured of each unit.
    """
    rows = connection.execute(
        """
        WITH told AS (
            SELECT group_id, sum(other_ms) FILTER (basis = 'unit metrics') / sum(other_ms) AS share
            FROM operator_times
            GROUP BY group_id
            HAVING sum(other_ms) > 0
        ),
        measured AS (
            SELECT group_id, sum(least(coalesce(overhead_ms, 0), other_ms)) / sum(other_ms) AS share
            FROM units
            GROUP BY group_id
            HAVING sum(other_ms) > 0
        )
        SELECT group_id, CASE WHEN told.group_id IS NULL THEN measured.share ELSE coalesce(told.share, 0) END
        FROM measured LEFT JOIN told USING (group_id)
        WHERE told.group_id IS NOT NULL OR NOT EXISTS (FROM operator_times)
        """
    ).fetchall()
    return {group_id: float(share) for group_id, share in rows}


def _delegated_share(connection: duckdb.DuckDBPyConnection, execution: Execution, advisor: Advisor) -> dict[str, float]:
    """Of each group's `other`, at most the share in which its units waited for processes that compute for them.

    Samples show what a unit waits for; without any, a group that delegates is taken to wait for nothing else.
    """
    if execution.has_samples:
        return {}
    shares = advisor.delegated_shares(connection)
    groups = [execution.dag.groups[number].group_id for number in execution.delegating]
    return {group: shares.get(group, 1.0) for group in groups}


def _upstream_share(execution: Execution) -> Floats:
    """Of each group's `other`, (groups,), the share in which its units waited for those that they share a pipeline
    with."""
    units, count = execution.units, len(execution.dag.groups)
    waited = np.bincount(units.group, weights=units.upstream_ms, minlength=count)
    other = np.bincount(units.group, weights=units.parts_ms[:, -1], minlength=count)
    return np.minimum(np.divide(waited, other, out=np.zeros(count), where=other > 0), 1.0)
