"""Memory of Spark's Python workers: the text of memory_profiler, what Spark adds up in it, the advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.spark import failures
from crystalperf.query.frameworks.spark.recommendations import ExtendMemory, LessPythonMemory
from crystalperf.query.frameworks.spark.remarks import PythonMemory
from crystalperf.query.inputs.discover import discover
from crystalperf.query.recordings import memory_profile
from crystalperf.query.run import Run
from crystalperf.query.text.sentences import lines_of, text_of
from crystalperf.query.trace.records import Problems
from tests.hand_made import figures
from tests.reading import rows
from tests.refusals import refused
from tests.spark_logs import Operator, Query, Stage, waves, write

MIB = 2**20
HEADING = "Line #    Mem usage    Increment  Occurrences   Line Contents"

# Four calls, which Spark adds up: 100 MiB at the start, 350 after the line with `repeat`, which 300 come from; the last
# line ran in two of the calls, and the loop three times in each.
PROFILE = f"""Filename: /srv/job/job.py

{HEADING}
{"=" * len(HEADING)}
    12    400.0 MiB    400.0 MiB           4       @pandas_udf("long")
    13                                             def grown(texts):
    14   1400.0 MiB   1000.0 MiB           4           long = texts.str.repeat(500)
    15                                                 # “no code”
    16   1440.0 MiB    -80.0 MiB          12           for _ in range(2):
    17    600.0 MiB      0.0 MiB           2               pass


"""


def of(function: str, operator: str = "ArrowEvalPython") -> Operator:
    return Operator(operator, f"{operator} [{function}(a#1)#7], [pythonUDF0#90]", {"number of output rows": {0: 1e5}})


def profiled(folder: Path, text: str = PROFILE, tree: Operator | None = None, **more: Any) -> Run:
    """A run with one Python stage of four tasks, and its memory profile."""
    stage = Stage(list(waves(4, 4, 2, ms=2_500, cpu_ms=500)), reads="PythonRDD")
    query = Query(tree=tree or of("grown"))
    log = write(folder / "log", [stage], executors={"1": 2, "2": 2}, **{"query": query, "version": "4.0.1", **more})
    (folder / "udf_7_memory.txt").write_text(text, encoding="utf-8")
    return cp.profile([log, folder / "udf_7_memory.txt"], output=folder / "run.duckdb")


def remark(run: Run) -> PythonMemory:
    (found,) = (each for each in run.verdict().debug.measurements if isinstance(each, PythonMemory))
    return found


def test_the_text_of_memory_profiler_is_recognised_and_read(tmp_path: Path) -> None:
    path = tmp_path / "udf_7_memory.txt"
    path.write_text(PROFILE, encoding="utf-8")
    (sample,) = discover([path]).samples
    assert sample.kind == "memory profile"
    (found,) = memory_profile.read(str(path), Problems()).functions
    assert (found.file, found.function) == ("/srv/job/job.py", "grown")
    assert [(each.line, each.memory_bytes / MIB, each.grown_bytes / MIB, each.times) for each in found.lines] == [
        (12, 400, 400, 4), (14, 1400, 1000, 4), (16, 1440, -80, 12), (17, 600, 0, 2),
    ]  # fmt: skip


def test_sums_over_calls_become_means(tmp_path: Path) -> None:
    run = profiled(tmp_path)
    found = rows(
        run, "SELECT stage_id, function, line, calls, memory_bytes, grown_bytes FROM spark_python_memory ORDER BY line"
    )
    assert [(*each[:4], each[4] / MIB, each[5] / MIB) for each in found] == [
        ("stage:0.0", "job.grown", 12, 4, 100, 0),
        ("stage:0.0", "job.grown", 14, 4, 350, 250),
        ("stage:0.0", "job.grown", 16, 4, 360, -20),
        ("stage:0.0", "job.grown", 17, 4, 300, 0),
    ]
    seen = remark(run)
    assert (seen.function, seen.where, seen.calls, seen.limit_bytes) == ("job.grown", "job.py:14", 4, None)
    assert (seen.start_bytes, seen.most_bytes, seen.grown_bytes) == (100 * MIB, 360 * MIB, 250 * MIB)
    assert {100, 360, 14, 1000, 4} <= set(map(int, figures(text_of(seen, run.verdict().debug.words))))
    assert not any(isinstance(each, LessPythonMemory) for each in run.verdict().recommendations), "nothing ran out"


@pytest.mark.parametrize(("cores", "limit_mib"), [(None, 500), ("2", 500), ("4", 250)])
def test_the_limit_of_a_worker_is_a_part_of_the_executors(tmp_path: Path, cores: str | None, limit_mib: int) -> None:
    properties = {"spark.executor.pyspark.memory": "1000m"} | ({"spark.executor.cores": cores} if cores else {})
    assert remark(profiled(tmp_path, properties=properties)).limit_bytes == limit_mib * MIB


def test_a_profile_without_its_function_in_a_plan_is_left_out(tmp_path: Path) -> None:
    run = profiled(tmp_path, tree=Operator("ArrowEvalPython", "ArrowEvalPython [other(a#1)#8], [pythonUDF0#90]", {}))
    assert rows(run, "SELECT count(*) FROM spark_python_memory") == [(0,)]
    assert rows(run, "SELECT count(*) FROM import_stats WHERE name = 'python profile'") == [(1,)]


@pytest.mark.parametrize("text", [f"Filename: /job.py\n\n{HEADING}\n====\n", PROFILE[:170]])
def test_a_profile_without_a_measured_line_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "udf_7_memory.txt"
    path.write_text(text, encoding="utf-8")
    with refused(InputError, path, "memory"):
        memory_profile.read(str(path), Problems())


def test_a_profile_of_an_older_memory_profiler_is_named(tmp_path: Path) -> None:
    path = tmp_path / "udf_7_memory.txt"
    path.write_text("Filename: /job.py\n\nLine #    Mem usage    Increment   Line Contents\n=====\n")
    with refused(InputError, path, "memory_profiler"):
        discover([path])


# Advice ---------------------------------------------------------------------------------------------------------------

ALLOCATION = "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.0 GiB for an array with shape (1,)"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Traceback (most recent call last):\n  File "job.py", line 1, in f\nMemoryError\n', "delegate"),
        (ALLOCATION, "delegate"),
        ("pyarrow.lib.ArrowMemoryError: malloc of size 64 failed", "delegate"),
        ("java.lang.OutOfMemoryError: Java heap space", "heap"),
        ("org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY]", "heap"),
        ("ValueError: no MemoryErrors here", None),
    ],
)
def test_errors_of_python_are_distinguished_from_those_of_the_heap(text: str, kind: str | None) -> None:
    assert failures.exhausted_memory(text) == kind


def test_a_real_run_that_ran_out_of_memory_names_the_line(tmp_path: Path) -> None:
    """The query failed because a worker exceeded its limit; Spark's profile has the tasks that succeeded."""
    folder = Path(__file__).parents[1] / "lab" / "recordings" / "python" / "memory-limit"
    dumped = sorted(folder.glob("udf_*_memory.txt"))
    run = cp.profile([folder / "log.zstd", *dumped], output=tmp_path / "run.duckdb")
    verdict = run.verdict()
    assert verdict.debug.outcome is not None
    assert verdict.debug.outcome.memory == "delegate"
    ((line,),) = rows(run, "SELECT arg_max(line, grown_bytes) FROM spark_python_memory GROUP BY origin")
    (less,) = (each for each in verdict.recommendations if isinstance(each, LessPythonMemory))
    assert (less.function, less.where) == ("python_jobs.grown", f"python_jobs.py:{line}")
    (rows_setting,) = less.settings
    assert rows_setting.name == "spark.sql.execution.arrow.maxRecordsPerBatch"
    assert (rows_setting.before, isinstance(rows_setting.after, int)) == (10_000, True)
    assert less.settings[0].after < 10_000  # type: ignore[operator]
    (more,) = (each for each in verdict.recommendations if isinstance(each, ExtendMemory))
    assert more.settings[0].name == "spark.executor.pyspark.memory"
    for each in (less, more):
        assert text_of(each, verdict.debug.words)
        assert lines_of(each, verdict.debug.words)
