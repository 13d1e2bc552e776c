"""Recommendations on the functions of users that Python workers run, and on how rows get to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import duckdb

from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.advise.changes import changed
from crystalperf.query.frameworks.spark.python import memory_lines
from crystalperf.query.frameworks.spark.python.split import python_times
from crystalperf.query.frameworks.spark.recommendations import (
    LessPythonMemory,
    ProfilePython,
    ReusePythonWorkers,
    RewritePython,
    SendFewerColumns,
    SpeedUpPython,
    UseArrow,
)
from crystalperf.query.frameworks.spark.remarks import PythonFunctions, PythonGroup, PythonMemory, PythonTime
from crystalperf.query.frameworks.spark.settings import flag, version_tuple, whole
from crystalperf.query.frameworks.spark.udfs import RUNS_PYTHON, SCALAR_UDF
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.recommendations import GUESSED, MODELLED, Candidate, SettingChange

ARROW_UDF = "spark.sql.execution.pythonUDF.arrow.enabled"
"""Has functions of one row take their rows by Arrow: Spark 3.5 and newer; 4.2 does so by default."""
_ARROW_SINCE, _ARROW_DEFAULT_SINCE = (3, 5), (4, 2)

SESSION_PROFILER = "spark.sql.pyspark.udf.profiler"
"""Profiles functions in plans, from Spark 4.0 on."""
PROFILER = "spark.python.profile"
_SESSION_PROFILER_SINCE = (4, 0)

REUSE = "spark.python.worker.reuse"

WORTH = 0.2
"""The share of a stage's task time from which on a part is worth a recommendation."""

_SENDS_ROWS = ("InPandas", "InArrow", "CoGroups")
"""Parts of the names of operators that send all columns of their input; others send the arguments of functions."""


BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_DEFAULT_BATCH_ROWS = 10_000
_LEAST_BATCH_ROWS = 100
_FEWER = 4
"""A batch gets this many times fewer rows if workers have no limit that says how many fit."""
_BY_BATCH = ("ArrowEvalPython", "MapInPandas", "MapInArrow", "PythonMapInArrow")
"""Operators whose functions get batches of rows; those of groups get each group whole."""
_RAN_OUT = ("container", "delegate", "killed")
"""Kinds of exhausted memory that Python workers may have used up."""


def exhausted(
    connection: duckdb.DuckDBPyConnection, execution: Execution, details: Sequence[StageStats], debug: Debug
) -> Iterator[Candidate]:
    """Less memory in the function that raised a worker's memory most, if a memory profile shows it and it ran out."""
    if debug.outcome is None or debug.outcome.memory not in _RAN_OUT:
        return
    for found in memory_lines.functions(connection, execution)[:1]:
        operators = next((each.operators for each in details if each.facts.id == found.stage), ())
        by_batch = any(name in each for each in operators for name in _BY_BATCH)
        value = LessPythonMemory(
            price="code", because="outcome", saving=GUESSED, settings=_fewer_rows(execution, found) if by_batch else (),
            stage=found.stage, name=found.name, function=found.function, where=found.where, calls=found.calls,
            grown_bytes=found.grown_bytes, most_bytes=found.most_bytes, by_groups=not by_batch,
        )  # fmt: skip
        yield Candidate(value, comes_first=True)


def _fewer_rows(execution: Execution, found: PythonMemory) -> tuple[SettingChange, ...]:
    """Fewer rows in a batch: half of what fits the limit, if memory grows with them; empty if few are sent already."""
    before = whole(execution.properties.get(BATCH_ROWS)) or _DEFAULT_BATCH_ROWS
    after = before / _FEWER
    grown = found.most_bytes - found.start_bytes
    if found.limit_bytes is not None and grown > 0:
        after = min(after, before * (found.limit_bytes - found.start_bytes) / grown / 2)
    after = max(int(after) // _LEAST_BATCH_ROWS * _LEAST_BATCH_ROWS, _LEAST_BATCH_ROWS)
    return (changed(execution.properties, BATCH_ROWS, after, _DEFAULT_BATCH_ROWS),) if after < before else ()


def candidates(
    connection: duckdb.DuckDBPyConnection, execution: Execution, details: Sequence[StageStats], debug: Debug
) -> Iterator[Candidate]:
    """Changes of the stages on the critical path with Python workers: by profiles of these if there are any."""
    on_path = {each.facts.id: each for each in details if each.facts.path_ms > 0}
    times = [each for each in python_times(connection, execution) if each.stage in on_path]
    if not times:
        yield from unprofiled(details, debug, execution.version)
        return
    sent = _sent_bytes(connection)
    for time in times:
        yield from _of_stage(time, on_path[time.stage], execution, sent.get(time.stage))


def _of_stage(
    time: PythonTime, detail: StageStats, execution: Execution, sent_bytes: float | None
) -> Iterator[Candidate]:
    """Changes for one stage; each saves at most the parts of its time that the change affects."""
    parts = time.parts_ms
    all_ms = parts.whole
    if all_ms <= 0:
        return
    path_ms, converting_ms = detail.facts.path_ms, all_ms - parts.user - (parts.start or 0.0) - parts.jvm
    by_row = SCALAR_UDF in detail.operators
    serialized = (parts.serialization or 0.0) / all_ms
    if parts.user >= WORTH * all_ms and time.function is not None:
        value = SpeedUpPython(
            price="code", because="delegated", saving=MODELLED, function=time.function, where=time.where,
            share=parts.user / all_ms, vectorizes=by_row, stage=time.stage, name=time.name,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=path_ms * parts.user / all_ms)
    if by_row and serialized >= WORTH / 2:
        change = RewritePython(
            price="code", because="delegated", saving=MODELLED, function=time.function, share=serialized,
            stage=time.stage, name=time.name,
        )  # fmt: skip
        yield Candidate(change, at_most_ms=path_ms * (all_ms - parts.jvm) / all_ms)
        if _may_use_arrow(execution):
            setting = changed(execution.properties, ARROW_UDF, True, False)
            arrow = UseArrow(
                price="setting", because="delegated", saving=GUESSED, settings=(setting,), share=serialized,
                stage=time.stage, name=time.name,
            )  # fmt: skip
            yield Candidate(arrow, at_most_ms=path_ms * (converting_ms + parts.jvm) / all_ms)
    sends_rows = any(word in each for each in detail.operators for word in _SENDS_ROWS)
    if sends_rows and serialized >= WORTH:
        fewer = SendFewerColumns(
            price="code", because="delegated", saving=MODELLED, share=serialized, sent_bytes=sent_bytes,
            stage=time.stage, name=time.name,
        )  # fmt: skip
        yield Candidate(fewer, at_most_ms=path_ms * (converting_ms + parts.jvm) / all_ms)
    if flag(execution.properties.get(REUSE)) is False and parts.start:
        reuse = ReusePythonWorkers(
            price="setting", because="delegated", saving=MODELLED, share=parts.start / all_ms,
            settings=(changed(execution.properties, REUSE, True, True),), stage=time.stage, name=time.name,
        )  # fmt: skip
        yield Candidate(reuse, at_most_ms=path_ms * (parts.start + parts.wait) / all_ms)


def _may_use_arrow(execution: Execution) -> bool:
    """Whether the run's version has the setting, and the run did not use it."""
    version = version_tuple(execution.version)
    return (
        version is not None
        and _ARROW_SINCE <= version < _ARROW_DEFAULT_SINCE
        and flag(execution.properties.get(ARROW_UDF)) is not True
    )


def _sent_bytes(connection: duckdb.DuckDBPyConnection) -> Mapping[str, float]:
    """By stage, the data that tasks sent to Python workers, bytes (Spark 4.0 and newer)."""
    rows = connection.execute(
        "SELECT stage_id, sum(value) FROM operator_metrics WHERE name = 'data sent to Python workers' GROUP BY stage_id"
    ).fetchall()
    return {stage: float(value) for stage, value in rows}


def _python_groups(debug: Debug) -> list[PythonGroup]:
    """The Python functions on the critical path by stage, the most time first."""
    remarks = [each.remark for each in debug.named_parts if isinstance(each.remark, PythonFunctions)]
    return sorted((each for remark in remarks for each in remark.groups), key=lambda each: -each.time_ms)


def unprofiled(details: Sequence[StageStats], debug: Debug, version: str | None) -> Iterator[Candidate]:
    """The code of Python workers that tasks wait for: its functions by name, and a profile, which no log has."""
    cost_ms = debug.other_ms.get("delegated", 0.0)
    delegating = [each for each in details if each.delegates]
    if not delegating or cost_ms <= 0:
        return
    longest = max(delegating, key=lambda each: each.facts.path_ms)
    functions = tuple(dict.fromkeys(name for each in _python_groups(debug) for name in each.functions))
    number = version_tuple(version)
    profiler = SettingChange(PROFILER, None, True)
    in_plan = any(RUNS_PYTHON.search(each) for each in longest.operators)  # else its code is of an RDD
    if in_plan and number is not None and number >= _SESSION_PROFILER_SINCE:
        profiler = SettingChange(SESSION_PROFILER, None, "perf")
    scalar_udf = SCALAR_UDF in longest.operators
    value = ProfilePython(
        price="code" if scalar_udf else "inspect",  # other functions: a profile shows whether there is anything to gain
        because="delegated", saving=GUESSED, settings=(profiler,), stage=longest.facts.id, name=longest.facts.name,
        scalar_udf=scalar_udf, functions=functions,
    )  # fmt: skip
    yield Candidate(value, at_most_ms=cost_ms)
