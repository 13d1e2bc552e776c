"""Advice for findings in Spark's runs, and findings of Spark alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np

from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.diagnose.findings.parts import LITTLE_BYTES
from crystalperf.query.diagnose.findings.slots import idle_stage, is_uneven, were_bound, were_free
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.intervals import covered, merged
from crystalperf.query.execution.load import max_concurrent
from crystalperf.query.frameworks import Advisor
from crystalperf.query.frameworks.spark import (
    demands,
    engine_times,
    failures,
    lakehouse,
    needs,
    shuffle_services,
    sites,
    statements,
    streaming,
    udfs,
    waits,
)
from crystalperf.query.frameworks.spark.assumptions import CpuTimeMissing, PythonCounted
from crystalperf.query.frameworks.spark.engines import SPILLS
from crystalperf.query.frameworks.spark.findings import (
    Call,
    CommitFewerFiles,
    Compiling,
    EvenCachedPartitions,
    EvenFiles,
    GiveSchema,
    MergeFewerPartitions,
    MoreSlices,
    PartitionWindow,
    RaisePartitions,
    ReuseGeneratedCode,
    SmallerFileParts,
    SmallerRowGroups,
    SplitKeys,
    SplittableFiles,
    UnaskedSlots,
    UnaskedStage,
)
from crystalperf.query.frameworks.spark.names import TITLES
from crystalperf.query.frameworks.spark.partitions import size_set
from crystalperf.query.frameworks.spark.python import memory_lines, split
from crystalperf.query.frameworks.spark.settings import flag, number, whole
from crystalperf.query.frameworks.spark.storage import file_findings
from crystalperf.query.results.advice import (
    Advice,
    FitCache,
    InspectTaskWaits,
    MoreTasks,
    RelaxPlacement,
    SmallerTasks,
)
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.findings import Committing, Finding
from crystalperf.query.results.remarks import Remark

_SCHEMA = regex(r"(parquet|orc|json|csv|text|load|table|xml|avro) at ")
_INFERRED = regex(r"(csv|json|load|xml) at ")
"""Calls of DataFrameReader that may read rows to infer the schema."""
_LIMIT = regex(r"(show|take|head|first|isEmpty|limit|showString|tail) at |^runJob at PythonRDD")
_COLUMNAR = regex(r"parquet|orc", re.IGNORECASE)
_CLEARLY = 1.2
MAX_PARTITION = "spark.sql.files.maxPartitionBytes"
MAX_EXECUTORS = "spark.dynamicAllocation.maxExecutors"
UNASKED_MS = 60_000.0
"""A stage of this length is long enough to get the executors that dynamic allocation requests."""
_GPUS = ("spark.executor.resource.gpu.amount", "spark.task.resource.gpu.amount")


def idle_advice(detail: StageStats) -> Advice | None:
    """Advice for a stage that left slots idle; None if nothing can or need be done."""
    if infers_schema(detail):
        return GiveSchema(inferred=True)
    if detail.with_data < detail.facts.slots:
        return few_tasks_advice(detail)
    if were_bound(detail):
        return RelaxPlacement()
    if were_free(detail):
        return InspectTaskWaits()
    return uneven_advice(detail) if is_uneven(detail) else SmallerTasks()


def few_tasks_advice(detail: StageStats) -> Advice | None:
    """Advice for a stage with fewer tasks than slots; None if nothing can or need be done."""
    facts = detail.facts
    if facts.tasks == 1 and reads_schema(detail):
        return GiveSchema(inferred=False)
    if _LIMIT.match(detail.place) or {"CollectLimit", "GlobalLimit", "TakeOrderedAndProject"} & set(detail.operators):
        return None  # a limit reads one partition first, which may have enough rows
    if one_window(detail):
        return PartitionWindow()
    if (call := program_call(detail)) is not None:
        return RaisePartitions(call, facts.tasks)
    if facts.tasks == 1 and any("SinglePartition" in text for text in detail.details):
        return None  # a global aggregate or sort ends in one task with any number of partitions
    if detail.with_data < facts.tasks:
        return uneven_advice(detail)
    if "AQEShuffleRead" in detail.operators or "CustomShuffleReader" in detail.operators:
        if detail.read_bytes < LITTLE_BYTES * facts.tasks:
            return None  # adaptive execution merged nearly empty partitions
        return MergeFewerPartitions()
    if reads_files(detail) and facts.scope is not None:
        return SmallerFileParts()
    if "python" in detail.uses and "scan" not in detail.uses and not {"shuffle read", "shuffle write"} & detail.uses:
        return MoreSlices()
    return MoreTasks()


_COALESCE = regex(r"Coalesce (\d+)")
_REPARTITION = regex(r"(SinglePartition|.*artitioning\((?:.*, )?(\d+)\)), REPARTITION_BY_NUM")


def program_call(detail: StageStats) -> Call | None:
    """The call of the program that gave a stage so few tasks, by its plan; None if it has none."""
    for text in detail.details:
        if (match := _COALESCE.fullmatch(text)) and int(match[1]) == detail.facts.tasks:
            return "coalesce"
        match = _REPARTITION.match(text.removeprefix("Exchange "))
        if match and "shuffle read" in detail.uses and int(match[2] or 1) == detail.facts.tasks:
            return "repartition"
    return None


def one_window(detail: StageStats) -> bool:
    """Whether a stage computes a window over all rows at once."""
    windows = {"Window", "WindowInPandas", "ArrowWindowPython"} & set(detail.operators)
    return detail.facts.tasks == 1 and bool(windows) and any("SinglePartition" in text for text in detail.details)


def uneven_advice(detail: StageStats) -> Advice:
    """Advice for a stage in which a few tasks read much more than most.

    A file counts as not splittable if a task read clearly more than Spark's largest file partition.  Row groups count
    as too few if whole partitions of columnar files were empty: a row group is read by the task at its start.
    """
    if detail.cache_misses:
        return FitCache()
    if "cached" in detail.uses and not reads_files(detail) and "shuffle read" not in detail.uses:
        return EvenCachedPartitions()
    if not reads_files(detail):
        return SplitKeys()
    largest = size_set(detail.settings, MAX_PARTITION)
    if detail.facts.scope is not None and detail.facts.most_bytes > _CLEARLY * largest:
        return SplittableFiles()
    if detail.with_data < detail.facts.tasks and any(_COLUMNAR.search(each) for each in detail.operators):
        return SmallerRowGroups()
    return EvenFiles()


def reads_files(detail: StageStats) -> bool:
    """Whether a stage reads storage, and no output of other stages."""
    return "scan" in detail.uses and "shuffle read" not in detail.uses


def reads_schema(detail: StageStats) -> bool:
    """Whether a stage reads the schema of files, from their ends, for the next query."""
    return detail.facts.scope is None and bool(_SCHEMA.match(detail.place)) and not detail.read_bytes


def infers_schema(detail: StageStats) -> bool:
    """Whether a stage reads whole files to infer their schema, for the next query: it belongs to no query itself."""
    return (
        detail.facts.scope is None
        and reads_files(detail)
        and bool(_INFERRED.match(detail.place))
        and detail.read_bytes > 0
    )


def runs_python(uses: frozenset[str]) -> bool:
    """Whether Python workers compute for the tasks of a stage of that kind."""
    return "python" in uses


def python_shares(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By stage, the share of Python workers in its tasks' time on no resource, if the plan's metrics time them (Spark
    4.0 and newer)."""
    if not sql.has_rows(connection, "operator_metrics"):
        return {}
    rows = connection.execute(sql.text("python_shares", __package__)).fetchall()
    return {stage_id: float(share) for stage_id, share in rows}


def spilling_operators(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[str]:
    """Names of the operators that spilled in these stages, the one that spilled most first."""
    if not sql.has_rows(connection, "operator_metrics"):
        return []
    rows = connection.execute(
        """
        SELECT operators.name, sum(value) AS spilled
        FROM operator_metrics JOIN operators USING (scope_id, node_id)
        WHERE list_contains(?, operator_metrics.name) AND value > 0 AND list_contains(?, stage_id)
        GROUP BY operators.name
        ORDER BY spilled DESC, operators.name
        """,
        [sorted(SPILLS), [each.facts.id for each in details]],
    ).fetchall()
    return [name for name, _ in rows]


def own_findings(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Finding]:
    """Findings of Spark alone: compiling generated code, committing a query's output, and small or repeatedly read
    files.
    """
    times = [each[0] for each in connection.execute("SELECT name FROM resources").fetchall()]
    total = " + ".join(f"{name}_ms" for name in with_other(times))
    rows = connection.execute(
        f"SELECT stage_id, sum({total}) FROM operator_times WHERE name = ? GROUP BY stage_id",
        [TITLES["code generation"]],
    ).fetchall()
    return [
        *compiling(details, dict(rows)),
        *committing(connection, details),
        *_unasked(connection, details),
        *waits.slots_awaited(connection),
        *waits.speculation(connection),
        *file_findings(connection, details),
        *lakehouse.merge_scans(connection, [each.facts.id for each in details]),
    ]


def _unasked(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Finding]:
    """One finding for all of unasked_slots, which names the largest."""
    most = most_slots(connection, details[0].settings) if details else 0
    parts = sorted(unasked_slots(details, most), key=lambda each: -each.cost_ms)
    if not parts:
        return []
    return [UnaskedSlots(sum(each.cost_ms for each in parts), "modelled", parts[0].advice, tuple(parts))]


def unasked_slots(details: Sequence[StageStats], most: int) -> list[UnaskedStage]:
    """Stages with fewer slots than the `most` of the run, because dynamic allocation requests slots by the number of
    tasks.

    Evidence: they had as many slots as tasks, or fewer, and lasted long enough to get more.
    """
    found = []
    for detail in details:
        facts = detail.facts
        if facts.path_ms <= 0 or facts.length_ms < UNASKED_MS or not facts.slots <= detail.with_data < most:
            continue
        advice = few_tasks_advice(detail)
        if advice is None:
            continue
        idle = 1 - min(facts.task_ms / (most * facts.length_ms), 1.0)
        cost_ms = facts.path_ms * min(1 - detail.with_data / most, idle)
        stage = idle_stage(detail, "few-tasks", cost_ms, idle, advice)
        found.append(UnaskedStage(**vars(stage), run_slots=most))
    return found


def most_slots(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, str]) -> int:
    """The most concurrent slots that dynamic allocation had, or may have; 0 if it is off."""
    if not flag(properties.get("spark.dynamicAllocation.enabled")):
        return 0
    rows = connection.execute("SELECT added_ms, removed_ms, slots FROM workers WHERE slots > 0").fetchall()
    executors = max_concurrent((added, removed) for added, removed, _ in rows)
    allowed = whole(properties.get(MAX_EXECUTORS)) or executors
    return int(min(executors, allowed) * max((slots for _, _, slots in rows), default=0))


def committing(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Committing]:
    """Queries that continued after their last stage, which wrote output, while no task of any query ran."""
    writing = [each.facts.id for each in details if "output" in each.uses]
    rows = connection.execute(
        """
        SELECT scope_id, max(stages.end_ms) AS wrote_ms, scopes.end_ms
        FROM scopes JOIN stages USING (scope_id)
        WHERE kind = 'sql' AND scopes.end_ms > stages.end_ms
        GROUP BY scope_id, scopes.end_ms
        HAVING list_contains(?, arg_max(stage_id, stages.end_ms))
        """,
        [writing],
    ).fetchall()
    if not rows:
        return []
    times = connection.execute("SELECT launch_ms, finish_ms FROM tasks WHERE launch_ms IS NOT NULL").fetchnumpy()
    running = merged(*(np.asarray(times[name], np.float64) for name in ("launch_ms", "finish_ms")))
    alone_ms = {query: end - wrote - covered(running, wrote, end) for query, wrote, end in rows}
    first = max(alone_ms, key=lambda each: alone_ms[each])
    cost_ms = sum(alone_ms.values())
    return [Committing(cost_ms, "measured", CommitFewerFiles(), first, alone_ms[first], len(rows) - 1)]


def compiling(details: Sequence[StageStats], compiling_ms: dict[str, float]) -> list[Compiling]:
    """Compilation of generated code within tasks, at the first run of a plan on an executor.

    `compiling_ms` is the task time of each stage spent on it.
    """
    cost = sum(
        each.facts.path_ms * compiling_ms.get(each.facts.id, 0.0) / each.facts.task_ms
        for each in details
        if each.facts.task_ms > 0
    )
    return [Compiling(cost, "modelled", ReuseGeneratedCode())] if cost > 0 else []


def assumptions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Assumption]:
    """The assumptions that a Python worker is busy while its task waits for it, and what replaces missing CPU time."""
    found: list[Assumption] = []
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    tasks, timed, collected_ms = connection.execute(
        """
        SELECT count(own_ms), count(own_cpu_ms), coalesce(sum(gc_ms), 0)
        FROM tasks WHERE finish_ms > ? AND launch_ms < ?
        """,
        bounds,
    ).fetchall()[0]
    if tasks and not timed and not execution.has_samples:
        found.append(CpuTimeMissing(float(collected_ms)))
    seen = """
        SELECT 1 FROM samples JOIN stacks USING (stack_id)
        WHERE task_id IS NOT NULL AND operator = 'python' AND cpu = 1 AND time_ms BETWEEN ? AND ?
        LIMIT 1
    """
    if sql.has_rows(connection, "samples") and connection.execute(seen, bounds).fetchone() is not None:
        found.append(PythonCounted())
    return found


def unmodelled_device(connection: duckdb.DuckDBPyConnection, execution: Execution) -> str | None:
    """GPU, if a plan of the scope runs on it, or a run without plans requests it."""
    on_gpu, planned = connection.execute(
        """
        SELECT count(*) FILTER (regexp_matches(operators.name, '^Gpu')), count(*)
        FROM operators JOIN scopes USING (scope_id)
        WHERE start_ms < $2 AND coalesce(end_ms, $2) > $1
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()[0]
    requests_gpu = any(number(execution.properties.get(key)) for key in _GPUS)
    plugin = "com.nvidia.spark.SQLPlugin" in execution.properties.get("spark.plugins", "")
    if len(execution.tasks) and (on_gpu or (not planned and (requests_gpu or plugin))):
        return "GPU"
    return None


def own_remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """Spark's own measurements that no finding has: statements of a server's clients, changes of tables, resource
    profiles and barrier stages, decommissioned executors, shuffle services, batches of streams, time and memory of
    Python workers, time of engines, and heaps too large or near their limit."""
    return [
        *statements.remarks(connection, execution),
        *lakehouse.remarks(connection, execution),
        *demands.remarks(connection, execution),
        *waits.decommissioned(connection, execution),
        *shuffle_services.remarks(connection, execution),
        *streaming.remarks(connection, execution),
        *split.remarks(connection, execution),
        *memory_lines.remarks(connection, execution),
        *engine_times.remarks(connection, execution),
        *needs.remarks(connection, execution),
    ]


RULES = Advisor(
    idle_advice=idle_advice,
    skew_advice=uneven_advice,
    has_device_finding=reads_schema,
    delegated_shares=python_shares,
    spilling_operators=spilling_operators,
    findings=own_findings,
    leading=streaming.falls_behind,
    other_causes=waits.other_causes,
    was_superseded=lambda reason: waits.SUPERSEDED in reason,
    assumptions=assumptions,
    remarks=own_remarks,
    named_parts=udfs.named_parts,
    call_sites=sites.call_sites,
    unmodelled_device=unmodelled_device,
    was_released=failures.was_released,
    was_cancelled=failures.was_cancelled,
    exhausted_memory=failures.exhausted_memory,
)
