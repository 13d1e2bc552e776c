"""Cost of large results: fetching many rows to the driver, and the program's reading of them afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark.recommendations import AvoidBroadcast, SendFewerRows
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.recommendations import MODELLED, Candidate, SettingChange

MANY_BYTES = 32 * 2**20
"""A stage that sends less to the driver sends a result, not its data."""

_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"

READ_BPS = 2e6
"""Minimum rate, bytes per second, at which a Python program converts fetched data to rows."""


@frozen
class _Sent:
    stage: str
    sent_bytes: float
    fetch_ms: float
    last_ms: float


def occupied(connection: duckdb.DuckDBPyConnection) -> list[tuple[float, float]]:
    """Intervals after large results in which the program may have been reading them; see query.frameworks.Framework."""
    return [(each.last_ms, each.last_ms + 1000 * each.sent_bytes / READ_BPS) for each in _sent(connection)]


def candidates(
    connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats], debug: Debug
) -> Iterator[Candidate]:
    """Fewer rows for the driver; the saving is at most their fetching and the driver-only time after it."""
    by_id = {each.facts.id: each for each in details}
    sent = [each for each in _sent(connection) if each.stage in by_id]
    if not sent:
        return
    most_ms = 0.0
    for each in sent:
        facts = by_id[each.stage].facts
        if facts.task_ms > 0:
            most_ms += facts.path_ms * min(each.fetch_ms / facts.task_ms, 1.0)
        most_ms += _alone_after(debug, each)
    largest, detail = sent[0], by_id[sent[0].stage]
    through_broadcast = "broadcast" in detail.uses
    kind = AvoidBroadcast if through_broadcast else SendFewerRows
    value = kind(
        price="setting" if through_broadcast else "code", because="results", saving=MODELLED,
        settings=(SettingChange(_BROADCAST, None, -1),) if through_broadcast else (),
        stage=largest.stage, name=detail.facts.name, sent_bytes=largest.sent_bytes, others=len(sent) - 1,
    )  # fmt: skip
    yield Candidate(value, at_most_ms=most_ms)


def _alone_after(debug: Debug, sent: _Sent) -> float:
    """Time on the critical path after the last result in which only the driver was active, ms."""
    after = [each for each in debug.critical_path if each.end_ms > sent.last_ms]
    alone_ms = 0.0
    for each in after:
        if not each.id.startswith("driver:"):
            break
        alone_ms += each.end_ms - max(each.start_ms, sent.last_ms)
    return min(alone_ms, 1000 * sent.sent_bytes / READ_BPS)


def _sent(connection: duckdb.DuckDBPyConnection) -> list[_Sent]:
    question = sql.text("collected", __package__)
    return [_Sent(*row) for row in connection.execute(question, {"least": MANY_BYTES}).fetchall()]
