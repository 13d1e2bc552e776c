"""Findings about attempts and slots: speculative copies of tasks, and stages that waited for slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.intervals import covered, merged
from crystalperf.query.frameworks.spark import failures
from crystalperf.query.frameworks.spark.findings import ProvideSlots, SlotsAwaited, SpeculateLess, Speculation
from crystalperf.query.frameworks.spark.remarks import AwaitedSlots, Decommissioned
from crystalperf.query.frameworks.spark.settings import flag
from crystalperf.query.results.remarks import Remark
from crystalperf.query.trace.records import Floats

MOVES = ("spark.decommission.enabled", "spark.storage.decommission.enabled")
"""The settings with which an executor copies its shuffle files and cached rows to others before it ends."""

SUPERSEDED = "another attempt succeeded"
"""Why Spark kills an attempt of a task after another one ended."""

_ANY_COPY = """
    SELECT 1 WHERE EXISTS (FROM spark_tasks WHERE speculative)
        OR EXISTS (FROM tasks WHERE status = 'killed' AND reason LIKE $why)
"""


def held(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The stages that waited for slots although others were free."""
    rows = connection.execute("SELECT stage_id FROM spark_stages WHERE waited_for IS NOT NULL").fetchall()
    return [stage_id for (stage_id,) in rows]


def slots_awaited(connection: duckdb.DuckDBPyConnection) -> list[SlotsAwaited]:
    """Stages that waited for slots although others were free, as one finding.

    Evidence: the log has no task of the stage for a second or more after its submission, and too few slots that it
    could use.  The cost is the time of that in which no task ran.
    """
    rows = _awaited(connection)
    if not rows:
        return []
    running = _running(connection)
    costs = [_idle_ms(running, each["submit_ms"], each["until_ms"]) for each in rows]
    waits = merged(*(np.array([each[name] for each in rows], np.float64) for name in ("submit_ms", "until_ms")))
    whole_ms = sum(_idle_ms(running, begin, end) for begin, end in waits.tolist())
    first = rows[int(np.argmax(costs))]
    advice = ProvideSlots(first["why"], first["tasks"], first["free"])
    added_ms = None if first["added_ms"] is None else max(first["added_ms"] - first["submit_ms"], 0.0)
    same = ("stage", "name", "why", "tasks", "slots", "free", "profile", "started", "executor")
    known = {each: first[each] for each in same}
    return [SlotsAwaited(whole_ms, "measured", advice, other_stages=len(rows) - 1, added_ms=added_ms, **known)]


def _idle_ms(running: Floats, start_ms: float, end_ms: float) -> float:
    """Time of an interval in which no task ran."""
    return end_ms - start_ms - covered(running, start_ms, end_ms)


def other_causes(connection: duckdb.DuckDBPyConnection, _execution: Execution) -> dict[str, Remark]:
    """The cause of time on no resource that the first sentence adds."""
    found = slots_awaited(connection)
    return {"no slot": AwaitedSlots(found[0])} if found else {}


def _awaited(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    if not held(connection):
        return []
    answer = connection.execute(sql.text("slots_awaited", __package__))
    names = [each[0] for each in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def speculation(connection: duckdb.DuckDBPyConnection) -> list[Speculation]:
    """Copies of slow tasks, and the attempts that lost.

    The cost is at most the slots' time that losing copies took while all slots were in use, over the slots.
    """
    why = {"why": f"%{SUPERSEDED}%"}
    if connection.execute(_ANY_COPY, why).fetchone() is None:
        return []
    answer = connection.execute(sql.text("speculation", __package__), why)
    names = [each[0] for each in answer.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    copies = sum(each["copies"] for each in rows)
    lost_ms = sum(each["lost_ms"] for each in rows)
    if not copies and lost_ms <= 0:
        return []
    won, saved_ms = sum(each["won"] for each in rows), sum(each["saved_ms"] for each in rows)
    cost_ms = _blocked_ms(connection, [each for row in rows for each in row["losing"]])
    advice = SpeculateLess() if cost_ms > saved_ms else None
    return [Speculation(cost_ms, "modelled", advice, rows[0]["stage"], len(rows) - 1, copies, won, lost_ms, saved_ms)]


def decommissioned(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """Executors that the cluster took away after a notice within a scope, with their tasks that ran again."""
    rows = connection.execute(
        """
        SELECT
            worker_id, removed_ms, removed_reason,
            count(*) FILTER (recomputed) AS redone,
            coalesce(sum(finish_ms - launch_ms) FILTER (recomputed), 0) AS redone_ms
        FROM workers LEFT JOIN tasks USING (worker_id)
        WHERE regexp_matches(removed_reason, '(?i)decommission') AND removed_ms > $start AND removed_ms <= $end
        GROUP BY ALL
        ORDER BY removed_ms, worker_id
        """,
        {"start": execution.scope.start_ms, "end": execution.scope.end_ms},
    ).fetchall()
    taken = [row for row in rows if not failures.was_released(row[2])]
    if not taken:
        return []
    moves = all(flag(execution.properties.get(each)) for each in MOVES)
    redone, redone_ms = sum(row[3] for row in taken), sum(row[4] for row in taken)
    return [Decommissioned(tuple(row[0] for row in taken), taken[0][1], redone, redone_ms, moves)]


def _blocked_ms(connection: duckdb.DuckDBPyConnection, losing: Sequence[Mapping[str, float]]) -> float:
    """Time that losing copies may have taken from other tasks: theirs while all slots were in use, over the slots."""
    if not losing:
        return 0.0
    tasks = connection.execute("SELECT launch_ms, finish_ms FROM tasks").fetchnumpy()
    slots = connection.execute(
        """
        SELECT unnest(range(slots)) AS slot, added_ms, coalesce(removed_ms, duration_ms) AS removed_ms
        FROM workers, runs WHERE slots > 0
        """
    ).fetchnumpy()
    launch, finish = (np.asarray(tasks[name], np.float64) for name in ("launch_ms", "finish_ms"))
    added, removed = (np.asarray(slots[name], np.float64) for name in ("added_ms", "removed_ms"))
    began, ended = (np.array([each[name] for each in losing], np.float64) for name in ("launch", "finish"))
    moments = np.unique(np.concatenate([launch, finish, added, removed]))
    lengths = np.diff(moments)
    middle = moments[:-1] + lengths / 2
    lost = _open(middle, began, ended)
    some = lost > 0
    lengths, middle, lost = lengths[some], middle[some], lost[some]
    busy, there = _open(middle, launch, finish), _open(middle, added, removed)
    full = (there > 0) & (busy >= there)
    return float((lengths * lost / np.maximum(there, 1) * full).sum())


def _open(moments: Floats, start_ms: Floats, end_ms: Floats) -> Floats:
    """The number of intervals that are open at each moment."""
    began, ended = (np.searchsorted(np.sort(each), moments, side="right") for each in (start_ms, end_ms))
    return (began - ended).astype(np.float64)


def _running(connection: duckdb.DuckDBPyConnection) -> Floats:
    times = connection.execute("SELECT launch_ms, finish_ms FROM tasks").fetchnumpy()
    return merged(*(np.asarray(times[name], np.float64) for name in ("launch_ms", "finish_ms")))
