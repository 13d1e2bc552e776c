"""Task time of engines that ran operators of plans, and of what stayed on the JVM (views/spark_fallbacks.sql)."""

from __future__ import annotations

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.engines import BY_KEY, SPILLS
from crystalperf.query.frameworks.spark.remarks import EngineUse


@frozen
class FallbackTime:
    """The task time of a fallback in a stage, ms."""

    scope: str
    number: int
    engine: str
    stage: str
    operators: tuple[str, ...]
    reason: str | None
    jvm_ms: float
    conversion_ms: float


def fallback_times(connection: duckdb.DuckDBPyConnection) -> list[FallbackTime]:
    """All fallbacks of a run, by the stages in which they took time."""
    if not sql.has_rows(connection, "spark_engine_operators"):
        return []
    rows = connection.execute(
        f"""
        SELECT scope_id, fallback, engine, stage_id, operators, reason, jvm_ms, conversion_ms
        FROM ({sql.text("views/spark_fallbacks", __package__).format(plus_ms=_plus_ms(connection))})
        WHERE stage_id IS NOT NULL
        """
    ).fetchall()
    return [
        FallbackTime(scope, number, engine, stage, tuple(operators or ()), *rest)
        for scope, number, engine, stage, operators, *rest in rows
    ]


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[EngineUse]:
    """The share of an engine in the task time of a scope, if one ran operators of its plans."""
    if not sql.has_rows(connection, "spark_engine_operators"):
        return []
    stages = [each.stage_id for each in execution.dag.stages]
    rows = connection.execute(
        f"""
        WITH placed AS (
            SELECT t.stage_id, engine, ran_in, {_plus_ms(connection)} AS ms
            FROM operator_times AS t LEFT JOIN spark_engine_operators USING (scope_id, node_id)
            WHERE list_contains($stages, t.stage_id)
        )
        SELECT
            max(engine),
            sum(ms),
            coalesce(sum(ms) FILTER (ran_in = 'engine'), 0),
            coalesce(sum(ms) FILTER (ran_in = 'jvm'), 0),
            coalesce(sum(ms) FILTER (ran_in = 'conversion'), 0)
        FROM placed WHERE stage_id IN (SELECT stage_id FROM placed WHERE engine IS NOT NULL)
        """,
        {"stages": stages},
    ).fetchall()
    engine, task_ms, engine_ms, jvm_ms, conversion_ms = rows[0]
    if engine is None or not task_ms:
        return []
    ((spilled,),) = connection.execute(
        """
        SELECT coalesce(sum(value), 0)
        FROM operator_metrics AS m JOIN spark_engine_operators AS e USING (scope_id, node_id)
        WHERE e.ran_in = 'engine' AND list_contains($names, m.name) AND list_contains($stages, m.stage_id)
        """,
        {"names": sorted(SPILLS), "stages": stages},
    ).fetchall()
    ((held_ms, waited_ms),) = connection.execute(
        """
        SELECT coalesce(sum(held_ms), 0), coalesce(sum(waited_ms), 0)
        FROM spark_gpu_times WHERE list_contains($stages, stage_id)
        """,
        {"stages": stages},
    ).fetchall()
    found = EngineUse(
        engine=BY_KEY[engine].title, task_ms=float(task_ms), engine_ms=float(engine_ms), jvm_ms=float(jvm_ms),
        conversion_ms=float(conversion_ms), spilled_bytes=float(spilled), gpu_held_ms=float(held_ms),
        gpu_waited_ms=float(waited_ms),
    )  # fmt: skip
    return [found]


def _plus_ms(connection: duckdb.DuckDBPyConnection) -> str:
    """The sum of the times of operator_times, as an expression."""
    names = [each for (each,) in connection.execute("SELECT name FROM resources").fetchall()]
    return " + ".join(f"{each}_ms" for each in with_other(names))
