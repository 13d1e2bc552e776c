"""What it costs to bring many rows to the driver: fetching them, and the program's reading of them afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from crystalperf.query import sql
from crystalperf.query.diagnose.group_statistics import Detail
from crystalperf.query.frameworks.spark.recommendations import AvoidBroadcast, SendFewerRows
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.recommendations import MODELLED, Candidate, SettingChange

MANY_BYTES = 32 * 2**20
"""A stage that sends the driver less brings it a result, not its data."""

_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"

READ_BPS = 2e6
"""A program in Python makes rows of no fewer bytes a second than this of what the driver was sent."""


@dataclass(frozen=True)
class _Sent:
    group: str
    sent_bytes: float
    fetch_ms: float
    last_ms: float


def occupied(connection: duckdb.DuckDBPyConnection) -> list[tuple[float, float]]:
    """Stretches after large results in which the program may have been reading them; see query.frameworks.Framework."""
    return [(each.last_ms, each.last_ms + 1000 * each.sent_bytes / READ_BPS) for each in _sent(connection)]


def candidates(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail], debug: Debug) -> Iterator[Candidate]:
    """Fewer rows for the driver, at most by what fetching them and the time alone after them took."""
    by_id = {each.facts.id: each for each in details}
    sent = [each for each in _sent(connection) if each.group in by_id]
    if not sent:
        return
    most_ms = 0.0
    for each in sent:
        facts = by_id[each.group].facts
        if facts.unit_ms > 0:
            most_ms += facts.path_ms * min(each.fetch_ms / facts.unit_ms, 1.0)
        most_ms += _alone_after(debug, each)
    largest, detail = sent[0], by_id[sent[0].group]
    through_broadcast = "broadcast" in detail.uses
    kind = AvoidBroadcast if through_broadcast else SendFewerRows
    value = kind(
        price="setting" if through_broadcast else "code", because="results", saving=MODELLED,
        settings=(SettingChange(_BROADCAST, None, -1),) if through_broadcast else (),
        stage=largest.group, name=detail.facts.name, sent_bytes=largest.sent_bytes, others=len(sent) - 1,
    )  # fmt: skip
    yield Candidate(value, at_most_ms=most_ms)


def _alone_after(debug: Debug, sent: _Sent) -> float:
    """ms of the critical path from the last result on in which the driver alone moved it on."""
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
