"""Advisor through the real reader: small logs that have the evidence, and logs in which something contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import crystalperf as cp
from crystalperf.query.frameworks.spark.assumptions import CpuTimeMissing
from crystalperf.query.frameworks.spark.findings import SplittableFiles
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.assumptions import DeviceNotModelled
from crystalperf.query.results.findings import (
    Finding,
    FirstOnWorker,
    GarbageCollection,
    IdleSlots,
    MoreOfResource,
    Straggler,
    StragglerCause,
    Waited,
)
from tests.spark_logs import MIB, Query, Stage, Task, waves, write


def answered(folder: Path, stages: Sequence[Stage], **more: Any) -> Debug:
    folder.mkdir(exist_ok=True)
    path = write(folder / "log", stages, **{"executors": {"1": 4, "2": 4}, **more})
    return cp.profile([path], output=folder / "run.duckdb").debug()


F = TypeVar("F", bound=Finding)


def of(debug: Debug, kind: type[F]) -> list[F]:
    return [each for each in debug.findings if isinstance(each, kind)]


def cause(debug: Debug) -> StragglerCause:
    (found,) = of(debug, Straggler)
    return found.stages[0].cause


def late(**longest: Any) -> list[Task]:
    """Sixteen tasks of a second on eight slots, the last of which, a first of its executor, takes a minute."""
    even = list(waves(16, 8, 2, ms=1000, cpu_ms=900))
    return [*even[:7], replace(even[7], **{"ms": 60_000, **longest}), *even[8:15]]


def test_waiting_first_task_is_not_reported_as_compiling_code(tmp_path: Path) -> None:
    assert cause(answered(tmp_path, [Stage(late(cpu_ms=67))])) == Waited(67, 60_000)


def test_slow_first_task_among_quick_first_tasks_is_explained_by_its_cpu_time(tmp_path: Path) -> None:
    assert cause(answered(tmp_path, [Stage(late(cpu_ms=58_000))])) == MoreOfResource("cpu", 57_100)


def test_long_computing_first_tasks_are_warmup(tmp_path: Path) -> None:
    firsts = [Task(8000, "1", cpu_ms=7500), Task(7000, "2", cpu_ms=6800)]
    rest = [Task(500, str(number % 2 + 1), 8000 + 500 * (number // 2), cpu_ms=450) for number in range(12)]
    debug = answered(tmp_path, [Stage([*firsts, *rest])], executors={"1": 1, "2": 1})
    (found,) = of(debug, Straggler)
    assert cause(debug) == FirstOnWorker("1", confirmed=True)
    assert found.basis == "modelled"


def test_without_cpu_time_it_is_a_guess_and_collections_are_not_reported_as_cpu_time(tmp_path: Path) -> None:
    tasks = [Task(60_000, "1", cpu_ms=None), *(Task(900, "1", 60_000 + 900 * each, None, 400) for each in range(8))]
    debug = answered(tmp_path, [Stage(tasks)], executors={"1": 1})
    (found,) = of(debug, Straggler)
    assert found.basis == "guessed"
    assert CpuTimeMissing(3200.0) in debug.assumptions
    (garbage,) = of(answered(tmp_path / "again", [Stage(tasks[1:])], executors={"1": 1}), GarbageCollection)
    assert garbage.basis == "measured"


def test_tasks_without_rows_are_not_partitions(tmp_path: Path) -> None:
    tasks = [Task(10_000 if each < 6 else 200, "1", cpu_ms=100, read_bytes=60 * MIB * (each < 6)) for each in range(30)]
    query = Query([("HashAggregate", "HashAggregate(keys=[])"), ("Scan parquet", "FileScan parquet [a#1]")])
    debug = answered(tmp_path, [Stage(tasks)], executors={"1": 30}, query=query)
    (found,) = of(debug, IdleSlots)
    (stage,) = found.stages
    assert (stage.cause, stage.with_data, stage.tasks, stage.slots) == ("empty-tasks", 6, 30, 30)
    assert found.advice != SplittableFiles()
    assert of(debug, Straggler) == []


def test_ten_stages_with_few_tasks_are_one_finding(tmp_path: Path) -> None:
    stages = [Stage([Task(1000 * each, "1", cpu_ms=900, read_bytes=MIB)]) for each in range(1, 11)]
    debug = answered(tmp_path, stages, executors={"1": 64})
    (found,) = of(debug, IdleSlots)
    assert (len(found.stages), found.stages[0].id) == (10, "stage:9.0")
    assert {each.cause for each in found.stages} == {"few-tasks"}
    assert 53_000 < found.cost_ms <= debug.runtime_ms
    assert debug.findings[0] == found


def test_gpu_slots_are_recommended_with_a_caution(tmp_path: Path) -> None:
    stages = [Stage([Task(20_000, "1", cpu_ms=900, read_bytes=200 * MIB)])]
    plan = Query([("GpuHashAggregate", "GpuHashAggregate"), ("GpuScan parquet", "GpuScan parquet")])
    debug = answered(tmp_path, stages, query=plan, properties={"spark.plugins": "com.nvidia.spark.SQLPlugin"})
    assert debug.unmodelled == "GPU"
    (found,) = of(debug, IdleSlots)
    assert found.unmodelled == "GPU"
    assert DeviceNotModelled("GPU") in debug.assumptions


def test_a_plan_without_gpus_uses_none_though_the_plugin_is_there(tmp_path: Path) -> None:
    stages = [Stage([Task(20_000, "1", cpu_ms=900, read_bytes=200 * MIB)])]
    plan = Query([("HashAggregate", "HashAggregate"), ("Scan parquet", "FileScan parquet")])
    debug = answered(tmp_path, stages, query=plan, properties={"spark.plugins": "com.nvidia.spark.SQLPlugin"})
    assert debug.unmodelled is None
    assert of(debug, IdleSlots)[0].unmodelled is None


def test_no_finding_costs_more_than_the_run(tmp_path: Path) -> None:
    debug = answered(tmp_path, [Stage(late(cpu_ms=67)), Stage(late(cpu_ms=58_000))])
    assert all(0 < each.cost_ms <= debug.runtime_ms for each in debug.findings)
