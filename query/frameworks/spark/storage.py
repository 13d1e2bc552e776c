"""Costs of files besides their bytes: many small files, and the same files read by several queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU
from crystalperf.query import sql
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark.findings import (
    CacheRows,
    MergeFiles,
    ReadAgain,
    Scope,
    SmallFiles,
    SmallOutput,
    WriteFewerFiles,
)
from crystalperf.query.frameworks.spark.lakehouse import table_of
from crystalperf.query.frameworks.spark.memory import usable_bytes
from crystalperf.query.frameworks.spark.settings import size_bytes
from crystalperf.query.frameworks.spark.small_tasks import MAX_COST_MS
from crystalperf.query.results.findings import Finding

MANY_FILES = 100
SMALL_BYTES = 2**20
"""Below this size, opening a file costs more than reading it; Spark itself assumes 4 MiB
(spark.sql.files.openCostInBytes)."""

FEWEST_READS = 3
"""Minimum queries that read the same rows for a recommendation to cache them."""

_LIKE = 0.5
"""A stage may read the files that another reads if their bytes differ by less than this ratio."""

DECODING_BYTE_MS = 1.5e-5
"""CPU time to decode a byte of a columnar file.  Scans of the lab that only filter and aggregate take 5 to 15 ns, one
that computes 50 (research/2026-11-29-advice-proven.md)."""

KEPT_TIMES = 2.0
"""Memory of cached rows over the bytes of the files that were read."""

_NOT_STORAGE = regex(r"ExistingRDD|OneRowRelation|In-memory|LocalTable|InMemory", re.IGNORECASE)
_ROWS = regex(r"\b(csv|json|text|xml)\b", re.IGNORECASE)
"""Formats whose files are read completely, regardless of the selected columns."""

_COLUMNS = regex(r"\[([^\]]*)\]")
_NUMBER = regex(r"#\d+L?")


@frozen
class _Files:
    scope: str
    node: int
    read: float | None
    read_bytes: float | None
    written: float | None
    written_bytes: float | None
    parts: float | None


def file_findings(connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats]) -> list[Finding]:
    """At most one finding of each kind: small files that were read, small files that were written, and files that were
    read again."""
    on_path = [each for each in details if each.facts.path_ms > 0]
    counted = [_Files(*row) for row in connection.execute(sql.text("files", __package__)).fetchall()]
    found = [
        _small_read(connection, on_path, [each for each in counted if each.read]),
        _small_written(on_path, [each for each in counted if each.written]),
        _read_again(connection, on_path, counted),
    ]
    return [each for each in found if each is not None and each.cost_ms > 0]


def listing_stages(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Stages in which Spark lists folders before a query reads them: InMemoryFileIndex names their jobs."""
    rows = connection.execute(
        """
        SELECT stage_id
        FROM stages JOIN (SELECT unnest(stage_ids) AS stage FROM spark_jobs WHERE starts_with(name, ?))
            ON starts_with(stage_id, concat('stage:', stage, '.'))
        """,
        ["Listing leaf files and directories for "],
    ).fetchall()
    return {stage for (stage,) in rows}


def off_cpu_ms(detail: StageStats) -> float:
    """The part of a stage's time on the critical path in which its tasks neither computed nor waited for others'
    data."""
    facts = detail.facts
    if facts.task_ms <= 0:
        return 0.0
    rest = facts.task_ms - facts.resource_ms.get(CPU, 0.0) - detail.fetch_wait_ms - facts.starting_ms
    return facts.path_ms * max(rest, 0.0) / facts.task_ms


def _small(count: float | None, amount: float | None) -> bool:
    return bool(count and amount is not None and count >= MANY_FILES and amount / count < SMALL_BYTES)


def _small_read(
    connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats], counted: Iterable[_Files]
) -> SmallFiles | None:
    small = {(each.scope, each.node): each for each in counted if _small(each.read, each.read_bytes)}
    if not small:
        return None
    rows = connection.execute("SELECT stage_id, scope_id, node_id FROM operator_stages").fetchall()
    scans: dict[str, list[_Files]] = {}
    for stage_id, scope, node in rows:
        if (scope, node) in small:
            scans.setdefault(stage_id, []).append(small[scope, node])
    stages = [each for each in details if each.facts.id in scans and "scan" in each.uses and "python" not in each.uses]
    if not stages:
        return None
    most = max((each for detail in stages for each in scans[detail.facts.id]), key=lambda each: each.read or 0.0)
    files, read_bytes = most.read or 1.0, most.read_bytes or 0.0
    # Inferring the schema reads the same files, in a job of no query.
    inferring = [each for each in details if each.facts.scope is None and "scan" in each.uses]
    stages += [each for each in inferring if _LIKE * read_bytes < each.read_bytes < read_bytes / _LIKE]
    listing = listing_stages(connection)
    listed_ms = sum(each.facts.path_ms for each in details if each.facts.id in listing)
    stage, others, cost_ms = *_longest(stages), sum(map(off_cpu_ms, stages)) + listed_ms
    advice = _merging(connection, most)
    return SmallFiles(cost_ms, "modelled", advice, stage, others, int(files), read_bytes / files)


def _merging(connection: duckdb.DuckDBPyConnection, read: _Files) -> MergeFiles:
    """The advice for the files that an operator read, with their table if it is one of a lakehouse format."""
    rows = connection.execute(
        "SELECT name, detail, location FROM operators WHERE scope_id = ? AND node_id = ?", [read.scope, read.node]
    ).fetchall()
    table = table_of(*rows[0]) if rows else None
    return MergeFiles() if table is None else MergeFiles(table.format, table.name)


def _small_written(details: Sequence[StageStats], counted: Iterable[_Files]) -> SmallOutput | None:
    small = {each.scope: each for each in counted if _small(each.written, each.written_bytes)}
    stages = [each for each in details if each.facts.scope in small and "output" in each.uses]
    if not stages:
        return None
    most = max((small[each.facts.scope or ""] for each in stages), key=lambda each: each.written or 0.0)
    files, parts = most.written or 1.0, int(most.parts or 0)
    stage, others = _longest(stages)
    cost_ms = sum(_of_files_ms(each, small[each.facts.scope or ""]) for each in stages)
    advice = WriteFewerFiles(parts if parts > 1 else None)
    file_bytes = (most.written_bytes or 0.0) / files
    return SmallOutput(cost_ms, "modelled", advice, stage, others, int(files), file_bytes)


def _of_files_ms(detail: StageStats, files: _Files) -> float:
    """The time on the critical path that a stage needs for its files, at most: what its tasks waited; and where a task
    writes each of them, all that a short task takes besides its rows, because fewer files are fewer tasks."""
    facts = detail.facts
    if facts.tasks < MANY_FILES or facts.tasks < _LIKE * (files.written or 0.0) or "python" in detail.uses:
        return off_cpu_ms(detail)
    rows_ms = DECODING_BYTE_MS * (detail.read_bytes + (files.written_bytes or 0.0))
    cost_ms = min(max(facts.task_ms - rows_ms, 0.0), MAX_COST_MS * facts.tasks)
    return max(off_cpu_ms(detail), facts.path_ms * cost_ms / max(facts.task_ms, 1.0))


def _longest(details: Sequence[StageStats]) -> tuple[str, int]:
    """The stage with the most time on the critical path, and the number of the others."""
    return max(details, key=lambda each: each.facts.path_ms).facts.id, len(details) - 1


# Read again -----------------------------------------------------------------------------------------------------------


def _read_again(
    connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats], counted: Iterable[_Files]
) -> ReadAgain | None:
    """Rows of storage that several queries read, and that fit into memory.

    The first query has to read them; caching them saves at most the time of the others.
    """
    by_id = {each.facts.id: each for each in details}
    readers: dict[tuple[str, str], dict[str, set[str]]] = {}
    # Tasks count too few bytes for some formats, because other threads read them.
    sizes = {each.scope: each.read_bytes or 0.0 for each in counted if each.read}
    for stage_id, scope, name, detail, location in connection.execute(sql.text("rescans", __package__)).fetchall():
        key = _rows_read(name, detail, location)
        if key is not None and stage_id in by_id:
            readers.setdefault(key, {}).setdefault(scope, set()).add(stage_id)
    capacity = _capacity(connection, details[0].settings) if details else 0.0
    best: tuple[float, int, list[StageStats]] | None = None
    for (where, columns), by_scope in readers.items():
        stages = [by_id[each] for stage_ids in by_scope.values() for each in stage_ids]
        if len(by_scope) < FEWEST_READS or any(each.cache_misses or not _only_reads(each) for each in stages):
            continue
        most_bytes = max(
            max(sum(by_id[each].read_bytes for each in stage_ids), sizes.get(scope, 0.0))
            for scope, stage_ids in by_scope.items()
        )
        if not 0 < KEPT_TIMES * most_bytes <= capacity:
            continue
        cost_ms = [
            sum(_uncached_ms(by_id[each], where, columns) for each in stage_ids) for stage_ids in by_scope.values()
        ]
        saved_ms = sum(cost_ms) - max(cost_ms)
        if best is None or saved_ms > best[0]:
            best = saved_ms, len(by_scope), stages
    if best is None:
        return None
    saved_ms, count, stages = best
    kind: Scope = "query" if stages[0].facts.scope is not None else "job"
    stage, others = _longest(stages)
    return ReadAgain(saved_ms, "modelled", CacheRows(kind), stage, others, count, kind)


def _uncached_ms(detail: StageStats, where: str, columns: str) -> float:
    """The time of a stage on the critical path that it would not take with cached rows.

    Cached rows are decoded like those of a columnar file, whose `columns` are known, and after the first query a file
    on a local disk is in the page cache: of such stages, caching only saves what they compute besides decoding."""
    if not columns or "file:" not in where or detail.own_cpu_ms <= 0:
        return detail.facts.path_ms
    decoding = DECODING_BYTE_MS * detail.read_bytes / detail.own_cpu_ms
    return detail.facts.path_ms * max(1.0 - decoding, 0.0)


def _rows_read(name: str | None, detail: str | None, location: str | None) -> tuple[str, str] | None:
    """A key of rows in storage: their location, and their columns if the format stores these separately; None if
    unknown.
    """
    if name is None:
        return None if location is None else (location, "")
    if _NOT_STORAGE.search(name):
        return None
    table = name.partition(" ")[2].partition(" ")[2] if name.startswith("Scan ") else name.partition(" ")[2]
    where = location or table
    if not where:
        return None
    if _ROWS.search(name):
        return where, ""
    columns = _COLUMNS.search(detail or "")
    return where, _NUMBER.sub("", columns[1]) if columns else ""


def _only_reads(detail: StageStats) -> bool:
    return "scan" in detail.uses and "shuffle read" not in detail.uses and "cached" not in detail.uses


def _capacity(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, str]) -> float:
    """Memory of all executors at the end of a run for their tasks and cached rows, bytes."""
    heaps = connection.execute(
        "SELECT memory_bytes FROM workers WHERE coalesce(slots, 0) > 0 AND removed_ms IS NULL"
    ).fetchall()
    stated = size_bytes(properties.get("spark.executor.memory"), "m") or 2.0**30
    return sum(usable_bytes(heap or stated, properties) for (heap,) in heaps)
