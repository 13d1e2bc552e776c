"""Where the time of a scope went, and what would be worth changing (paper §4.2, `debug`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np

from indexes import resources
from query import sql
from query.answers.values import (
    Debug,
    Finding,
    FunctionTime,
    OperatorTime,
    Parts,
    PathItem,
    SampleCounts,
    SqlExecution,
)
from query.attribute import storage
from query.explain import findings
from query.explain.facts import Detail, disagreements, host_times, neighbours, stage_details
from query.explain.waiting import waiting
from query.model.critical import bottleneck, critical_path
from query.model.dag import Floats
from query.model.execution import Execution

_LEFT_OUT_SHOWN = 3

CODE_GENERATION = "compiling generated code"
"""What operator_times calls it (query.frameworks.spark.log.operators)."""

UNSEEN = 0.2
"""Time without an operator is worth a word from this share of the queries' task time."""

NEAR = 0.75
"""A resource with this much of the bottleneck's time on the path holds the run up as well."""

WORTH_MS = 0.01
"""A finding is shown from this share of the runtime."""


def diagnose(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Debug:
    """The answer to `debug` for one scope."""
    pieces = critical_path(execution.dag, execution.tasks, execution.driver.between)
    total = np.sum([piece.parts_ms for piece in pieces], axis=0) if pieces else np.zeros(len(resources()) + 1)
    path = tuple(
        PathItem(piece.node.node_id, piece.node.name, piece.start_ms, piece.end_ms, named(piece.parts_ms))
        for piece in pieces
    )
    other_ms, alone_ms = waiting(connection, execution, pieces)
    largest = bottleneck(pieces, resources(), max(other_ms.values(), default=0.0))
    details = stage_details(connection, execution, path)
    return Debug(
        scope=execution.scope.text,
        runtime_ms=execution.runtime_ms,
        bottleneck=largest,
        resource_ms=named(total),
        critical_path=path,
        samples=_samples(connection, execution),
        sql_executions=_sql_executions(connection, execution),
        findings=_findings(connection, execution, alone_ms, other_ms, details, _limits(named(total), largest)),
        functions=_functions(connection, execution),
        unseen=_unseen(connection, execution),
        other_ms=other_ms,
        stages=tuple(each.facts for each in details),
        operators=_operators(connection, execution),
        disagreements=disagreements(connection, execution, details),
        assumptions=_assumptions(connection, execution),
    )


def _limits(path_ms: Parts, largest: str) -> frozenset[str]:
    """The bottleneck, and what comes near it: shares are not known so well as to tell which of the two comes first."""
    return frozenset(name for name in resources() if path_ms[name] >= NEAR * path_ms.get(largest, 0.0))


def named(parts_ms: Floats) -> Parts:
    """A row of parts by resource name."""
    return dict(zip((*resources(), "other"), (float(each) for each in parts_ms), strict=True))


def _samples(connection: duckdb.DuckDBPyConnection, execution: Execution) -> SampleCounts:
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    total, on_tasks, resolved = connection.execute(
        """
        SELECT count(*), count(task_id), count(*) FILTER (task_id IS NOT NULL AND deciding_depth IS NOT NULL)
        FROM samples JOIN stacks USING (stack_id)
        WHERE time_ms BETWEEN ? AND ? AND kind <> 'waking'
        """,
        bounds,
    ).fetchall()[0]
    skipped = connection.execute(sql.text("skipped_frames"), bounds).fetchall()
    return SampleCounts(total, on_tasks, resolved, dict(skipped))


def _functions(
    connection: duckdb.DuckDBPyConnection, execution: Execution, limit: int = 20
) -> tuple[FunctionTime, ...]:
    names = resources()
    rows = connection.execute(
        sql.text("hot_functions"), [execution.scope.start_ms, execution.scope.end_ms, limit]
    ).fetchall()
    found = []
    for symbol, index_name, time_ms, callee, callee_ms, *vector in rows:
        largest = int(np.argmax(vector))
        share = float(vector[largest])
        found.append(FunctionTime(symbol, index_name, names[largest], share, time_ms, callee, callee_ms or 0.0))
    return tuple(found)


def _sql_executions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[SqlExecution, ...]:
    rows = connection.execute(
        """
        SELECT sql_id, coalesce(name, 'query ' || sql_id), start_ms, end_ms
        FROM sql_executions
        WHERE start_ms < ? AND coalesce(end_ms, ?) > ?
        ORDER BY start_ms, sql_id
        """,
        [execution.scope.end_ms, execution.scope.end_ms, execution.scope.start_ms],
    ).fetchall()
    return tuple(SqlExecution(*row) for row in rows)


def _findings(
    connection: duckdb.DuckDBPyConnection,
    execution: Execution,
    alone_ms: Mapping[str, float],
    other_ms: Mapping[str, float],
    details: Sequence[Detail],
    limits: Collection[str],
) -> tuple[Finding, ...]:
    """What cost time on the critical path, dearest first; each cost is an upper bound."""
    hosts = host_times(connection, execution)
    first = connection.execute("SELECT min(added_ms) FROM executors WHERE coalesce(slots, 0) > 0").fetchone()
    found = findings.driver(alone_ms, other_ms, first[0] if first else None)
    for detail in details:
        if detail.facts.path_ms > 0:
            found += findings.straggler(detail, hosts)
            found += findings.idle_slots(detail)
            found += findings.starting_tasks(detail)
    found += findings.slow_hosts(hosts, details)
    found += findings.spilling(details, _spilling_operators(connection, details))
    found += findings.collecting_garbage(details)
    beside = neighbours(connection, execution.scope.start_ms, execution.scope.end_ms)
    found += findings.short_of_cpus(details, beside, execution.slots.cpu_limit())
    lost_ms, lost, reason = connection.execute(
        """
        SELECT coalesce(sum(finish_ms - launch_ms), 0), count(*), mode(reason)
        FROM tasks WHERE status IN ('failed', 'killed') AND finish_ms > ? AND launch_ms < ?
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()[0]
    found += findings.wasted(lost_ms, lost, reason, len(execution.slots))
    found += findings.compiling(details, _compiling(connection))
    found += findings.odd_use(details, limits)
    worth = [each for each in found if each.cost_ms >= WORTH_MS * execution.runtime_ms]
    return tuple(sorted(worth, key=lambda each: -each.cost_ms))


def _spilling_operators(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[str]:
    """Names of the operators that spilled in these stages, the one that spilled most first."""
    stages = {each.facts.id for each in details}
    rows = connection.execute(
        """
        SELECT operators.name, stage_id, stage_attempt, value
        FROM operator_metrics JOIN operators USING (sql_id, node_id)
        WHERE operator_metrics.name = 'spill size' AND value > 0
        """
    ).fetchall()
    total: dict[str, float] = {}
    for name, stage_id, attempt, value in rows:
        if f"stage:{stage_id}.{attempt}" in stages:
            total[name] = total.get(name, 0.0) + value
    return sorted(total, key=lambda each: -total[each])


def _compiling(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Task time of each stage in which code was compiled."""
    names = " + ".join(f"{name}_ms" for name in (*resources(), "other"))
    rows = connection.execute(
        f"SELECT stage_id, stage_attempt, sum({names}) FROM operator_times WHERE name = ? GROUP BY ALL",
        [CODE_GENERATION],
    ).fetchall()
    return {f"stage:{stage_id}.{attempt}": float(time_ms) for stage_id, attempt, time_ms in rows}


def _operators(
    connection: duckdb.DuckDBPyConnection, execution: Execution, limit: int = 200
) -> tuple[OperatorTime, ...]:
    names = (*resources(), "other")
    sums = ", ".join(f"sum({name}_ms) AS {name}_ms" for name in names)
    total = " + ".join(f"sum({name}_ms)" for name in names)
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    rows = connection.execute(sql.text("operator_times").format(sums=sums, total=total), bounds).fetchmany(limit)
    return tuple(
        OperatorTime(row[0], row[1], row[2], tuple(row[3]), row[4], dict(zip(names, row[5:], strict=True)))
        for row in rows
    )


def _assumptions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[str, ...]:
    """What was taken for granted in counting time on resources."""
    stages = [(stage.stage_id, stage.attempt) for stage in execution.dag.stages]
    found = storage.assumptions(connection, stages, execution.has_samples)
    python = connection.execute(
        """
        SELECT count(*) FROM samples JOIN stacks USING (stack_id)
        WHERE task_id IS NOT NULL AND operator = 'python' AND cpu = 1 AND time_ms BETWEEN ? AND ?
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()[0][0]
    if python:
        found.append("a task that waits for its Python worker waits for that worker's CPU: counted as cpu")
    return tuple(found)


def _unseen(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[str, ...]:
    """What this run could not show, and what would have shown it."""
    unseen: list[str] = []
    seen = {
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT executor_id FROM samples WHERE executor_id IS NOT NULL"
        ).fetchall()
    }
    noted = "SELECT meaning FROM import_stats WHERE name IN ('unindexed code', 'other index') ORDER BY name DESC"
    unseen += [f"code: {meaning}" for (meaning,) in connection.execute(noted).fetchall()]
    left_out = connection.execute(
        """
        SELECT origin, meaning FROM import_stats
        WHERE name IN ('foreign recording', 'other application', 'other time', 'unreadable recording', 'untimed stacks')
        ORDER BY origin
        """
    ).fetchall()
    unseen += [f"{Path(origin).name}: {meaning}" for origin, meaning in left_out[:_LEFT_OUT_SHOWN]]
    if len(left_out) > _LEFT_OUT_SHOWN:
        unseen.append(f"{len(left_out) - _LEFT_OUT_SHOWN} more recordings that were left out")
    if not execution.has_samples:
        what = "none of the recordings given could be used" if left_out else "the run left no stack samples"
        unseen.append(
            f"code: {what}, so time that Spark does not measure itself (reading and writing"
            " storage, waiting for a CPU) stays `other`; `crystalperf setup spark` shows what to add to the job"
        )
        why = "Spark times only some of them; stack samples tell the others"
        unseen += _unseen_operators(connection, execution, why)
        return tuple(unseen)
    if "driver" not in seen:
        unseen.append("the driver's own time: it left no recording, so what it did between the stages is `other`")
    ran = {row[0] for row in connection.execute("SELECT DISTINCT executor_id FROM tasks").fetchall()}
    missing = sorted(each for each in ran - seen if each is not None)
    if missing and len(missing) == len(ran):
        unseen.append("code of tasks: no executor left a recording, so what Spark does not measure itself is `other`")
    elif missing:
        unseen.append(
            f"{len(missing)} of {len(ran)} executors left no recording ({', '.join(missing[:5])}"
            f"{' …' if len(missing) > 5 else ''}); the others speak for them"
        )
    unseen += _unseen_operators(connection, execution, "too few samples fell into these stages")
    kinds = {row[0] for row in connection.execute("SELECT DISTINCT kind FROM samples").fetchall()}
    if "wall" not in kinds and "park" not in kinds:
        unseen.append("blocked threads: the recordings have neither wall-clock samples nor park events")
    return tuple(unseen)


def _unseen_operators(connection: duckdb.DuckDBPyConnection, execution: Execution, why: str) -> list[str]:
    """How much of the queries' task time no operator could be given, where it is much."""
    names = " + ".join(f"{name}_ms" for name in (*resources(), "other"))
    total, lost = connection.execute(
        f"""
        SELECT coalesce(sum({names}), 0), coalesce(sum({names}) FILTER (basis = 'nothing'), 0)
        FROM operator_times
        WHERE sql_id IS NOT NULL AND (stage_id, stage_attempt) IN (
            SELECT (stage_id, stage_attempt) FROM tasks WHERE finish_ms > ? AND launch_ms < ?
        )
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()[0]
    if lost <= UNSEEN * total:
        return []
    return [f"operators: {lost / total:.0%} of the queries' task time could not be given to one; {why}"]
