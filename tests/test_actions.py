"""What to do about a run, through the real reader: which settings and lines are told, with what figure, when not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import crystalperf as cp
from crystalperf.query.answers import actions as ranking
from crystalperf.query.answers.values import Action, Debug, Failed, Outcome, Prediction, Tally, Verdict
from crystalperf.query.answers.words import gain_text, nothing_to_do
from crystalperf.query.explain.chances import Chance
from crystalperf.query.explain.facts import group_details
from crystalperf.query.frameworks.spark import chances
from crystalperf.query.frameworks.spark.chances import size
from crystalperf.query.frameworks.spark.findings import UnaskedSlots
from crystalperf.query.frameworks.spark.refusals import LocalRun
from crystalperf.query.model.load import load
from crystalperf.query.results.findings import Committing, Coordinator
from crystalperf.query.run import Run
from tests.hand_made import Seconds
from tests.spark_logs import MIB, Query, Stage, Task, waves, write

SCAN = Query([("HashAggregate", "HashAggregate(keys=[])"), ("Scan parquet", "FileScan parquet [a#1]")])
SHUFFLED = Query([("HashAggregate", "HashAggregate(keys=[])"), ("Exchange", "Exchange hashpartitioning(a#1, 4)")])
CLUSTER = {"spark.master": "yarn", "spark.executor.memory": "4g", "spark.executor.instances": "2"}


def told(folder: Path, stages: Sequence[Stage], properties: dict[str, str] | None = None, **more: Any) -> Verdict:
    given = {"executors": {"1": 8, "2": 8}, "properties": {**CLUSTER, **(properties or {})}, **more}
    path = write(folder / "log", stages, **given)
    return cp.profile([path], output=folder / "run.duckdb").verdict()


def shuffling(count: int, **of: Any) -> Stage:
    return Stage(list(waves(count, 16, 2, **of)), reads="ShuffledRowRDD")


def lines(verdict: Verdict) -> list[str]:
    return [line for each in verdict.actions for line in each.lines]


def test_the_number_of_partitions_is_what_cut_the_tasks_and_fits_the_slots(tmp_path: Path) -> None:
    stage = shuffling(4, ms=40_000, cpu_ms=39_000, shuffled_bytes=64 * MIB)
    verdict = told(tmp_path, [stage], {"spark.sql.shuffle.partitions": "4"}, query=SHUFFLED)
    first = verdict.actions[0]
    assert first.what.startswith("`spark.sql.shuffle.partitions` 4 → 16 (stage:0.0: 4 tasks for 16 slots)")
    assert first.lines == ("--conf spark.sql.shuffle.partitions=16",)
    assert first.gain_ms is not None
    assert first.gain_ms == pytest.approx(30_000, rel=0.1), "it is what predict says"
    assert "no rerun has checked it" in gain_text(first, Seconds())


def test_a_last_wave_that_is_half_empty_asks_for_whole_waves(tmp_path: Path) -> None:
    stage = shuffling(20, ms=20_000, cpu_ms=19_000, shuffled_bytes=64 * MIB)
    verdict = told(tmp_path, [stage], {"spark.sql.shuffle.partitions": "20"}, query=SHUFFLED)
    assert "--conf spark.sql.shuffle.partitions=32" in lines(verdict)


def test_partitions_are_not_blamed_where_they_are_not_what_cut_the_tasks(tmp_path: Path) -> None:
    stage = shuffling(4, ms=40_000, cpu_ms=39_000, shuffled_bytes=64 * MIB)
    verdict = told(tmp_path, [stage], query=SHUFFLED)  # 200 partitions, which adaptive execution merged
    assert not any("spark.sql.shuffle.partitions" in each for each in lines(verdict))
    assert any("coalescePartitions.minPartitionSize" in each for each in lines(verdict))
    off = {"spark.sql.adaptive.coalescePartitions.parallelismFirst": "false"}
    (tmp_path / "off").mkdir()
    assert any("parallelismFirst=true" in each for each in lines(told(tmp_path / "off", [stage], off, query=SHUFFLED)))


def test_a_partition_that_adaptive_execution_does_not_make_is_the_programs(tmp_path: Path) -> None:
    stage = shuffling(1, ms=40_000, cpu_ms=39_000, shuffled_bytes=2048 * MIB)
    verdict = told(tmp_path, [stage], query=SHUFFLED)
    assert verdict.actions[0].what.startswith("Ask for 16 partitions where the program asks for 1 (repartition or ")
    assert lines(verdict)[0] == "df = df.repartition(16)"
    assert not any("coalescePartitions" in each for each in lines(verdict))
    (tmp_path / "off").mkdir()
    small = shuffling(1, ms=40_000, cpu_ms=39_000, shuffled_bytes=8 * MIB)
    off = {"spark.sql.adaptive.enabled": "false"}
    assert lines(told(tmp_path / "off", [small], off, query=SHUFFLED))[0] == "df = df.repartition(16)"


def test_the_default_parallelism_is_named_only_where_it_cut_the_tasks(tmp_path: Path) -> None:
    """A sort onto 2 partitions, of its own, was told to raise a setting of 16 to 16."""
    stage = shuffling(2, ms=40_000, cpu_ms=39_000, shuffled_bytes=2048 * MIB)
    for value, line in (("16", "rdd.reduceByKey(merge, 16)  # the last"), ("2", "--conf spark.default.parallelism=16")):
        (tmp_path / value).mkdir()
        verdict = told(tmp_path / value, [stage], {"spark.default.parallelism": value})
        assert lines(verdict)[0].startswith(line)
        assert "16 → 16" not in verdict.actions[0].what


def test_a_query_that_goes_on_after_it_wrote_puts_its_output_in_place(tmp_path: Path) -> None:
    stage = Stage([Task(4_000, "1", cpu_ms=3_900, read_bytes=MIB, written_bytes=64 * MIB)] * 2)
    verdict = told(tmp_path, [stage], query=replace(SCAN, after_ms=20_000))
    first = verdict.actions[0]
    (found,) = (each for each in verdict.debug.findings if isinstance(each, Committing))
    assert (first.why, found.scope, found.longest_ms, found.others) == ("committing", "sql:0", 20_000, 0)
    assert first.gain_ms_range is not None
    assert first.gain_ms_range[1] == pytest.approx(20_000)
    rest = [each.cost_ms for each in verdict.debug.findings if isinstance(each, Coordinator)]
    assert sum(rest) < 1000, "it is not told a second time"

    (tmp_path / "reads").mkdir()
    reads = Stage([Task(4_000, "1", cpu_ms=3_900, read_bytes=MIB)] * 2)
    verdict = told(tmp_path / "reads", [reads], query=replace(SCAN, after_ms=20_000))
    assert "committing" not in {each.kind for each in verdict.debug.findings}


def test_a_scan_is_cut_smaller_where_spark_cut_it_and_spread_where_its_files_do_not_divide(tmp_path: Path) -> None:
    small = [Task(20_000, "1", cpu_ms=19_000, read_bytes=4 * MIB) for _ in range(4)]
    verdict = told(tmp_path, [Stage(small)], query=SCAN)
    assert "--conf spark.sql.files.openCostInBytes=1m" in lines(verdict)
    gzip = [Task(20_000, "1", cpu_ms=19_000, read_bytes=900 * MIB) for _ in range(4)]
    (tmp_path / "gzip").mkdir()
    verdict = told(tmp_path / "gzip", [Stage(gzip)], query=SCAN)
    assert "df = df.repartition(16)" in lines(verdict)
    assert "its files do not divide" in verdict.actions[0].what
    assert verdict.actions[0].gain_ms is None
    assert gain_text(verdict.actions[0], Seconds()) == "saves at most 15 s (modelled)"


def test_files_of_an_rdd_are_cut_where_they_are_read(tmp_path: Path) -> None:
    """Rows were to be spread by a shuffle of all that was read."""
    blocks = [Task(20_000, "1", cpu_ms=19_000, read_bytes=128 * MIB) for _ in range(4)]
    verdict = told(tmp_path, [Stage(blocks)])
    assert verdict.actions[0].what == "Ask for 16 partitions where the files are read (stage:0.0: 4 tasks for 16 slots)"
    assert lines(verdict)[0].startswith("rdd = sc.textFile(path, 16)  # of gzip: rdd.repartition(16)")


def test_files_that_are_read_only_for_their_schema_ask_for_the_schema(tmp_path: Path) -> None:
    """It was told to cut the rows of an RDD that no line of the program has."""
    reading = [Task(35_000, "1", cpu_ms=33_000, read_bytes=128 * MIB) for _ in range(4)]
    verdict = told(tmp_path, [Stage(reading, name="csv at job.py:1")])
    first = verdict.actions[0]
    assert first.what == (
        "Give the schema where files are read: 1 job read them only to infer it (stage:0.0 scan: csv at job.py:1)"
    )
    assert first.gain_ms_range is not None
    assert first.gain_ms_range[1] == pytest.approx(35_000, rel=0.05)
    assert not any("repartition" in each or "textFile" in each for each in lines(verdict))
    (tmp_path / "query").mkdir()
    of_query = told(tmp_path / "query", [Stage(reading, name="csv at job.py:1")], query=SCAN)
    assert not any("schema" in each.what for each in of_query.actions), "a query reads for its rows"


def test_a_task_of_less_than_a_second_is_not_worth_parts(tmp_path: Path) -> None:
    """A hundred jobs of one short task each were to be cut in 16."""
    short = [Stage([Task(700, "1", cpu_ms=680, read_bytes=128 * MIB)]) for _ in range(100)]
    assert not any("partition" in each.what for each in told(tmp_path, short).actions)
    (tmp_path / "long").mkdir()
    long = [Stage([Task(7_000, "1", cpu_ms=6_800, read_bytes=128 * MIB)]) for _ in range(10)]
    assert any("partition" in each.what for each in told(tmp_path / "long", long).actions)


def test_one_key_that_holds_all_rows_is_to_be_split_though_no_task_has_more_than_usual(tmp_path: Path) -> None:
    """Of 64 tasks one has something to read: no median tells that it is long."""
    none = [Task(200, "1", cpu_ms=100) for _ in range(63)]
    verdict = told(tmp_path, [Stage([Task(115_000, "1", cpu_ms=108_000, shuffled_bytes=2700 * MIB), *none],
                                    reads="ShuffledRowRDD")], query=SHUFFLED)  # fmt: skip
    (skew,) = [each for each in verdict.actions if each.why == "straggler"]
    assert skew.what.startswith("Split the few keys that hold most rows (salting): stage:0.0")
    assert skew.what.endswith("1 of 64 tasks had something to read, for 16 slots")
    (tmp_path / "small").mkdir()
    little = Stage([Task(115_000, "1", cpu_ms=108_000, shuffled_bytes=MIB // 20), *none], reads="ShuffledRowRDD")
    small = told(tmp_path / "small", [little], query=SHUFFLED)
    assert "straggler" not in {each.why for each in small.actions}, "there are no rows to split"


def test_what_predict_says_brings_nothing_is_no_thing_to_do(tmp_path: Path) -> None:
    """What is known at most stood beside a what-if that says no effect."""
    verdict = told(tmp_path, [shuffling(16, ms=40_000, cpu_ms=39_000, shuffled_bytes=MIB)], query=SHUFFLED)
    chance = Chance("setting", "more memory", "spilling", "modelled", "memory=2x", 37_000.0)
    none = ranking.actions([chance], verdict.debug, verdict.header, lambda _asked: prediction(0.0))
    assert [each.what for each in none] == []
    unknown = replace(prediction(0.0), predicted_ms=None, interval_ms=None)
    (bound,) = ranking.actions([chance], verdict.debug, verdict.header, lambda _asked: unknown)
    assert bound.gain_ms_range == (0.0, 37_000.0)


def test_more_executors_are_told_where_all_slots_work_and_not_where_they_idle_or_the_driver_works(
    tmp_path: Path,
) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    assert "--conf spark.executor.instances=4" in lines(told(tmp_path, [busy], query=SCAN))
    alone = replace(busy, after_ms=200_000)
    (tmp_path / "alone").mkdir()
    verdict = told(tmp_path / "alone", [alone], query=SCAN)
    assert not any("executor.instances" in each for each in lines(verdict))
    one = Stage([Task(90_000, "1", cpu_ms=89_000, read_bytes=900 * MIB)])
    (tmp_path / "one").mkdir()
    assert not any("executor.instances" in each for each in lines(told(tmp_path / "one", [one], query=SCAN)))


def test_twice_the_executors_is_twice_those_that_were_asked_for_and_no_more_than_came(tmp_path: Path) -> None:
    """Of two that are asked for a third may be there for a moment, in the place of one that goes."""
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    for asked, line in (("1", "--conf spark.executor.instances=2"), ("10", None)):
        (tmp_path / asked).mkdir()
        verdict = told(tmp_path / asked, [busy], {"spark.executor.instances": asked}, query=SCAN)
        assert [each for each in lines(verdict) if "instances" in each] == ([line] if line else [])
        twice = next(each for each in verdict.actions if "xecutor" in each.what)
        assert twice.what == (
            "`spark.executor.instances` 1 → 2"
            if line
            else "Twice the executors, 2 → 4, on a cluster with room for them"
        )


def test_more_executors_than_dynamic_allocation_may_ask_for_raise_its_most(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    dynamic = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "2"}
    found = lines(told(tmp_path, [busy], dynamic, query=SCAN))
    assert "--conf spark.dynamicAllocation.maxExecutors=4" in found
    assert not any("minExecutors" in each for each in found)
    (tmp_path / "more").mkdir()
    found = lines(told(tmp_path / "more", [busy], {**dynamic, "spark.dynamicAllocation.maxExecutors": "4"}, query=SCAN))
    assert "--conf spark.dynamicAllocation.minExecutors=4" in found


def test_what_tasks_read_says_what_a_stage_reads_where_its_spark_names_no_metrics(tmp_path: Path) -> None:
    """As Spark 1 has it: an RDD that is sorted reads a shuffle, and no rows that the program hands over."""
    sorted_rows = Stage(list(waves(2, 16, 2, ms=20_000, cpu_ms=19_000, shuffled_bytes=900 * MIB)), reads="map")
    (advice,) = [each for each in lines(told(tmp_path, [sorted_rows])) if each.startswith("rdd")]
    assert "reduceByKey" in advice


def test_slots_that_dynamic_allocation_did_not_ask_for_are_told(tmp_path: Path) -> None:
    """Forty tasks had forty slots, for Spark asks for no more, where the stage before had two hundred."""
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


def test_gpus_are_no_reason_for_more_executors_or_cpus(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    verdict = told(tmp_path, [busy], query=Query([("GpuScan parquet", "GpuScan parquet [a#1]")]))
    assert not any("executor.instances" in each for each in lines(verdict))
    assert not any(each.why == "cpu_speed" for each in verdict.actions)


def test_nothing_is_told_of_what_one_cannot_buy(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    (cpu,) = [each for each in told(tmp_path, [busy], query=SCAN).actions if each.why == "cpu_speed"]
    assert "faster clock or of a newer generation" in cpu.what
    assert cpu.kind == "machine"
    assert cpu.gain_ms is not None
    assert 0.1 * 38_000 < cpu.gain_ms < 0.22 * 38_000, "a quarter faster, not twice as fast"


def test_collections_ask_for_memory_with_its_present_value(tmp_path: Path) -> None:
    full = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=4000, gc_ms=5000, read_bytes=128 * MIB)))
    verdict = told(tmp_path, [full], query=SCAN)
    (memory,) = [each for each in verdict.actions if each.why == "garbage"]
    assert memory.what == "`spark.executor.memory` 4g → 8g"
    assert memory.gain_ms_range is not None
    assert memory.gain_ms_range[1] <= 0.5 * verdict.debug.runtime_ms


def test_what_python_workers_spilled_asks_for_memory_of_theirs(tmp_path: Path) -> None:
    spilling = list(waves(64, 16, 2, ms=10_000, cpu_ms=1000, read_bytes=128 * MIB, spilled_bytes=100 * MIB))
    verdict = told(tmp_path, [Stage(spilling, reads="PythonRDD")])
    (memory,) = [each for each in verdict.actions if each.why == "spilling"]
    assert memory.what == "`spark.python.worker.memory` 512m (the default) → 1g"
    assert memory.lines == ("--conf spark.python.worker.memory=1g",)
    (tmp_path / "jvm").mkdir()
    (memory,) = [each for each in told(tmp_path / "jvm", [Stage(spilling)]).actions if each.why == "spilling"]
    assert memory.what == "`spark.executor.memory` 4g → 8g"
    assert memory.gain_ms is None, "how long it spilled is not known"


def test_a_local_run_has_slots_and_no_executors(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 8, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    tasks = [replace(each, executor="driver") for each in busy.tasks]
    verdict = told(tmp_path, [Stage(tasks)], {"spark.master": "local[8,4]"}, executors={"driver": 8}, query=SCAN)
    assert "--master 'local[16,4]'" in lines(verdict)
    assert not any("executor" in each for each in lines(verdict))
    assert not any(each.setting.startswith("executors=") for each in verdict.what_ifs)
    asked = cp.open_run(verdict.run).predict(["executors=2x"])
    assert asked.refused == (LocalRun(),)


def test_samples_come_last_and_only_where_much_is_unknown(tmp_path: Path) -> None:
    waiting = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=1000, read_bytes=128 * MIB)))
    verdict = told(tmp_path, [waiting], query=SCAN)
    assert [each.kind for each in verdict.actions].index("record") == len(verdict.actions) - 1
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9990, read_bytes=128 * MIB)))
    (tmp_path / "busy").mkdir()
    assert all(each.kind != "record" for each in told(tmp_path / "busy", [busy], query=SCAN).actions)


def test_what_brings_less_than_a_second_is_nothing_to_do(tmp_path: Path) -> None:
    short = Stage([Task(300, "1", cpu_ms=290, shuffled_bytes=64 * MIB)], reads="ShuffledRowRDD")
    verdict = told(tmp_path, [short], {"spark.sql.shuffle.partitions": "1"}, query=SHUFFLED, begin_ms=10)
    assert [each.kind for each in verdict.actions if each.kind != "record"] == []


def test_a_run_without_anything_to_do_says_so(tmp_path: Path) -> None:
    verdict = told(tmp_path, [shuffling(16, ms=40_000, cpu_ms=39_999, shuffled_bytes=MIB)], query=SHUFFLED)
    none = replace(verdict, actions=())
    assert nothing_to_do(none) == "Nothing that CrystalPerf can work out saves as much as 3 % of the time and 1 s."
    assert nothing_to_do(replace(verdict, actions=(Action("code", "x", None, None, "measured", "x"),))) == ""


# What was made of a run's end -----------------------------------------------------------------------------------------


def made(run: Run, outcome: Outcome) -> tuple[list[Chance], Debug]:
    debug = replace(run.debug(), outcome=outcome)
    return run.chances(debug), debug


def ranked(run: Run, outcome: Outcome) -> tuple[Action, ...]:
    found, debug = made(run, outcome)
    return ranking.actions(found, debug, run.header(), lambda _setting: None)


def test_what_failed_comes_first_and_more_executors_do_not(tmp_path: Path) -> None:
    busy = Stage(list(waves(64, 16, 2, ms=10_000, cpu_ms=9500, read_bytes=128 * MIB)))
    path = write(tmp_path / "log", [busy], executors={"1": 8, "2": 8}, properties=CLUSTER, query=SCAN)
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    failure = Failed("job", "job:3", "count", "RuntimeException: bad")
    failed = Outcome("failed", (Tally("job", 4, 1),), (failure,))
    found = ranked(run, failed)
    assert found[0].what == "Fix what failed first: job:3: RuntimeException: bad"
    assert all(each.why != "workers" for each in found)
    killed = ranked(run, replace(failed, memory="container"))
    assert any("`spark.executor.memoryOverhead` 410m (the default) → 820m" in each.what for each in killed[:2])
    outside = ranked(run, replace(failed, memory="killed"))
    assert any(each.what.endswith("killed from outside, most often for memory beside the heap") for each in outside[:2])
    gpu = ranked(run, replace(failed, memory="device"))
    assert gpu[1].lines == ("--conf spark.rapids.sql.concurrentGpuTasks=1",)
    assert all("memoryOverhead" not in each.what for each in gpu)
    heap = ranked(run, replace(failed, memory="heap"))
    assert any(each.what.startswith("`spark.executor.memory` 4g → 8g: a heap was too small") for each in heap[:2])
    assert all("Fix what failed" not in each.what for each in ranked(run, Outcome("succeeded")))


def test_a_program_that_stopped_spark_is_told_to_look_at_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(16, ms=40_000, cpu_ms=39_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    error = "Job cancelled because SparkContext was shut down"
    failed = Failed("job", "job:3", "sort", error)
    first, *_ = ranked(run, Outcome("failed", failures=(failed,)))
    assert first.what == ("Look in the driver's own log for why it ended: it stopped Spark while job:3 was under way")
    other = replace(failed, error="BadRow: row 7 has no id")
    assert ranked(run, Outcome("failed", failures=(other,)))[0].what.startswith("Fix what failed first: job:3: BadRow")


# Ranks ----------------------------------------------------------------------------------------------------------------


def prediction(gain_ms: float) -> Prediction:
    return Prediction("all", "makespan", "x=2x", 100_000.0, 100_000.0, 100_000.0 - gain_ms, (60_000.0, 99_000.0))


def test_a_bound_counts_half_and_so_does_what_is_bought(tmp_path: Path) -> None:
    path = write(tmp_path / "log", [shuffling(16, ms=98_900, cpu_ms=98_000)], executors={"1": 8, "2": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    debug = run.debug()
    chance = Chance("setting", "a", "r", "modelled", asks="a=2x")
    given = [
        replace(chance, what="buy", kind="machine", asks="b=2x"),
        replace(chance, what="bound", asks=None, at_most_ms=38_000.0),
        chance,
        replace(chance, what="small", asks=None, at_most_ms=2000.0),
        replace(chance, what="no help", asks="none=2x"),
    ]
    gains = {"a=2x": 20_000.0, "b=2x": 36_000.0, "none=2x": 100.0}
    found = ranking.actions(given, debug, run.header(), lambda asked: prediction(gains[asked]))
    assert [each.what for each in found] == ["a", "bound", "buy"]
    assert found[0].gain_ms_range == (1000.0, 40_000.0)
    assert found[1].gain_ms_range == (0.0, 38_000.0)
    twice = ranking.actions([chance, chance], debug, run.header(), lambda _asked: prediction(20_000.0))
    assert len([each for each in twice if each.what == "a"]) == 1


def test_sizes_are_as_sparks_settings_take_them() -> None:
    assert [size(each) for each in (4 * 2**30, 300 * MIB, 1.5 * MIB, 65_536, 100)] == ["4g", "300m", "2m", "64k", "1k"]


def test_a_stage_without_a_slot_that_the_log_knows_is_asked_for_no_number_of_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its findings are."""
    monkeypatch.setattr(chances, "starting_units", lambda _terms, _detail: ["its tasks are short"])
    path = write(tmp_path / "log", [Stage([Task(20, "1", cpu_ms=2) for _ in range(400)])], executors={"1": 8})
    run = cp.profile([path], output=tmp_path / "run.duckdb")
    with duckdb.connect(str(run.path), read_only=True) as connection:
        execution = load(connection)
        details = group_details(connection, execution, run.debug().critical_path)
        none = [replace(each, facts=replace(each.facts, slots=0)) for each in details]
        assert list(chances._cuts(execution, details, 0))
        assert not list(chances._cuts(execution, none, 0))
