"""Memory profiles of Python workers, which Spark dumps for each UDF, as rows of spark_python_memory.

Spark profiles each call by itself, and adds the calls up: memory, increase and number of each line.  So a line's memory
is its sum, divided by the number of calls that ran it: a mean over calls and workers, not a peak.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.python import worker_frames
from crystalperf.query.frameworks.spark.python.split import where
from crystalperf.query.frameworks.spark.python.stages import PythonStage, with_result
from crystalperf.query.frameworks.spark.remarks import PythonMemory
from crystalperf.query.frameworks.spark.settings import is_local, size_bytes, whole
from crystalperf.query.trace.records import Columns, table

if TYPE_CHECKING:
    from crystalperf.query.recordings.memory_profile import FunctionMemory, MemoryProfile

_FILE = regex(r"udf_(\d{1,18})_memory\.txt")
"""The name of Spark's dumps."""

LIMIT = "spark.executor.pyspark.memory"
"""The memory of all Python workers of an executor; without it they have no limit of their own."""


@frozen
class MemoryLine:
    """A row of spark_python_memory."""

    stage_id: str
    function: str
    file: str
    origin: str
    line: int
    calls: int
    memory_bytes: float
    grown_bytes: float


def memory_lines(name: str, profile: MemoryProfile, stages: Sequence[PythonStage]) -> tuple[list[MemoryLine], str]:
    """The rows of the profile in the file of this name, and how it is used."""
    match = _FILE.search(name)
    if match is None:
        return [], "a memory profile that Spark did not dump: its name is not udf_ID_memory.txt; left out"
    number = int(match[1])
    named = [
        (each.stage_id, next(iter(sorted(called for called, ids in each.functions.items() if number in ids)), "?"))
        for each in with_result(number, stages)
    ]
    found = [
        line
        for stage_id, udf in named
        for function in profile.functions
        for line in _lines(stage_id, udf, function, name)
    ]
    if not found:
        return [], "a memory profile of a Python function of which no plan of this run has the id; left out"
    return found, "memory of Python workers by line, by Spark's profiler: means over calls, because Spark adds calls up"


def _lines(stage_id: str, udf: str, function: FunctionMemory, name: str) -> list[MemoryLine]:
    calls = max(function.lines[0].times, 1)
    called = worker_frames.named((function.file, function.function or udf, 0))
    found = []
    for place, each in enumerate(function.lines):
        ran = max(min(each.times, calls), 1)  # a line of a loop has the most memory of its turns in each call
        grown = each.grown_bytes / calls if place else 0.0
        found.append(
            MemoryLine(stage_id, called, function.file, name, each.line, calls, each.memory_bytes / ran, grown)
        )
    return found


def as_table(lines: Iterable[MemoryLine]) -> Columns:
    """The table spark_python_memory."""
    rows = [
        (each.stage_id, each.function, each.file, each.origin, each.line, each.calls, each.memory_bytes,
         each.grown_bytes)
        for each in lines
    ]  # fmt: skip
    return table(
        "stage_id function file origin line calls memory_bytes grown_bytes", rows,
        whole="line calls", real="memory_bytes grown_bytes",
    )  # fmt: skip


def functions(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[PythonMemory]:
    """The functions of a scope's stages of which there are memory profiles, that which raised the memory most first."""
    if not sql.has_rows(connection, "spark_python_memory"):
        return []
    names = {each.stage_id: each.name for each in execution.dag.stages}
    limit = limit_bytes(execution)
    rows = connection.execute(sql.text("memory_lines", __package__), [list(names)]).fetchall()
    return [
        PythonMemory(
            stage, names[stage], function, where(file, line), calls, start_bytes, most_bytes, grown_bytes, limit
        )
        for stage, function, file, line, calls, start_bytes, most_bytes, grown_bytes in rows
    ]


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[PythonMemory]:
    """The first of them."""
    return functions(connection, execution)[:1]


def limit_bytes(execution: Execution) -> float | None:
    """The limit of a Python worker: an executor's for all of them, by its slots; None without one."""
    stated = size_bytes(execution.properties.get(LIMIT), "m")
    if not stated:
        return None
    cores = whole(execution.properties.get("spark.executor.cores"))
    if cores is None and not is_local(execution.properties):
        cores = int(execution.recorded.get("cores") or 1)
    return stated / max(cores or 1, 1)
