"""What a user of Spark can do about a finding, and findings that only Spark has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np

from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.answers.values import Finding
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.alone import COMMITTING
from crystalperf.query.explain.findings.lanes import is_uneven, were_bound, were_free
from crystalperf.query.explain.findings.parts import LITTLE_BYTES, Part
from crystalperf.query.frameworks import Rules
from crystalperf.query.frameworks.spark import failures, streaming
from crystalperf.query.frameworks.spark.assumptions import CpuTimeMissing, PythonCounted
from crystalperf.query.frameworks.spark.names import TITLES
from crystalperf.query.frameworks.spark.partitions import size_set
from crystalperf.query.frameworks.spark.settings import flag, number, whole
from crystalperf.query.frameworks.spark.storage import file_findings
from crystalperf.query.model.amounts import counted, lasting
from crystalperf.query.model.execution import Execution
from crystalperf.query.model.load import most_at_a_time
from crystalperf.query.model.timeline import covered, merged
from crystalperf.query.results.assumptions import Assumption

_SCHEMA = re.compile(r"(parquet|orc|json|csv|text|load|table|xml|avro) at ")
_INFERRED = re.compile(r"(csv|json|load|xml) at ")
"""Of what is read with DataFrameReader, what rows have to be looked at for."""
_LIMIT = re.compile(r"(show|take|head|first|isEmpty|limit|showString|tail) at |^runJob at PythonRDD")
_COLUMNAR = re.compile(r"parquet|orc", re.IGNORECASE)
_CLEARLY = 1.2
MAX_PARTITION = "spark.sql.files.maxPartitionBytes"
MOST_EXECUTORS = "spark.dynamicAllocation.maxExecutors"
UNASKED_MS = 60_000.0
"""A stage that lasts so long would have had the executors that Spark asks for as it needs them."""
_GPUS = ("spark.executor.resource.gpu.amount", "spark.task.resource.gpu.amount")
_SPLITS_SKEW = "let adaptive execution split skewed joins"

ADVICE = {
    "coordinator": "Run fewer and larger queries over fewer files: the driver works alone",
    "no worker ever": (
        "check that the cluster has free cores and memory for what one executor asks for (spark.executor.cores,"
        " spark.executor.memory)"
    ),
    "starting units": "fewer, larger partitions",
    "spilling": "more memory per executor, fewer slots, or more partitions",
    "kept": (
        "more memory per executor or more executors, so that all rows that are kept have room; or keep them smaller:"
        " serialized, and on disk too (StorageLevel.MEMORY_AND_DISK_SER)"
    ),
    "delegates spilling": "more memory for each Python worker (spark.python.worker.memory), or more partitions",
    "failed units": "look at why they failed: the whole stack is in the event log and on the stage's page of the UI",
    "killed units": "look at why they were killed: Spark ran speculative copies of slow tasks, or called work off",
    "container memory": (
        "a larger spark.executor.memoryOverhead, fewer slots per executor (spark.executor.cores), or more partitions"
    ),
    "killed memory": (
        "the cluster manager's log says who killed it; where that was for memory, a larger"
        " spark.executor.memoryOverhead or fewer slots per executor"
    ),
    "heap memory": "more spark.executor.memory, fewer slots per executor (spark.executor.cores), or more partitions",
    "device memory": (
        "fewer tasks at a time on a GPU (spark.rapids.sql.concurrentGpuTasks), or smaller batches"
        " (spark.rapids.sql.batchSizeBytes)"
    ),
}
"""By rule, where Spark has a word for it."""


def idle_advice(detail: Detail) -> str | None:
    """What to do about a stage that left slots idle; None where nothing can or need be done."""
    if infers_schema(detail):
        return "Spark reads the files to infer their schema: give the schema"
    if detail.with_data < detail.facts.slots:
        return few_tasks_advice(detail)
    if were_bound(detail):
        return (
            "set spark.locality.wait to 0s, so that free executors take tasks whose data another has; rows that are"
            " kept lie evenly where all executors are there, and warm, when they are first computed"
        )
    if were_free(detail):
        return (
            "look at what kept waiting tasks from free slots: waiting for a slot near their data (spark.locality.wait),"
            " or a driver too busy to hand them out"
        )
    if is_uneven(detail):
        return uneven_advice(detail)
    return "smaller partitions even out the last wave"


def few_tasks_advice(detail: Detail) -> str | None:
    """What to do about a stage with fewer tasks than slots; None where nothing can or need be done."""
    facts = detail.facts
    if facts.units == 1 and reads_schema(detail):
        return "Spark reads the files' schema in one task: give the schema, or read from a table that knows it"
    if _LIMIT.match(detail.place) or {"CollectLimit", "GlobalLimit", "TakeOrderedAndProject"} & set(detail.operators):
        return None  # a limit asks for one partition first, in the hope that it has the rows
    if one_window(detail):
        return ONE_WINDOW
    if facts.units == 1 and any("SinglePartition" in text for text in detail.details):
        return None  # a global aggregate or sort ends in one task whatever the partitions are
    if detail.with_data < facts.units:
        return uneven_advice(detail)
    if "AQEShuffleRead" in detail.operators or "CustomShuffleReader" in detail.operators:
        if detail.read_bytes < LITTLE_BYTES * facts.units:
            return None  # adaptive execution joined partitions that hold next to nothing
        return (
            "adaptive execution joined small partitions: a lower"
            " spark.sql.adaptive.coalescePartitions.minPartitionSize or advisoryPartitionSizeInBytes keeps more"
        )
    if reads_files(detail) and facts.scope is not None:
        return "a lower spark.sql.files.maxPartitionBytes, or files that can be split, would use the idle slots"
    if "python" in detail.what and "scan" not in detail.what and "shuffle" not in detail.what:
        return "more slices where the data is handed to Spark would use the idle slots"
    return "more partitions would use the idle slots"


ONE_WINDOW = "give the window a partitionBy: without one all rows pass through one task, whatever the partitions are"


def one_window(detail: Detail) -> bool:
    """Whether a stage computes a window over all rows at once."""
    windows = {"Window", "WindowInPandas", "ArrowWindowPython"} & set(detail.operators)
    return detail.facts.units == 1 and bool(windows) and any("SinglePartition" in text for text in detail.details)


def uneven_advice(detail: Detail) -> str:
    """What to do about a stage of which a few tasks read much more than most.

    A file counts as one that cannot be split where a task read clearly more than the largest part that Spark cuts, and
    rows as few where whole parts of columnar files were empty: a row group is read where it begins.
    """
    if detail.anew:
        return ADVICE["kept"]
    if "cached" in detail.what and not reads_files(detail) and "shuffle read" not in detail.what:
        return "the partitions that are kept differ in size: repartition the rows before they are kept"
    if not reads_files(detail):
        return f"a few keys hold most rows: split them (salting), or {_SPLITS_SKEW}"
    largest = size_set(detail.settings, MAX_PARTITION)
    if detail.facts.scope is not None and detail.facts.most_bytes > _CLEARLY * largest:
        return "one of its files cannot be split (gzip, or one large row group): write smaller files"
    if detail.with_data < detail.facts.units and any(_COLUMNAR.search(each) for each in detail.operators):
        return "its files have fewer row groups than Spark cut parts: write smaller row groups, or repartition the rows"
    return "its files, or their parts, differ in size: write them more evenly, or repartition the rows"


def reads_files(detail: Detail) -> bool:
    """Whether a stage reads storage, and nothing of other stages."""
    return "scan" in detail.what and "shuffle read" not in detail.what


def reads_schema(detail: Detail) -> bool:
    """Whether a stage reads the schema of files, from their ends, for the query to come."""
    return detail.facts.scope is None and bool(_SCHEMA.match(detail.place)) and not detail.read_bytes


def infers_schema(detail: Detail) -> bool:
    """Whether a stage reads files through to infer their schema, for the query to come: it is of no query itself."""
    return (
        detail.facts.scope is None
        and reads_files(detail)
        and bool(_INFERRED.match(detail.place))
        and detail.read_bytes > 0
    )


def runs_python(what: str) -> bool:
    """Whether Python workers compute for the tasks of a stage of that kind."""
    return "python" in what


def python_shares(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By stage, the share of its tasks' time on no resource that was of Python workers, where the plan's own metrics
    tell how long those ran (Spark 4.1 and newer)."""
    rows = connection.execute(sql.text("python_shares", __package__)).fetchall()
    return {group_id: float(share) for group_id, share in rows}


def spilling_operators(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[str]:
    """Names of the operators that spilled in these stages, the one that spilled most first."""
    rows = connection.execute(
        """
        SELECT operators.name, sum(value) AS spilled
        FROM operator_metrics JOIN operators USING (scope_id, node_id)
        WHERE operator_metrics.name = 'spill size' AND value > 0 AND list_contains(?, group_id)
        GROUP BY operators.name
        ORDER BY spilled DESC, operators.name
        """,
        [[each.facts.id for each in details]],
    ).fetchall()
    return [name for name, _ in rows]


def own_findings(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Finding]:
    """What only Spark's runs have: compiling generated code, putting in place what a query wrote, and files that are
    small or read again."""
    times = [each[0] for each in connection.execute("SELECT name FROM resources").fetchall()]
    total = " + ".join(f"{name}_ms" for name in with_other(times))
    rows = connection.execute(
        f"SELECT group_id, sum({total}) FROM operator_times WHERE name = ? GROUP BY group_id",
        [TITLES["code generation"]],
    ).fetchall()
    return [
        *compiling(details, dict(rows)),
        *committing(connection, details),
        *_unasked(connection, details),
        *file_findings(connection, details),
    ]


def _unasked(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Finding]:
    """One finding for all of unasked_slots, which names the largest."""
    most = most_slots(connection, details[0].settings) if details else 0
    parts = sorted(unasked_slots(details, most), key=lambda each: -each.cost_ms)
    if not parts:
        return []
    others = f"; and {len(parts) - 1} more in the same way" if len(parts) > 1 else ""
    what = f"{parts[0].group}: {parts[0].what}{others}"
    return [Finding("idle slots", sum(each.cost_ms for each in parts), what, "modelled", parts[0].advice)]


def unasked_slots(details: Sequence[Detail], most: int) -> list[Part]:
    """Stages that had fewer slots than the `most` of the run, for dynamic allocation asks for what tasks there are.

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
        idle = 1 - min(facts.unit_ms / (most * facts.length_ms), 1.0)
        cost_ms = facts.path_ms * min(1 - detail.with_data / most, idle)
        what = (
            f"dynamic allocation had {facts.slots} slots for its {counted(facts.units, 'task')}, and {most} at another"
            " time of the run"
        )
        found.append(Part("idle slots", "few", cost_ms, f"{facts.id} {facts.name}", what, "modelled", advice, ""))
    return found


def most_slots(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, str]) -> int:
    """The most slots that dynamic allocation had at a time of the run, or may have; 0 where it is off."""
    if not flag(properties.get("spark.dynamicAllocation.enabled")):
        return 0
    rows = connection.execute("SELECT added_ms, removed_ms, lanes FROM workers WHERE lanes > 0").fetchall()
    executors = most_at_a_time((added, removed) for added, removed, _ in rows)
    allowed = whole(properties.get(MOST_EXECUTORS)) or executors
    return int(min(executors, allowed) * max((lanes for _, _, lanes in rows), default=0))


def committing(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Finding]:
    """Queries that went on after the last of their stages, which wrote output, while no task of any query ran."""
    writing = [each.facts.id for each in details if "output" in each.what]
    rows = connection.execute(
        """
        SELECT scope_id, max(groups.end_ms) AS wrote_ms, scopes.end_ms
        FROM scopes JOIN groups USING (scope_id)
        WHERE kind = 'sql' AND scopes.end_ms > groups.end_ms
        GROUP BY scope_id, scopes.end_ms
        HAVING list_contains(?, arg_max(group_id, groups.end_ms))
        """,
        [writing],
    ).fetchall()
    if not rows:
        return []
    times = connection.execute("SELECT launch_ms, finish_ms FROM units WHERE launch_ms IS NOT NULL").fetchnumpy()
    running = merged(*(np.asarray(times[name], np.float64) for name in ("launch_ms", "finish_ms")))
    alone_ms = {query: end - wrote - covered(running, wrote, end) for query, wrote, end in rows}
    first = max(alone_ms, key=lambda each: alone_ms[each])
    others = f", {len(rows) - 1} more in the same way" if len(rows) > 1 else ""
    what = f"{first} went on for {lasting(alone_ms[first])} after its last task, which wrote output{others}"
    advice = (
        "look at how output is put in place: fewer files and partitions take less, and so does a committer without"
        " renames where storage renames by copying"
    )
    return [Finding(COMMITTING, sum(alone_ms.values()), what, "measured", advice)]


def compiling(details: Sequence[Detail], compiling_ms: dict[str, float]) -> list[Finding]:
    """Generated code compiled within tasks, which the first run of a plan on an executor pays.

    `compiling_ms` is the task time of each stage that it took.
    """
    cost = sum(
        each.facts.path_ms * compiling_ms.get(each.facts.id, 0.0) / each.facts.unit_ms
        for each in details
        if each.facts.unit_ms > 0
    )
    if cost <= 0:
        return []
    what = "tasks compiled generated code, or waited for another task to"
    advice = "the first query on an executor pays this: keep executors, or run queries of one shape together"
    return [Finding("compiling", cost, what, "modelled", advice)]


def assumptions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Assumption]:
    """That a Python worker is busy while its task waits for it, and what stands for CPU time where there is none."""
    found: list[Assumption] = []
    bounds = [execution.scope.start_ms, execution.scope.end_ms]
    tasks, timed, collected_ms = connection.execute(
        """
        SELECT count(own_ms), count(own_cpu_ms), coalesce(sum(gc_ms), 0)
        FROM units WHERE finish_ms > ? AND launch_ms < ?
        """,
        bounds,
    ).fetchall()[0]
    if tasks and not timed and not execution.has_samples:
        found.append(CpuTimeMissing(float(collected_ms)))
    seen = connection.execute(
        """
        SELECT 1 FROM samples JOIN stacks USING (stack_id)
        WHERE unit_id IS NOT NULL AND operator = 'python' AND cpu = 1 AND time_ms BETWEEN ? AND ?
        LIMIT 1
        """,
        bounds,
    ).fetchone()
    if seen is not None:
        found.append(PythonCounted())
    return found


def unmodelled(connection: duckdb.DuckDBPyConnection, execution: Execution) -> str | None:
    """GPU, where a plan of the scope runs on it, or a run without plans asks for it."""
    on_gpu, planned = connection.execute(
        """
        SELECT count(*) FILTER (regexp_matches(operators.name, '^Gpu')), count(*)
        FROM operators JOIN scopes USING (scope_id)
        WHERE start_ms < $2 AND coalesce(end_ms, $2) > $1
        """,
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchall()[0]
    asked = any(number(execution.properties.get(key)) for key in _GPUS)
    plugin = "com.nvidia.spark.SQLPlugin" in execution.properties.get("spark.plugins", "")
    if len(execution.units) and (on_gpu or (not planned and (asked or plugin))):
        return "GPU"
    return None


RULES = Rules(
    idle=idle_advice,
    skew=uneven_advice,
    advice=ADVICE,
    own_device=reads_schema,
    delegates=runs_python,
    delegated=python_shares,
    spilled_by=spilling_operators,
    more=own_findings,
    assumptions=assumptions,
    told=streaming.told,
    unmodelled=unmodelled,
    released=failures.released,
    called_off=failures.called_off,
    exhausted=failures.exhausted,
)
