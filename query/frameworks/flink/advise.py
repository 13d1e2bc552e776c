"""Advice and recommendations for a Flink job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from crystalperf.query.diagnose import findings
from crystalperf.query.frameworks.flink.planning import MAX_SUBTASKS, SHARING, STOPPED, UNPLACED
from crystalperf.query.frameworks.flink.recommendations import (
    BreakChain,
    CollectMetrics,
    CollectMetricsLonger,
    ShortenBufferTimeout,
)
from crystalperf.query.frameworks.flink.remarks import Lacking
from crystalperf.query.results.recommendations import MEASURED, MODELLED, Candidate, Recommendation, SettingChange

if TYPE_CHECKING:
    from crystalperf.query.diagnose.stage_statistics import StageStats
    from crystalperf.query.execution.stream import Stream
    from crystalperf.query.results.advice import Advice

TIMEOUT = "execution.buffer-timeout.interval"

SHORTER = 10.0
"""The factor by which a recommendation shortens the buffer timeout."""


def buffering_candidate(stream: Stream, filling_ms: float) -> Candidate:
    """A shorter buffer timeout, which costs more and smaller buffers."""
    due = [each.due_ms for each in stream.hops if each.due_ms < 60_000]
    now = max(due, default=100.0)
    after = max(round(now / SHORTER), 1)
    change = SettingChange(TIMEOUT, f"{now:.0f} ms", f"{after} ms")
    value = ShortenBufferTimeout(
        price="setting", because=TIMEOUT, saving=MODELLED, settings=(change,), before_ms=now, after_ms=after
    )
    return Candidate(value, at_most_ms=filling_ms * (1 - after / now) if now > after else filling_ms)


def idle_advice(detail: StageStats) -> Advice | None:
    """Advice for slots that a vertex left idle; None if it left none.

    A slot takes a subtask of each vertex of a pipeline, so a vertex with as many subtasks as there are slots leaves
    none idle.  A vertex that can have only one subtask, such as the sort of a whole table, cannot use more.
    """
    if detail.settings.get(f"{MAX_SUBTASKS}{detail.facts.id}") == "1":
        return None
    sharing, slots = int(detail.settings.get(SHARING, "1")), detail.facts.slots
    if UNPLACED in detail.settings:  # no TaskManager is named: slots are the subtasks of all vertices
        slots = -(-slots // sharing)
    if STOPPED in detail.settings or (sharing > 1 and detail.with_data >= slots):
        return None
    return findings.idle_advice(detail)


def required_recording(connection: duckdb.DuckDBPyConnection) -> Recommendation | None:
    """Data to record of an unbounded stream so that its latency and rate are known; None for other jobs."""
    row = connection.execute(
        """
        SELECT coalesce(properties['stream'], '') = 'true' AND NOT EXISTS (FROM scopes WHERE status = 'succeeded')
        FROM runs
        """
    ).fetchone()
    kind = _RECORDS.get(lacking(connection)) if row is not None and row[0] else None
    return None if kind is None else kind(price="record", because="measure", saving=MEASURED)


LOOP = "IterationSource-"
"""Prefix of the name of a vertex that starts a loop of records (Flink 1).  It waits for them within its work, so Flink
reports it as busy all the time."""


def lacking(connection: duckdb.DuckDBPyConnection) -> Lacking:
    """The reason why CrystalPerf cannot analyze the record flow: its records loop, no metrics were collected, its
    vertices exchange no records, or no interval of it was long enough."""
    row = connection.execute(
        """
        SELECT
            count(*), coalesce(sum(records_in), 0) + coalesce(sum(records_out), 0) > 0 OR EXISTS (FROM dependencies),
            EXISTS (FROM stages WHERE starts_with(name, ?))
        FROM flink_series
        """,
        [LOOP],
    ).fetchone()
    samples, exchanges, loops = row or (0, False, False)
    if loops:
        return "order"
    return "metrics" if not samples else "time" if exchanges else "exchanges"


_RECORDS: dict[Lacking, type[Recommendation]] = {
    "metrics": CollectMetrics,
    "exchanges": BreakChain,
    "time": CollectMetricsLonger,
}
"""The advice for each of them."""
