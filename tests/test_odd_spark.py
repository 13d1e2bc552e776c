"""Runs of Spark on this machine whose cause was known beforehand: small logs of them, through the real reader.

Each is what Spark 3.5.5 or 4.1.0 wrote, without the fields that nothing reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import zstandard

import crystalperf as cp
from crystalperf.query.advise.verdict import bottleneck_of
from crystalperf.query.frameworks.spark import recommendations as spark
from crystalperf.query.frameworks.spark import storage
from crystalperf.query.frameworks.spark.failures import cause
from crystalperf.query.frameworks.spark.findings import (
    CacheRows,
    PartitionWindow,
    ReadAgain,
    SmallFiles,
    SmallOutput,
    WriteFewerFiles,
)
from crystalperf.query.frameworks.spark.recommendations import (
    AvoidBroadcast,
    ProfilePython,
    SendFewerRows,
    SplitSkewedJoin,
)
from crystalperf.query.frameworks.spark.remarks import PythonFunctions
from crystalperf.query.frameworks.spark.rewrites import BroadcastSmallSide
from crystalperf.query.results.answers import Verdict
from crystalperf.query.results.findings import Finding, OddUse
from crystalperf.query.run import Run
from crystalperf.query.text.answers import bottleneck_sentence, unsubmitted_sentence
from tests.hand_made import Seconds, figures
from tests.reading import profiled, rows
from tests.spark_logs import MIB, Query, Stage, waves, write

LOGS = Path(__file__).parent / "data" / "spark"
Reported = Callable[[str], Verdict]


@pytest.fixture(scope="module")
def run() -> Callable[[str], Run]:
    return lambda name: profiled(LOGS / f"{name}.zstd")


@pytest.fixture(scope="module")
def reported(run: Callable[[str], Run]) -> Reported:
    return cache(lambda name: run(name).verdict())


def first_sentence(verdict: Verdict) -> str:
    return bottleneck_sentence(bottleneck_of(verdict.debug), verdict.debug, verdict.header.resources, Seconds())


def of(verdict: Verdict, kind: type[Finding]) -> float:
    return sum(each.cost_ms for each in verdict.debug.findings if isinstance(each, kind))


def test_many_small_files_that_were_read_are_reported(reported: Reported) -> None:
    verdict = reported("tiny-files")
    (found,) = (each for each in verdict.debug.findings if isinstance(each, SmallFiles))
    assert (found.stage, found.other_stages, found.files, found.file_bytes) == ("stage:0.0", 1, 3000, 570)
    assert "files" in first_sentence(verdict)
    assert verdict.recommendations[0].because == "small-files"
    path_ms = sum(each.path_ms for each in verdict.debug.stages if each.id in ("stage:0.0", "stage:3.0"))
    assert 0.5 * path_ms < of(verdict, SmallFiles) < path_ms, "what tasks computed is not for the files' number"


def test_many_small_files_that_were_written_are_reported_with_their_writer(reported: Reported) -> None:
    verdict = reported("small-output")
    (found,) = (each for each in verdict.debug.findings if isinstance(each, SmallOutput))
    assert (found.stage, found.other_stages, found.files) == ("stage:1.0", 0, 4000)
    assert isinstance(found.advice, WriteFewerFiles)
    assert found.advice.partitions is not None
    assert "files" in first_sentence(verdict)
    assert verdict.recommendations[0].because == "small-output"
    assert of(verdict, SmallFiles) == 0


def test_driver_counters_become_a_table(run: Callable[[str], Run]) -> None:
    found = rows(run("small-output"), "SELECT name, value FROM spark_driver_metrics WHERE node_id = 0")
    assert dict(found)["number of written files"] == 4000
    assert dict(found)["job commit time"] == 13_965


def test_rows_read_by_several_queries_should_be_cached(reported: Reported) -> None:
    verdict = reported("read-again")
    (found,) = (each for each in verdict.debug.findings if isinstance(each, ReadAgain))
    assert (found.readers, found.advice) == (6, CacheRows("query"))
    assert verdict.recommendations[0].because == "repeated-reads"
    scans_ms = [each.path_ms for each in verdict.debug.stages if "scan" in each.name]
    others_ms = sum(scans_ms) - max(scans_ms)
    assert 0.99 * others_ms < of(verdict, ReadAgain) <= others_ms, "the first has to read, and cached rows are decoded"


def test_rows_that_do_not_fit_in_memory_get_no_advice_to_cache(tmp_path: Path) -> None:
    packed = (LOGS / "read-again.zstd").read_bytes()
    lines = zstandard.ZstdDecompressor().stream_reader(packed).read().decode()
    settings = '"Spark Properties":{'
    assert settings in lines
    path = tmp_path / "log"
    path.write_text(lines.replace(settings, f'{settings}"spark.driver.memory":"512m",'), encoding="utf-8")
    verdict = cp.profile([path], output=tmp_path / "run.duckdb").verdict()
    assert of(verdict, ReadAgain) == 0, "two times 141 MiB do not fit in (512 - 300) MiB x 0.6"


def test_scans_of_other_columns_read_other_rows() -> None:
    def read(name: str, columns: str) -> tuple[str, str] | None:
        return storage._rows_read(name, f"FileScan {name} [{columns}] Batched: true", "InMemoryFileIndex[file:/a]")

    assert read("Scan parquet", "a#1,b#2L") == read("Scan parquet", "a#7,b#8L")
    assert read("Scan parquet", "a#1") != read("Scan parquet", "b#1")
    assert read("Scan csv", "a#1") == read("Scan csv", "b#1"), "all of a row is parsed"
    assert storage._rows_read("Scan ExistingRDD", "Scan ExistingRDD[a#1]", None) is None
    assert storage._rows_read("Scan hive db.sales", None, None) == ("db.sales", "")


def test_tasks_that_wait_for_python_workers_are_reported_by_the_plans_own_times(reported: Reported) -> None:
    verdict = reported("python-udf")
    found = bottleneck_of(verdict.debug)
    assert (found.kind, found.name) == ("part", "python-functions")
    (part,) = verdict.debug.named_parts
    assert isinstance(part.remark, PythonFunctions)
    assert [each.functions for each in part.remark.groups] == [("f",)]
    other_ms = verdict.debug.other_ms
    assert other_ms["delegated"] == pytest.approx(21_500, rel=0.01), (
        "generated code that feeds the workers waits for them"
    )
    assert other_ms["unknown"] < 1_000
    first = verdict.recommendations[0]
    assert isinstance(first, ProfilePython)
    assert first.scalar_udf
    assert [(each.name, each.after) for each in first.settings] == [("spark.sql.pyspark.udf.profiler", "perf")]


def test_without_such_times_a_task_that_has_a_python_worker_waits_for_it(tmp_path: Path) -> None:
    stages = [Stage(list(waves(8, 8, 2, ms=30_000, cpu_ms=300)), reads="PythonRDD")]
    path = write(tmp_path / "log", stages, executors={"1": 4, "2": 4})
    debug = cp.profile([path], output=tmp_path / "run.duckdb").debug()
    assert debug.other_ms["delegated"] == pytest.approx(29_700, rel=0.02)
    assert debug.other_ms.get("unknown", 0.0) < 500


def test_collecting_rows_is_program_time_and_not_a_pause(reported: Reported) -> None:
    verdict = reported("collect")
    assert verdict.debug.unsubmitted is None, "19 of 26 s without a query, in which the program read 81 MiB of rows"
    assert bottleneck_of(verdict.debug).name == "end"
    (collected,) = (each for each in verdict.recommendations if isinstance(each, SendFewerRows))
    assert (collected.stage, collected.name, collected.others) == ("stage:0.0", "collect at job.py:39", 0)
    assert collected.sent_bytes == pytest.approx(81 * 2**20, rel=0.01)
    assert 5_000 < collected.saving.range_ms[1] < 16_000


def test_results_that_the_driver_fetches_from_itself_cross_no_network(
    reported: Reported, run: Callable[[str], Run]
) -> None:
    assert reported("collect").debug.resource_ms["net"] == 0
    assert of(reported("collect"), OddUse) == 0, "3 s of getting results are not network time for 0 bytes"
    slower = run("collect").predict(["network=0.5x"])
    assert slower.predicted_ms is None or slower.predicted_ms == pytest.approx(slower.runtime_ms, rel=0.01)


def test_large_broadcast_is_reported(reported: Reported) -> None:
    (avoid,) = (each for each in reported("large-broadcast").recommendations if isinstance(each, AvoidBroadcast))
    assert [(each.name, each.after) for each in avoid.settings] == [("spark.sql.autoBroadcastJoinThreshold", -1)]


def test_a_join_is_split_only_above_the_threshold_that_is_set_with_it(reported: Reported) -> None:
    broadcast, first, *_ = reported("skewed-join").recommendations
    assert isinstance(broadcast, BroadcastSmallSide), "of 469 KiB: no shuffle, so no skew"
    assert isinstance(first, SplitSkewedJoin)
    assert first.threshold_bytes == 256 * 2**20
    assert first.largest_bytes == pytest.approx(79 * 2**20, rel=0.01)
    assert [(each.name.removeprefix("spark.sql.adaptive."), each.after) for each in first.settings] == [
        ("enabled", True),
        ("skewJoin.skewedPartitionThresholdInBytes", "40m"),
        ("advisoryPartitionSizeInBytes", "40m"),
    ]


def test_window_over_all_rows_is_reported(reported: Reported) -> None:
    verdict = reported("one-window")
    assert PartitionWindow() in {each.advice for each in verdict.debug.findings}
    assert spark.PartitionWindow in {type(each) for each in verdict.recommendations}


def test_a_stream_that_its_user_stopped_in_a_batch_did_not_fail(reported: Reported) -> None:
    outcome = reported("stopped-stream").debug.outcome
    assert outcome.status != "failed"


def test_exception_of_the_jvm_is_reported_for_python_that_called_it() -> None:
    stack = 'Traceback (most recent call last):\n  File "job.py", line 3, in f\n    g()\n'
    error = "py4j.protocol.Py4JJavaError: An error occurred while calling o61.collectToPython."
    assert cause(f"{stack}{error}\n: java.lang.InterruptedException\n\tat a.B.c(B.java:1)") == "InterruptedException"
    thrown = f"{stack}{error}\n: java.io.IOException: no space left\n\tat a.B.c(B.java:1)"
    assert cause(thrown) == "IOException: no space left"
    assert cause(f"{stack}{error}") == error.partition("protocol.")[2]


def test_pauses_without_a_known_cause_are_reported_as_pauses(reported: Reported) -> None:
    debug = reported("pauses").debug
    assert not debug.unsubmitted.interactive
    assert figures(unsubmitted_sentence(debug, Seconds(), Seconds()))


def test_invalid_value_of_a_list_leaves_the_others_answered(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [Stage(list(waves(8, 4, 2, ms=4000, cpu_ms=3900)))], executors={"1": 2, "2": 2},
                 query=Query())  # fmt: skip
    sweep = cp.profile([path], output=tmp_path / "run.duckdb").sweep(["executors=0.25x,2x"])
    half, double = sweep.points
    assert half.predicted_ms is None
    assert [each.kind for each in half.refused] == ["invalid-question"]
    assert double.predicted_ms is not None


def test_few_files_or_large_ones_are_not_reported(tmp_path: Path) -> None:
    assert not storage._small(99, 99.0)
    assert not storage._small(1000, 1000.0 * MIB)
    assert storage._small(1000, 1000.0 * MIB - 1)
