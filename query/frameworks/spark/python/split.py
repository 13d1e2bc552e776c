"""The task time of stages with Python workers, by what workers and JVM did (views/spark_python.sql)."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from crystalperf.indexes.resources import OTHER
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.remarks import PythonParts, PythonTime, ResourceShare

LEAST_LABELLED = 0.1
"""The least share of the user's code that indexes have to know for its resources to be named."""


def python_times(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[PythonTime]:
    """The stages of a scope of which there are profiles of Python workers, the one with the most task time first."""
    if not sql.has_rows(connection, "spark_python_times"):
        return []
    names = {each.stage_id: each.name for each in execution.dag.stages}
    package = __package__.rpartition(".")[0]
    rows = connection.execute(
        f"""
        SELECT
            stage_id, function, file, line, coalesce(function_ms, 0), user_ms, serialization_ms, start_ms, jvm_ms,
            wait_ms
        FROM ({sql.text("views/spark_python", package)}) WHERE recorder IS NOT NULL AND list_contains(?, stage_id)
        """,
        [list(names)],
    ).fetchall()
    uses = _uses(connection)
    return [
        PythonTime(
            stage,
            names[stage],
            PythonParts(*parts),
            function,
            where(file, line),
            float(function_ms),
            user_uses=uses.get(stage, ()),
        )
        for stage, function, file, line, function_ms, *parts in rows
    ]


def _uses(connection: duckdb.DuckDBPyConnection) -> dict[str, tuple[ResourceShare, ...]]:
    """By stage, the resources of its user's code, if an index labels at least LEAST_LABELLED of that."""
    rows = connection.execute(
        """
        SELECT stage_id, resource, sum(time_ms) / sum(sum(time_ms)) OVER (PARTITION BY stage_id) AS share
        FROM spark_python_labels
        GROUP BY stage_id, resource
        ORDER BY stage_id, share DESC, resource
        """
    ).fetchall()
    found: dict[str, list[ResourceShare]] = {}
    for stage, resource, share in rows:
        found.setdefault(stage, []).append(ResourceShare(resource, share))
    return {
        stage: tuple(each for each in shares if each.resource != OTHER)
        for stage, shares in found.items()
        if sum(each.share for each in shares if each.resource != OTHER) >= LEAST_LABELLED
    }


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[PythonTime]:
    """The first of them, with the number of others."""
    found = python_times(connection, execution)
    return [replace(found[0], others=len(found) - 1)] if found else []


def where(file: str | None, line: int | None) -> str | None:
    """A file's name with a line: `job.py:12`."""
    if not file:
        return None
    name = file.rpartition("/")[2]
    return f"{name}:{line}" if line else name
