"""What a user of Flink can change about a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import duckdb

from crystalperf.query.explain.chances import Chance
from crystalperf.query.explain.findings import idle_advice
from crystalperf.query.frameworks.flink.planning import MOST_SUBTASKS, SHARING, STOPPED, UNPLACED

if TYPE_CHECKING:
    from crystalperf.query.explain.facts import Detail
    from crystalperf.query.model.flow import Flow
    from crystalperf.query.results.advice import Advice

COLLECT = (
    "Collect this stream's metrics while it runs, `crystalperf collect flink URL` for half a minute or longer: they"
    " tell its latency, and the rate that it keeps up with"
)

SHORTER = 10.0
"""How much shorter a buffer's timeout is asked to be."""


def filling(flow: Flow, filling_ms: float) -> Chance:
    """A shorter timeout of buffers, at the price of more and smaller ones."""
    due = [each.due_ms for each in flow.hops if each.due_ms < 60_000]
    now = max(due, default=100.0)
    after = max(round(now / SHORTER), 1)
    return Chance(
        "setting",
        f"Send buffers sooner, `execution.buffer-timeout.interval` {now:.0f} → {after} ms: they are not full by then,"
        " and more of them cost more CPU",
        "execution.buffer-timeout.interval",
        "modelled",
        at_most_ms=filling_ms * (1 - after / now) if now > after else filling_ms,
        lines=(f"execution.buffer-timeout.interval: {after} ms",),
    )


def idle(detail: Detail) -> Advice | None:
    """What to do about slots that a vertex left idle; None where it left none.

    A slot takes a subtask of each vertex of a pipeline, so a vertex with as many subtasks as there are slots leaves
    none.  One that can have a single subtask, as the sort of a whole table, cannot have more.
    """
    if detail.settings.get(f"{MOST_SUBTASKS}{detail.facts.id}") == "1":
        return None
    sharing, slots = int(detail.settings.get(SHARING, "1")), detail.facts.slots
    if UNPLACED in detail.settings:  # no TaskManager is named, so these are its subtasks of all vertices
        slots = -(-slots // sharing)
    if STOPPED in detail.settings or (sharing > 1 and detail.with_data >= slots):
        return None
    return idle_advice(detail)


def unmeasured(connection: duckdb.DuckDBPyConnection) -> str | None:
    """What a stream without an end lacks before anything that its user asks for can be told; None for other jobs."""
    row = connection.execute(
        """
        SELECT coalesce(properties['stream'], '') = 'true' AND NOT EXISTS (FROM scopes WHERE status = 'succeeded')
        FROM runs
        """
    ).fetchone()
    return ADVISED.get(lacking(connection)) if row is not None and row[0] else None


Lacking = Literal["metrics", "exchanges", "time", "order"]

LOOP = "IterationSource-"
"""How the name of a vertex begins from which records go round again (Flink 1).  It waits for them within its work, so
Flink calls it busy all the time."""


def lacking(connection: duckdb.DuckDBPyConnection) -> Lacking:
    """What keeps a stream from being told as a flow: its records go round, nothing was collected, its vertices exchange
    no records, or no stretch of it was long enough."""
    row = connection.execute(
        """
        SELECT
            count(*), coalesce(sum(records_in), 0) + coalesce(sum(records_out), 0) > 0 OR EXISTS (FROM dependencies),
            EXISTS (FROM groups WHERE starts_with(name, ?))
        FROM flink_series
        """,
        [LOOP],
    ).fetchone()
    looks, exchanges, loops = row or (0, False, False)
    if loops:
        return "order"
    return "metrics" if not looks else "time" if exchanges else "exchanges"


ADVISED: dict[Lacking, str] = {
    "metrics": COLLECT,
    "exchanges": (
        "Cut this stream's chain once, by `disableChaining()` on the operator behind its source: Flink counts the"
        " records that vertices exchange, and a job of one chain exchanges none"
    ),
    "time": "Collect this stream's metrics for longer: half a minute without a restart and with the same subtasks",
}
"""What to do about it."""
