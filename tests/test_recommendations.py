"""Recommendations for a run, through the real reader: kinds, settings, what they save, and when there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pytest

import crystalperf as cp
from crystalperf.query.advise.ranking import ordered, ranked
from crystalperf.query.diagnose.stage_statistics import stage_stats
from crystalperf.query.execution.load import load
from crystalperf.query.frameworks.spark import recommendations as spark
from crystalperf.query.frameworks.spark.advise.partitions import cuts
from crystalperf.query.frameworks.spark.advise.stages import Stages
from crystalperf.query.frameworks.spark.findings import UnaskedSlots
from crystalperf.query.frameworks.spark.refusals import LocalRun
from crystalperf.query.frameworks.spark.settings import size_text
from crystalperf.query.results import recommendations as core
from crystalperf.query.results.advice import FewerTasks, InspectProgram, StartWorkersSooner
from crystalperf.query.results.answers import Failed, Outcome, Prediction, Tally, Verdict
from crystalperf.query.results.findings import AtStart, Committing, Driver, IdleStage, NoWorker, StartingStage
from crystalperf.query.results.recommendations import Candidate, ChangeSetting, Recommendation, Saving, SettingChange
from crystalperf.query.run import Run
from crystalperf.query.text.answers import nothing_to_do, saving_text
from crystalperf.query.text.as_json import as_json
from crystalperf.query.text.sentences import lines_of
from tests.hand_made import Seconds, figures
from tests.spark_logs import MIB, Query, Stage, Task, waves, write

SCAN = Query([("HashAggregate", "HashAggregate(keys=[])"), ("Scan parquet", "FileScan parquet [a#1]")])
SHUFFLED = Query([("HashAggregate", "HashAggregate(keys=[])"), ("Exchange", "Exchange hashpartitioning(a#1, 4)")])
CLUSTER = {"spark.master": "yarn", "spark.executor.memory": "4g", "spark.executor.instances": "2"}


def reported(folder: Path, stages: Sequence[Stage], properties: dict[str, str] | None = None, **more: Any) -> Verdict:
    given = {"executors": {"1": 8, "2": 8}, "properties": {**CLUSTER, **(properties or {})}, **more}
    path = write(folder / "log", stages, **given)
    return cp.profile([path], output=folder / "run.duckdb").verdict()


def shuffling(count: int, **of: Any) -> Stage:
    return Stage(list(waves(count, 16, 2, **of)), reads="ShuffledRowRDD")


def lines(verdict: Verdict) -> list[str]:
    return [line for each in verdict.recommendations for line in lines_of(each, verdict.debug.words)]


def settings(found: Sequence[Recommendation]) -> dict[str, tuple[core.Value, core.Value]]:
    return {change.name: (change.before, change.after) for each in found for change in each.settings}


R = TypeVar("R", bound=Recommendation)


def only(verdict: Verdict, kind: type[R]) -> R:
    (found,) = [each for each in verdict.recommendations if isinstance(each, kind)]
    return found


def test_recommended_partitions_fit_the_slots_and_name_the_deciding_setting(tmp_path: Path) -> None:
    stage = shuffling(4, ms=40_000, cpu_ms=39_000, shuffled_bytes=64 * MIB)
    verdict = reported(tmp_path, [stage], {"spark.sql.shuffle.partitions": "4"}, query=SHUFFLED)
    first = verdict.recommendations[0]
    assert isinstance(first, spark.SetPartitions)
    assert first.settings == (SettingChange("spark.sql.shuffle.partitions", 4, 16),)
    assert (first.stages.stage, first.stages.others, first.stages.tasks, first.stages.slots) == ("stage:0.0", 0, 4, 16)
    assert lines(verdict)[0] == "--conf spark.sql.shuffle.partitions=16"
    assert first.saving.ms == pytest.approx(30_000, rel=0.1), "it is what predict says"
    assert first.saving.range_ms is not None
    assert first.saving.range_ms[0] == 0, "it may have no effect"
    assert first.saving.range_ms[1] > first.saving.ms


def test_a_last_wave_that_is_half_empty_asks_for_whole_waves(tmp_path: Path) -> None:
    stage = shuffling(20, ms=20_000, cpu_ms=19_000, shuffled_bytes=64 * MIB)
    verdict = reported(tmp_path, [stage], {"spark.sql.shuffle.partitions": "20"}, query=SHUFFLED)
    assert settings(verdict.recommendations)["spark.sql.shuffle.partitions"] == (20, 32)


def test_partition_setting_is_not_recommended_if_it_did_not_decide_the_tasks(tmp_path: Path) -> None:
    stage = shuffling(4, ms=40_000, cpu_ms=39_000, shuffled_bytes=64 * MIB)
    verdict = reported(tmp_path, [stage], query=SHUFFLED)  # 200 partitions, which adaptive execution merged
    assert "spark.sql.shuffle.partitions" not in settings(verdict.recommendations)
    (size,) = only(verdict, spark.KeepPartitions).settings
    assert (size.name.rpartition(".")[2], size.before_bytes, size.is_default) == ("minPartitionSize", MIB, True)
    off = {"spark.sql.adaptive.coalescePartitions.parallelismFirst": "false"}
    (tmp_path / "off").mkdir()
    (first,) = only(reported(tmp_path / "off", [stage], off, query=SHUFFLED), spark.KeepPartitions).settings
    assert (first.name.rpartition(".")[2], first.before, first.after) == ("parallelismFirst", False, True)


@pytest.mark.later
def test_a_partition_that_adaptive_execution_does_not_make_is_the_programs(tmp_path: Path) -> None:
    stage = shuffling(1, ms=40_000, cpu_ms=39_000, shuffled_bytes=2048 * MIB)
    verdict = reported(tmp_path, [stage], query=SHUFFLED)
    first = only(verdict, spark.AskForPartitions)
    assert verdict.recommendations[0] == first
    assert (first.partitions, first.stages.tasks, first.sql) == (16, 1, True)
    assert lines(verdict)[0] == "df = df.repartition(16)"
    assert not any(isinstance(each, spark.KeepPartitions) for each in verdict.recommendations)
    (tmp_path / "off").mkdir()
    small = shuffling(1, ms=40_000, cpu_ms=39_000, shuffled_bytes=8 * MIB)
    off = {"spark.sql.adaptive.enabled": "false"}
    assert lines(reported(tmp_path / "off", [small], off, query=SHUFFLED))[0] == "df = df.repartition(16)"


@pytest.mark.later
def test_default_parallelism_is_named_only_if_it_decided_the_tasks(tmp_path: Path) -> None:
    """A sort onto 2 partitions, of its own, got the advice to raise a setting of 16 to 16."""
    stage = shuffling(2, ms=40_000, cpu_ms=39_000, shuffled_bytes=2048 * MIB)
    for value, kind in (("16", spark.ReduceInPartitions), ("2", spark.SetPartitions)):
        (tmp_path / value).mkdir()
        first = reported(tmp_path / value, [stage], {"spark.default.parallelism": value}).recommendations[0]
        assert isinstance(first, kind)
        changed = {"spark.default.parallelism": (2, 16)} if kind == spark.SetPartitions else {}
        assert settings([first]) == changed


def test_a_query_that_goes_on_after_it_wrote_puts_its_output_in_place(tmp_path: Path) -> None:
    stage = Stage([Task(4_000, "1", cpu_ms=3_900, read_bytes=MIB, written_bytes=64 * MIB)] * 2)
    verdict = reported(tmp_path, [stage], query=replace(SCAN, after_ms=20_000))
    first = verdict.recommendations[0]
    assert isinstance(first, core.FollowAdvice)
    found = first.finding
    assert isinstance(found, Committing)
    assert (found.scope, found.longest_ms, found.others) == ("sql:0", 20_000, 0)
    assert first.saving.range_ms[1] == pytest.approx(20_000)
    rest = [each.cost_ms for each in verdict.debug.findings if isinstance(each, Driver)]
    assert sum(rest) < 1000, "it is not reported a second time"

    (tmp_path / "reads").mkdir()
    reads = Stage([Task(4_000, "1", cpu_ms=3_900, read_bytes=MIB)] * 2)
    verdict = reported(tmp_path / "reads", [reads], query=replace(SCAN, after_ms=20_000))
    assert "committing" not in {each.kind for each in verdict.debug.findings}


def test_files_are_cut_smaller_if_spark_split_them_and_else_stored_in_another_way(tmp_path: Path) -> None:
    small = [Task(20_000, "1", cpu_ms=19_000, read_bytes=4 * MIB) for _ in range(4)]
    verdict = reported(tmp_path, [Stage(small)], query=SCAN)
    (cost,) = only(verdict, spark.CutFilesSmaller).settings
    assert cost == SettingChange("spark.sql.files.openCostInBytes", "4m", "1m", 4 * MIB, MIB, is_default=True)
    gzip = [Task(20_000, "1", cpu_ms=19_000, read_bytes=900 * MIB) for _ in range(4)]
    (tmp_path / "gzip").mkdir()
    verdict = reported(tmp_path / "gzip", [Stage(gzip)], query=SCAN)
    first = only(verdict, spark.SplitFiles)
    assert first.partitions == 16
    assert verdict.recommendations[0] == first
    assert first.saving.ms is None
    assert figures(saving_text(first.saving, Seconds())) == [15]


def test_files_of_an_rdd_are_cut_where_they_are_read(tmp_path: Path) -> None:
    """Rows were to be spread by a shuffle of all that was read."""
    blocks = [Task(20_000, "1", cpu_ms=19_000, read_bytes=128 * MIB) for _ in range(4)]
    verdict = reported(tmp_path, [Stage(blocks)])
    first = only(verdict, spark.ReadInPartitions)
    assert verdict.recommendations[0] == first
    assert (first.partitions, first.stages.stage, first.stages.tasks, first.stages.slots) == (16, "stage:0.0", 4, 16)
    assert lines(verdict)[0].startswith("rdd = sc.textFile(path, 16)  # for gzip files: rdd.repartition(16)")


@pytest.mark.later
def test_files_that_are_read_only_for_their_schema_ask_for_the_schema(tmp_path: Path) -> None:
    """The advice was to repartition an RDD that no line of the program has."""
    reading = [Task(35_000, "1", cpu_ms=33_000, read_bytes=128 * MIB) for _ in range(4)]
    verdict = reported(tmp_path, [Stage(reading, name="csv at job.py:1")])
    first = verdict.recommendations[0]
    assert isinstance(first, spark.GiveSchema)
    assert (first.jobs, first.inferred, first.stage, first.name) == (1, True, "stage:0.0", "scan: csv at job.py:1")
    assert first.saving.range_ms[1] == pytest.approx(35_000, rel=0.05)
    assert not any("repartition" in each or "textFile" in each for each in lines(verdict))
    (tmp_path / "query").mkdir()
    of_query = reported(tmp_path / "query", [Stage(reading, name="csv at job.py:1")], query=SCAN)
    kinds = [type(each) for each in of_query.recommendations]
    assert spark.GiveSchema not in kinds, "a query reads for its rows"


@pytest.mark.later
def test_a_task_of_less_than_a_second_is_not_worth_parts(tmp_path: Path) -> None:
    """A hundred jobs of one short task each were to be cut in 16."""
    short = [Stage([Task(700, "1", cpu_ms=680, read_bytes=128 * MIB)]) for _ in range(100)]
    assert not any(isinstance(each, spark.InProgram) for each in reported(tmp_path, short).recommendations)
    (tmp_path / "long").mkdir()
    long = [Stage([Task(7_000, "1", cpu_ms=6_800, read_bytes=128 * MIB)]) for _ in range(10)]
    assert any(isinstance(each, spark.InProgram) for each in reported(tmp_path / "long", long).recommendations)


def test_one_key_that_holds_all_rows_is_to_be_split_though_no_task_has_more_than_usual(tmp_path: Path) -> None:
    """Of 64 tasks one has something to read: no median shows that it is long."""
    none = [Task(200, "1", cpu_ms=100) for _ in range(63)]
    verdict = reported(tmp_path, [Stage([Task(115_000, "1", cpu_ms=108_000, shuffled_bytes=2700 * MIB), *none],
                                    reads="ShuffledRowRDD")], query=SHUFFLED)  # fmt: skip
    shown = only(verdict, spark.SplitKeys).evidence
    assert isinstance(shown, IdleStage)
    assert (shown.id, shown.with_data, shown.tasks, shown.slots) == ("stage:0.0", 1, 64, 16)
    (tmp_path / "small").mkdir()
    little = Stage([Task(115_000, "1", cpu_ms=108_000, shuffled_bytes=MIB // 20), *none], reads="ShuffledRowRDD")
    small = reported(tmp_path / "small", [little], query=SHUFFLED)
    assert spark.SplitKeys not in {type(each) for each in small.recommendations}, "there are no rows to split"


def test_change_without_predicted_gain_is_not_recommended(tmp_path: Path) -> None:
    """The upper bound of a gain was shown next to a what-if without effect."""
    verdict = reported(tmp_path, [shuffling(16, ms=40_000, cpu_ms=39_000, shuffled_bytes=MIB)], query=SHUFFLED)
    memory = core.MoreMemory(price="setting", because="spilling", saving=Saving("modelled"), ratio=2.0)
    given = [Candidate(memory, "memory=2x", 37_000.0)]
    assert ranked(given, verdict.debug, verdict.header, lambda _asked: prediction(0.0)) == ()
    unknown = replace(prediction(0.0), predicted_ms=None, interval_ms=None)
    (bound,) = ranked(given, verdict.debug, verdict.header, lambda _asked: unknown)
    assert bound.saving.range_ms == (0.0, 37_000.0)


def test_more_executors_are_recommended_only_if_all_slots_work(
    tmp_path: Path,
) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    assert settings(reported(tmp_path, [busy], query=SCAN).recommendations)["spark.executor.instances"] == (2, 4)
    alone = replace(busy, after_ms=200_000)
    (tmp_path / "alone").mkdir()
    verdict = reported(tmp_path / "alone", [alone], query=SCAN)
    assert not any(isinstance(each, spark.MoreExecutors) for each in verdict.recommendations)
    one = Stage([Task(90_000, "1", cpu_ms=89_000, read_bytes=900 * MIB)])
    (tmp_path / "one").mkdir()
    verdict = reported(tmp_path / "one", [one], query=SCAN)
    assert not any(isinstance(each, spark.MoreExecutors) for each in verdict.recommendations)


@pytest.mark.later
def test_twice_the_executors_is_twice_those_that_were_asked_for_and_no_more_than_came(tmp_path: Path) -> None:
    """Of two that are asked for a third may be there for a moment, in the place of one that goes."""
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    for asked in (1, 10):
        (tmp_path / str(asked)).mkdir()
        verdict = reported(tmp_path / str(asked), [busy], {"spark.executor.instances": str(asked)}, query=SCAN)
        twice = only(verdict, spark.MoreExecutors)
        assert (twice.before, twice.after, twice.price) == (2, 4, "machine")
        assert twice.asked == (None if asked == 1 else 10), "a cluster has to have the capacity for them"
        assert settings([twice]) == ({"spark.executor.instances": (1, 2)} if asked == 1 else {})


@pytest.mark.later
def test_more_executors_than_dynamic_allocation_may_ask_for_raise_its_most(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "2"}
    twice = only(reported(tmp_path, [busy], dynamic, query=SCAN), spark.MoreExecutors)
    assert settings([twice]) == {"spark.dynamicAllocation.maxExecutors": (2, 4)}
    (tmp_path / "more").mkdir()
    more = {**dynamic, "spark.dynamicAllocation.maxExecutors": "4"}
    twice = only(reported(tmp_path / "more", [busy], more, query=SCAN), spark.MoreExecutors)
    assert settings([twice]) == {"spark.dynamicAllocation.minExecutors": (0, 4)}


def test_stage_input_is_described_by_its_reads_if_spark_names_no_metrics(tmp_path: Path) -> None:
    """As Spark 1 has it: an RDD that is sorted reads a shuffle, and no rows that the program hands over."""
    sorted_rows = Stage(list(waves(2, 16, 2, ms=20_000, cpu_ms=19_000, shuffled_bytes=900 * MIB)), reads="map")
    kinds = [type(each) for each in reported(tmp_path, [sorted_rows]).recommendations]
    assert spark.ReduceInPartitions in kinds
    assert spark.CutCollection not in kinds


def test_slots_not_requested_by_dynamic_allocation_are_reported(tmp_path: Path) -> None:
    """Forty tasks had forty slots, because Spark asks for no more, where the stage before had two hundred."""
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "4"}
    wide = Stage(list(waves(64, 32, 4, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    narrow = Stage(list(waves(8, 8, 1, ms=100_000, cpu_ms=95_000, shuffled_bytes=900 * MIB)), reads="ShuffledRowRDD")
    log = write(
        tmp_path / "log", [wide, narrow], executors={str(each): 8 for each in range(1, 5)}, query=SHUFFLED,
        properties={**CLUSTER, **dynamic, "spark.sql.adaptive.enabled": "false"}, removed={"2": 0, "3": 0, "4": 0},
    )  # fmt: skip
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    (idle,) = [each for each in run.debug().findings if isinstance(each, UnaskedSlots)]
    assert [(each.slots, each.tasks, each.run_slots) for each in idle.stages] == [(8, 8, 32)]
    assert idle.cost_ms == pytest.approx(75_000)
    assert "df = df.repartition(32)" in lines(run.verdict())


def test_gpus_give_no_advice_for_more_executors_or_cpus(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    verdict = reported(tmp_path, [busy], query=Query([("GpuScan parquet", "GpuScan parquet [a#1]")]))
    assert not {spark.MoreExecutors, core.FasterDevice} & {type(each) for each in verdict.recommendations}


def test_resources_that_cannot_be_bought_are_not_recommended(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    cpu = only(reported(tmp_path, [busy], query=SCAN), core.FasterDevice)
    assert (cpu.resource, cpu.ratio, cpu.price) == ("cpu", 1.25, "machine")
    assert 0.1 * 38_000 < cpu.saving.ms < 0.22 * 38_000, "a quarter faster, not twice as fast"


def test_collections_ask_for_memory_with_its_present_value(tmp_path: Path) -> None:
    full = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=4000, gc_ms=5000, read_bytes=128 * MIB)))
    verdict = reported(tmp_path, [full], query=SCAN)
    memory = only(verdict, core.MoreMemory)
    assert memory.because == "garbage-collection"
    assert memory.settings == (SettingChange("spark.executor.memory", "4g", "8g", 2.0**32, 2.0**33),)
    assert memory.saving.range_ms[1] <= 0.5 * verdict.debug.runtime_ms


@pytest.mark.later
def test_spills_of_python_workers_recommend_memory_for_them(tmp_path: Path) -> None:
    spilling = list(waves(64, 16, 2, ms=10_000, cpu_ms=1000, read_bytes=128 * MIB, spilled_bytes=100 * MIB))
    verdict = reported(tmp_path, [Stage(spilling, reads="PythonRDD")])
    memory = only(verdict, core.MoreMemory)
    assert (memory.because, settings([memory])) == ("spilling", {"spark.python.worker.memory": ("512m", "1g")})
    assert memory.settings[0].is_default
    (tmp_path / "jvm").mkdir()
    memory = only(reported(tmp_path / "jvm", [Stage(spilling)]), core.MoreMemory)
    assert (memory.because, settings([memory])) == ("spilling", {"spark.executor.memory": ("4g", "8g")})
    assert memory.saving.ms is None, "how long it spilled is not known"


def test_a_local_run_has_slots_and_no_executors(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 8, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    tasks = [replace(each, executor="driver") for each in busy.tasks]
    verdict = reported(tmp_path, [Stage(tasks)], {"spark.master": "local[8,4]"}, executors={"driver": 8}, query=SCAN)
    assert settings([only(verdict, spark.MoreLocalSlots)]) == {"spark.master": ("local[8,4]", "local[16,4]")}
    assert any(each.startswith("--master 'local[16,4]'") for each in lines(verdict)), "a shell takes brackets"
    assert not any(isinstance(each, spark.MoreExecutors) for each in verdict.recommendations)
    assert not any(each.setting.startswith("executors=") for each in verdict.what_ifs)
    asked = cp.open_run(verdict.run).predict(["executors=2x"])
    assert asked.refused == (LocalRun(),)


def test_samples_come_last_and_only_where_much_is_unknown(tmp_path: Path) -> None:
    waiting = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=1000, read_bytes=128 * MIB)))
    verdict = reported(tmp_path, [waiting], query=SCAN)
    *others, last = verdict.recommendations
    assert isinstance(last, core.RecordSamples)
    assert not any(isinstance(each, core.RecordSamples) for each in others)
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9990, read_bytes=128 * MIB)))
    (tmp_path / "busy").mkdir()
    found = reported(tmp_path / "busy", [busy], query=SCAN).recommendations
    assert not any(isinstance(each, core.RecordSamples) for each in found)


def test_gains_below_a_second_are_not_recommended(tmp_path: Path) -> None:
    short = Stage([Task(300, "1", cpu_ms=290, shuffled_bytes=64 * MIB)], reads="ShuffledRowRDD")
    verdict = reported(tmp_path, [short], {"spark.sql.shuffle.partitions": "1"}, query=SHUFFLED, begin_ms=10)
    assert {type(each) for each in verdict.recommendations} <= {core.RecordSamples}


def test_a_run_without_anything_to_do_says_so(tmp_path: Path) -> None:
    verdict = reported(tmp_path, [shuffling(16, ms=40_000, cpu_ms=39_999, shuffled_bytes=MIB)], query=SHUFFLED)
    assert figures(nothing_to_do(replace(verdict, recommendations=()))) == [3, 1]
    assert nothing_to_do(replace(verdict, recommendations=(setting("a"),))) == ""


# Recommendations on the end of a run ----------------------------------------------------------------------------------


def recommended(run: Run, outcome: Outcome) -> tuple[Recommendation, ...]:
    debug = replace(run.debug(), outcome=outcome)
    return ranked(run.candidates(debug), debug, run.header(), lambda _setting: None)


def test_failures_come_first_and_more_executors_are_not_recommended(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    path = write(tmp_path / "log", [busy], executors={"1": 8, "2": 8}, properties=CLUSTER, query=SCAN)
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    failure = Failed("job", "job:3", "count", "RuntimeException: bad")
    failed = Outcome("failed", (Tally("job", 4, 1),), (failure,))
    found = recommended(run, failed)
    assert isinstance(found[0], core.FixFailure)
    assert (found[0].failed, found[0].error) == ("job:3", "RuntimeException: bad")
    assert not any(isinstance(each, core.MoreWorkers) for each in found)
    for memory, basis in (("container", "modelled"), ("killed", "guessed")):
        _, extended, *_ = recommended(run, replace(failed, memory=memory))
        assert isinstance(extended, spark.ExtendMemory)
        assert (extended.exhausted, extended.saving.basis) == (memory, basis)
        assert settings([extended]) == {"spark.executor.memoryOverhead": ("410m", "820m")}
        assert extended.settings[0].is_default
    gpu = recommended(run, replace(failed, memory="device"))
    assert settings(gpu[1:2]) == {"spark.rapids.sql.concurrentGpuTasks": (None, 1)}
    assert not any(isinstance(each, spark.ExtendMemory) for each in gpu)
    heap = recommended(run, replace(failed, memory="heap"))
    assert settings(heap[1:2]) == {"spark.executor.memory": ("4g", "8g")}
    assert not any(isinstance(each, core.FixFailure) for each in recommended(run, Outcome("succeeded")))


def test_first_recommendation_after_a_stopped_context_is_the_driver_log(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(16, ms=40_000, cpu_ms=39_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    error = "Job cancelled because SparkContext was shut down"
    failed = Failed("job", "job:3", "sort", error)
    first, *_ = recommended(run, Outcome("failed", failures=(failed,)))
    assert isinstance(first, spark.ReadDriverLog)
    assert first.failed == "job:3"
    other = replace(failed, error="BadRow: row 7 has no id")
    assert isinstance(recommended(run, Outcome("failed", failures=(other,)))[0], core.FixFailure)


# Ranks and JSON -------------------------------------------------------------------------------------------------------


def setting(name: str, price: core.Price = "setting") -> ChangeSetting:
    change = SettingChange(name, 1, 2)
    return ChangeSetting(price=price, because="r", saving=Saving("modelled"), settings=(change,))


def prediction(gain_ms: float) -> Prediction:
    return Prediction("all", "makespan", "x=2x", 100_000.0, 100_000.0, 100_000.0 - gain_ms, (60_000.0, 99_000.0))


def saved(name: str, price: core.Price, ms: float | None, low: float, high: float) -> ChangeSetting:
    return replace(setting(name, price), saving=Saving("modelled", ms, (low, high)))


def test_free_changes_come_before_settings_and_these_before_machines() -> None:
    given = [
        saved("machine", "machine", 40e3, 10e3, 60e3),
        saved("to find", "inspect", None, 0.0, 90e3),
        saved("setting", "setting", 20e3, 10e3, 30e3),
        saved("small code", "code", 6e3, 1e3, 9e3),
        saved("code", "code", None, 0.0, 14e3),
        saved("sample", "record", 30e3, 0.0, 30e3),
    ]
    order = ["code", "small code", "setting", "to find", "machine", "sample"]
    assert [each.settings[0].name for each in ordered(given, 100e3)] == order


def test_changes_that_may_lengthen_the_run_come_after_all_others_but_small_ones() -> None:
    given = [
        saved("longer", "code", 40e3, -1.0, 60e3),
        saved("at most", "code", None, 0.0, 9e3),
        saved("machine", "machine", 10e3, 1e3, 20e3),
        saved("small", "code", None, 0.0, 3.9e3),
    ]
    order = ["at most", "machine", "longer", "small"]
    assert [each.settings[0].name for each in ordered(given, 100e3)] == order


def test_free_saving_below_a_tenth_of_another_is_small() -> None:
    given = [saved("code", "code", 3e3, 1e3, 4e3), saved("machine", "machine", 31e3, 9e3, 40e3)]
    assert [each.settings[0].name for each in ordered(given, 100e3)] == ["machine", "code"]
    smaller = saved("machine", "machine", 29e3, 9e3, 40e3)
    assert [each.settings[0].name for each in ordered([smaller, given[0]], 100e3)] == ["code", "machine"]


@pytest.mark.parametrize(("setting_ms", "first"), [(29e3, "code"), (30e3, "setting")])
def test_setting_that_saves_three_times_as_much_comes_before_all_code(setting_ms: float, first: str) -> None:
    given = [
        saved("code", "code", 10e3, 1e3, 14e3),
        saved("machine", "machine", 70e3, 9e3, 80e3),
        saved("setting", "setting", setting_ms, 9e3, 40e3),
    ]
    found = [each.settings[0].name for each in ordered(given, 100e3)]
    assert found[0] == first
    assert found[-1] == "machine"


def test_start_of_every_run_comes_last() -> None:
    finding = AtStart(60e3, "measured", InspectProgram("start"))
    sooner = NoWorker(30e3, "measured", StartWorkersSooner(), ever_came=True, first_worker_ms=30e3)
    start, workers = (
        core.FollowAdvice(price="code", because=each.kind, saving=Saving("measured", None, (0.0, ms)), finding=each)
        for each, ms in ((finding, 60e3), (sooner, 30e3))
    )
    small = saved("small", "setting", 1e3, -1e3, 3e3)
    assert ordered([workers, start, small], 100e3) == [small, start, workers]


def test_machines_cost_what_the_run_reserves_with_them(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(64, ms=40_000, cpu_ms=39_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    verdict = run.verdict()
    more = next(each for each in verdict.recommendations if isinstance(each, spark.MoreExecutors))
    whole_s, saved_ms = verdict.debug.runtime_ms / 1e3, more.saving.ms
    assert saved_ms is not None
    assert more.cost is not None
    assert (more.cost.unit, more.cost.other_machines) == ("core", False)
    assert more.cost.before_s == pytest.approx(16 * whole_s)
    assert more.cost.after_s == pytest.approx(32 * (whole_s - saved_ms / 1e3))
    cpu = next(each for each in verdict.recommendations if isinstance(each, core.FasterDevice))
    assert cpu.cost is not None
    assert cpu.cost.other_machines
    free = [each for each in verdict.recommendations if each.price != "machine"]
    assert all(each.cost is None for each in free)
    shown = as_json(verdict)["recommendations"][verdict.recommendations.index(more)]["cost"]
    known = {"before_s": round(more.cost.before_s, 3), "after_s": round(more.cost.after_s, 3)}
    assert shown == {"unit": "core", **known, "other_machines": False}


def test_bounds_and_purchases_rank_at_half_their_gain(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(16, ms=98_900, cpu_ms=98_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    debug = run.debug()
    given = [
        Candidate(setting("buy", "machine"), "b=2x"),
        Candidate(setting("bound"), at_most_ms=38_000.0),
        Candidate(setting("a"), "a=2x"),
        Candidate(setting("small"), at_most_ms=2000.0),
        Candidate(setting("no help"), "none=2x"),
    ]
    gains = {"a=2x": 20_000.0, "b=2x": 36_000.0, "none=2x": 100.0}
    found = ranked(given, debug, run.header(), lambda asked: prediction(gains[asked]))
    assert [each.settings[0].name for each in found] == ["a", "bound", "buy"]
    assert found[0].saving.range_ms == (1000.0, 40_000.0)
    assert found[1].saving == Saving("modelled", None, (0.0, 38_000.0))


def test_change_that_also_resolves_another_finding_replaces_its_advice(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(16, ms=98_900, cpu_ms=98_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    advised = replace(setting("merge", "code"), because="small-output")
    given = [Candidate(setting("partitions"), "a=2x", covers=frozenset({"small-output"})), Candidate(advised, "b=2x")]
    for gain_ms, kept in ((20_000.0, ["partitions"]), (100.0, ["merge"])):
        gains = {"a=2x": gain_ms, "b=2x": 15_000.0}
        found = ranked(given, run.debug(), run.header(), lambda asked, gains=gains: prediction(gains[asked]))
        assert [each.settings[0].name for each in found] == kept


def test_better_of_two_recommendations_for_one_change_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(16, ms=98_900, cpu_ms=98_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    stages = core.Affected("stage:0.0", "sort", 0, 4, 16)
    shared: dict[str, Any] = {"price": "code", "because": "r", "saving": Saving("modelled"), "stages": stages}
    ask = spark.AskForPartitions(partitions=16, sql=True, **shared)
    spread = spark.SpreadRows(partitions=32, sql=True, with_data=2, **shared)
    of_rdd = spark.ReadInPartitions(partitions=16, sql=False, **shared)
    raised = replace(setting("a"), settings=(SettingChange("a", 1, 8),))
    given = [
        Candidate(each, at_most_ms=ms)
        for each, ms in ((setting("a"), 30e3), (raised, 40e3), (ask, 50e3), (spread, 60e3), (of_rdd, 20e3))
    ]
    found = ranked(given, run.debug(), run.header(), lambda _asked: None)
    assert [replace(each, saving=Saving("modelled")) for each in found] == [spread, of_rdd, raised]


def test_json_has_the_kind_the_numbers_and_the_sentence(tmp_path: Path) -> None:
    stage = shuffling(4, ms=40_000, cpu_ms=39_000, shuffled_bytes=64 * MIB)
    verdict = reported(tmp_path, [stage], {"spark.sql.shuffle.partitions": "4"}, query=SHUFFLED)
    first, saving = as_json(verdict)["recommendations"][0], verdict.recommendations[0].saving
    assert saving.ms is not None
    assert saving.range_ms is not None
    assert first == first | {
        "kind": "set-partitions",
        "price": "setting",
        "because": "idle-slots",
        "saving": {"basis": "modelled", "ms": round(saving.ms, 3), "range_ms": [0.0, round(saving.range_ms[1], 3)]},
        "lines": ["--conf spark.sql.shuffle.partitions=16"],
        "stages": {"stage": "stage:0.0", "name": first["stages"]["name"], "others": 0, "tasks": 4, "slots": 16},
    }
    (change,) = first["settings"]
    assert (change["name"], change["before"], change["after"]) == ("spark.sql.shuffle.partitions", 4, 16)
    assert "4 → 16" in first["text"]


def test_sizes_are_as_sparks_settings_take_them() -> None:
    sizes = (4 * 2**30, 300 * MIB, 1.5 * MIB, 65_536, 100)
    assert [size_text(each) for each in sizes] == ["4g", "300m", "2m", "64k", "1k"]


@pytest.mark.later
def test_a_stage_without_a_slot_that_the_log_knows_is_asked_for_no_number_of_tasks(tmp_path: Path) -> None:
    """With any findings."""
    path = write(tmp_path / "log", [Stage([Task(20, "1", cpu_ms=2) for _ in range(400)])], executors={"1": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    with duckdb.connect(str(run.path), read_only=True) as connection:
        details = stage_stats(connection, load(connection), run.debug().critical_path)
    facts = details[0].facts
    short = StartingStage(
        facts.id, facts.name, 900.0, "measured", FewerTasks(), tasks=400, share=0.9, scheduler_delay_ms=0.0
    )
    none = [replace(each, facts=replace(each.facts, slots=0)) for each in details]
    assert list(cuts(Stages(details, [short]), 0))
    assert not list(cuts(Stages(none, [short]), 0))
