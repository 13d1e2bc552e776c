"""Where the time of a scope went, and what would be worth changing (paper §4.2, `debug`)."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import duckdb
import numpy as np

from indexes import resources
from query.answers import Debug, Finding, FunctionTime, Parts, PathItem, SampleCounts, SqlExecution
from query.critical import bottleneck, critical_path
from query.dag import Floats
from query.execution import Execution

SKEW = 2.0
"""A stage is skewed where its longest task takes this many times the median."""

_LEFT_OUT_SHOWN = 3

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
    return Debug(
        scope=execution.scope.text,
        runtime_ms=execution.runtime_ms,
        bottleneck=bottleneck(pieces, resources()),
        resource_ms=named(total),
        critical_path=path,
        samples=_samples(connection, execution),
        sql_executions=_sql_executions(connection, execution),
        findings=_findings(execution, path),
        functions=_functions(connection, execution),
        unseen=_unseen(connection, execution),
    )


def named(parts_ms: Floats) -> Parts:
    """A row of parts by resource name."""
    return dict(zip((*resources(), "other"), (float(each) for each in parts_ms), strict=True))


def _samples(connection: duckdb.DuckDBPyConnection, execution: Execution) -> SampleCounts:
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    total, on_tasks, resolved = connection.execute(
        """
        SELECT count(*), count(task_id), count(*) FILTER (task_id IS NOT NULL AND deciding_depth IS NOT NULL)
        FROM samples JOIN stacks USING (stack_id)
        WHERE time_ms BETWEEN ? AND ?
        """,
        bounds,
    ).fetchall()[0]
    skipped = connection.execute(_sql("skipped_frames"), bounds).fetchall()
    return SampleCounts(total, on_tasks, resolved, dict(skipped))


def _functions(
    connection: duckdb.DuckDBPyConnection, execution: Execution, limit: int = 20
) -> tuple[FunctionTime, ...]:
    names = resources()
    rows = connection.execute(
        _sql("hot_functions"), [execution.scope.start_ms, execution.scope.end_ms, limit]
    ).fetchall()
    found = []
    for symbol, index_name, time_ms, *vector in rows:
        largest = int(np.argmax(vector))
        found.append(FunctionTime(symbol, index_name, names[largest], float(vector[largest]), time_ms))
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


def _findings(execution: Execution, path: tuple[PathItem, ...]) -> tuple[Finding, ...]:
    """What cost time on the critical path, dearest first; each cost is an upper bound."""
    found: list[Finding] = []
    tasks, dag = execution.tasks, execution.dag
    driver = sum(item.end_ms - item.start_ms for item in path if item.id.startswith("driver:"))
    found.append(
        Finding(
            driver,
            "the driver alone held the run up: planning, submitting, collecting, or the program itself",
            "measured",
            "more or faster executors do not shorten this",
        )
    )
    for item in path:
        if not item.id.startswith("stage:"):
            continue
        mine = tasks.stage == dag.nodes[item.id].stage
        durations = tasks.duration_ms[mine]
        median, longest = float(np.median(durations)), float(durations.max())
        length = item.end_ms - item.start_ms
        if len(durations) >= 3 and longest > SKEW * median:
            found.append(
                Finding(
                    min(longest - median, length),
                    f"{item.id} {item.name}: its longest task takes {longest / median:.1f} times the median",
                    "measured",
                    "look for a skewed key or an unsplittable file",
                )
            )
        if len(durations) < len(execution.slots):
            shorter = length * (1 - len(durations) / len(execution.slots))
            found.append(
                Finding(
                    shorter,
                    f"{item.id} {item.name}: {_tasks(len(durations))} for {len(execution.slots)} slots",
                    "modelled",
                    "more partitions would use the idle slots",
                )
            )
    spilled = float(execution.volumes.spill_disk.sum())
    if spilled:
        disk = float(tasks.parts_ms[execution.volumes.spill_disk > 0, resources().index("disk")].sum())
        found.append(
            Finding(
                disk / max(len(execution.slots), 1),
                f"{spilled / 2**20:.0f} MiB were spilled to disk for want of memory",
                "modelled",
                "more memory per executor, or more partitions",
            )
        )
    gc = float(execution.volumes.gc_ms.sum())
    if gc > 0.1 * float(tasks.duration_ms.sum() or 1):
        found.append(
            Finding(
                gc / max(len(execution.slots), 1),
                "garbage collection took a tenth or more of task time",
                "measured",
                "more memory per executor, or fewer slots",
            )
        )
    worth = [each for each in found if each.cost_ms >= WORTH_MS * execution.runtime_ms]
    return tuple(sorted(worth, key=lambda each: -each.cost_ms))


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"


def _unseen(connection: duckdb.DuckDBPyConnection, execution: Execution) -> tuple[str, ...]:
    """What this run could not show, and what would have shown it."""
    unseen: list[str] = []
    seen = {
        row[0]
        for row in connection.execute(
            "SELECT DISTINCT executor_id FROM samples WHERE executor_id IS NOT NULL"
        ).fetchall()
    }
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
    kinds = {row[0] for row in connection.execute("SELECT DISTINCT kind FROM samples").fetchall()}
    if "wall" not in kinds and "park" not in kinds:
        unseen.append("blocked threads: the recordings have neither wall-clock samples nor park events")
    return tuple(unseen)


def _sql(name: str) -> str:
    return files("query").joinpath(f"sql/{name}.sql").read_text(encoding="utf-8")
