"""The bytes that each process of a training gives to collectives in a scope."""

from __future__ import annotations

import duckdb

from crystalperf.query.execution.execution import Exchange, Execution

_SENT = """
SELECT sum(bytes) / count(DISTINCT worker_id)
FROM training_collectives WHERE began_ms BETWEEN $start AND $end
"""


def exchange(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Exchange | None:
    """The bytes that each process gives to the collectives of a scope; None for parameter servers, and without bytes
    or collectives."""
    processes = float(execution.properties.get("processes", "1"))
    if processes < 2 or execution.properties.get("synchronous") == "no":
        return None
    span = {"start": execution.scope.start_ms, "end": execution.scope.end_ms}
    row = connection.execute(_SENT, span).fetchone()
    return None if row is None or not row[0] else Exchange(float(row[0]), processes)
