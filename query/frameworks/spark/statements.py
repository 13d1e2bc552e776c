"""Statements of the clients of a Spark Connect or Thrift server: which of them, and whose, took most task time."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.remarks import HeavySession, HeavyStatement, Statements
from crystalperf.query.results.remarks import Remark

SHOWN = 3
"""Statements, and sessions, that a remark names."""


@frozen
class _Row:
    """A row of statements.sql."""

    scope: str
    session: str | None
    user: str | None
    text: str | None
    status: str
    length_ms: float
    task_ms: float


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """The heaviest statements and sessions of a scope, if clients sent it several statements."""
    if not sql.has_rows(connection, "spark_statements"):
        return []
    bounds = {"start": execution.scope.start_ms, "end": execution.scope.end_ms}
    question = sql.text("statements", __package__).format(scope_parts=sql.text("views/run/scope_parts"))
    found = [_Row(*row) for row in connection.execute(question, bounds).fetchall()]
    if len(found) < 2:
        return []
    whole_ms = sum(each.task_ms for each in found)
    heaviest = [
        HeavyStatement(each.scope, each.user, each.text, each.length_ms, each.task_ms, each.task_ms / (whole_ms or 1.0))
        for each in found[:SHOWN]
    ]
    sessions = _sessions(found)
    failed = sum(each.status in ("failed", "canceled") for each in found)
    return [Statements(len(found), failed, len(sessions), tuple(heaviest), tuple(sessions[:SHOWN]))]


def _sessions(found: Sequence[_Row]) -> list[HeavySession]:
    """The sessions of statements, the one with most task time first."""
    whole_ms = sum(each.task_ms for each in found) or 1.0
    of: dict[tuple[str | None, str | None], list[_Row]] = {}
    for each in found:
        of.setdefault((each.session, each.user), []).append(each)
    sessions = [
        HeavySession(session, user, len(rows), sum(each.task_ms for each in rows) / whole_ms)
        for (session, user), rows in of.items()
    ]
    return sorted(sessions, key=lambda each: -each.share)
