"""The timeout after which buffers are flushed though not full: from the job's settings, or from their number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import duckdb

from crystalperf.indexes.regex import regex
from crystalperf.query import sql
from crystalperf.query.execution.stream import COUNTED_OFF, Hop
from crystalperf.query.trace.sample_kinds import TIMED_KINDS

TIMEOUT_MS = 100.0
"""Flink's default buffer timeout, for jobs whose settings have none."""

FEW_RECORDS = 3.0
"""Records per buffer from which the number of buffers does not show the timeout.  Of a channel with x records within
the timeout, 1 - exp(-x) of the flushed buffers have one; at three records that is 94 %."""

_DURATION = regex(r"\s*(-?\d+(?:\.\d+)?)\s*([a-zµ]*)\s*")

_MS = {
    "": 1.0, "ns": 1e-6, "nano": 1e-6, "nanosecond": 1e-6, "µs": 1e-3, "micro": 1e-3, "microsecond": 1e-3,
    "ms": 1.0, "milli": 1.0, "millisecond": 1.0, "s": 1e3, "sec": 1e3, "second": 1e3,
    "m": 6e4, "min": 6e4, "minute": 6e4, "h": 3.6e6, "hour": 3.6e6, "d": 8.64e7, "day": 8.64e7,
}  # fmt: skip
"""Units of time in Flink's settings; the longer words also with an s."""


def stated_timeout_ms(connection: duckdb.DuckDBPyConnection) -> float | None:
    """The buffer timeout of the settings: infinite if only full buffers are sent, None if not set."""
    row = connection.execute(
        """
        SELECT coalesce(properties['execution.buffer-timeout.enabled'], ''),
            coalesce(properties['execution.buffer-timeout.interval'], properties['execution.buffer-timeout'], '')
        FROM runs
        """
    ).fetchone()
    if row is None:
        return None
    if row[0].strip().lower() == "false":
        return math.inf
    stated = _DURATION.fullmatch(row[1].lower())
    if stated is None:
        return None
    unit = _MS.get(stated[2], _MS.get(stated[2].removesuffix("s")))
    value = float(stated[1])
    return math.inf if value < 0 else None if unit is None else value * unit


def in_bursts(connection: duckdb.DuckDBPyConnection, edges: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Stages whose records come in bursts farther apart than the buffer timeout: sources whose threads wait that long
    at once, as their stacks show, and all stages downstream."""
    question = sql.text("bursts", __package__)
    given = {"due_ms": TIMEOUT_MS, "waits": [TIMED_KINDS[name] for name in ("PARK", "SLEEP", "MONITOR_WAIT")]}
    found = {stage for (stage,) in connection.execute(question, given).fetchall()}
    for source, target in edges:  # in the order of the flow
        if source in found:
            found.add(target)
    return frozenset(found)


def due(hop: Hop, stated_ms: float | None, *, at_limit: bool, bursts: bool = False) -> Hop:
    """A hop with the buffer timeout of the settings, or else of Flink's default, unless the number of buffers
    contradicts that.

    If records come in bursts far apart, the number of buffers shows only the distance of bursts.
    """
    if stated_ms is not None:
        return replace(hop, most_due_ms=stated_ms)
    unknown = hop.records_per_buffer < FEW_RECORDS or (bursts and hop.counted_due_ms > TIMEOUT_MS)
    usual = unknown or at_limit or abs(hop.counted_due_ms / TIMEOUT_MS - 1) < COUNTED_OFF
    return replace(hop, most_due_ms=TIMEOUT_MS, is_due_assumed=unknown) if usual else hop
