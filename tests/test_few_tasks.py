"""A hot key in a stage of few tasks, even tasks (`skew=none`), and one task on one slot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.query.results.findings import GarbageCollection, MoreData, Straggler
from tests import spark_events
from tests.spark_logs import MIB, Stage, Task, write


def hot_key(path: Path, seconds: Sequence[float], mib: Sequence[float], slots: int = 4) -> cp.Run:
    """A run of one stage, whose tasks take and read so much of a shuffle."""
    tasks = [
        Task(int(1000 * each), cpu_ms=int(900 * each), shuffled_bytes=int(read * MIB))
        for each, read in zip(seconds, mib, strict=True)
    ]
    log = write(path / "log", [Stage(tasks, reads="ShuffledRowRDD")], executors={"1": slots})
    return cp.profile([log], output=path / "run.duckdb")


@pytest.mark.parametrize(
    ("seconds", "mib"),
    [
        ([20, 2], [200, 20]),
        ([20, 0.2], [200, 0]),
        ([20, 2, 1.5], [200, 20, 15]),
        pytest.param([20, 0.2, 0.2, 0.2], [200, 0, 0, 0], marks=pytest.mark.later),
        pytest.param([30, 20, 10, 9], [300, 200, 100, 90], marks=pytest.mark.later),
    ],
)
def test_a_hot_key_in_few_tasks_is_a_straggler_that_costs_what_even_tasks_save(
    tmp_path: Path, seconds: list[float], mib: list[float]
) -> None:
    run = hot_key(tmp_path, seconds, mib)
    (found,) = (each for each in run.debug().findings if isinstance(each, Straggler))
    (stage,) = found.stages
    assert stage.few
    assert isinstance(stage.cause, MoreData)
    assert stage.usual_ms == pytest.approx(1000 * sum(seconds[1:]) / (len(seconds) - 1), rel=0.01)
    even = run.predict(["skew=none"])
    assert even.runtime_ms - even.predicted_ms == pytest.approx(found.cost_ms, rel=0.05)


def test_two_tasks_of_about_the_same_length_are_not_skewed(tmp_path: Path) -> None:
    assert not any(isinstance(each, Straggler) for each in hot_key(tmp_path, [20, 12], [200, 120]).debug().findings)


def test_even_tasks_never_make_a_run_longer(tmp_path: Path) -> None:
    tasks = [Task(10_000, cpu_ms=9000), *(Task(5000, launch_ms=at, cpu_ms=4500) for at in (0, 5000))]
    log = write(tmp_path / "log", [Stage(tasks)], executors={"1": 2})
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    even = run.predict(["skew=none"])
    assert even.predicted_ms == pytest.approx(even.runtime_ms), "two waves of 6.7 s would take 13.3 s"
    both, faster = run.predict(["skew=none", "cpu_speed=2x"]), run.predict(["cpu_speed=2x"])
    assert both.predicted_ms <= faster.predicted_ms * 1.001


def test_one_task_on_one_slot_gains_nothing_from_more_slots(tmp_path: Path) -> None:
    task = Task(20_000, "driver", cpu_ms=19_000)
    settings = {"spark.master": "local[1]"}
    log = write(tmp_path / "log", [Stage([task], reads="x")], executors={"driver": 1}, properties=settings)
    found = cp.profile([log], output=tmp_path / "run.duckdb").predict(["cores=2x"])
    assert found.predicted_ms == pytest.approx(found.runtime_ms)


def test_a_losing_copy_is_not_a_straggler(tmp_path: Path) -> None:
    *events, end = spark_events.run(1, 1)
    first = next(each for each in events if each["Event"] == "SparkListenerTaskEnd")
    info = {**first["Task Info"], "Task ID": 99, "Attempt": 1, "Speculative": True, "Killed": True}
    info["Finish Time"] = spark_events.START + 30_000
    killed = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
    lost = {**first, "Task Info": info, "Task End Reason": killed}
    end = {**end, "Timestamp": spark_events.START + 31_000}
    log = spark_events.write(tmp_path / "log", [*events, lost, end])
    debug = cp.profile([log], output=tmp_path / "run.duckdb").debug()
    assert not any(isinstance(each, Straggler) for each in debug.findings)
    assert max(each.longest_ms for each in debug.stages) == spark_events.TASK_MS


def test_garbage_collection_takes_at_most_the_time_of_its_tasks(tmp_path: Path) -> None:
    tasks = [Task(10_000, cpu_ms=1000, gc_ms=20_000), Task(10_000, cpu_ms=1000, gc_ms=20_000)]
    run = cp.profile([write(tmp_path / "log", [Stage(tasks)], executors={"1": 2})], output=tmp_path / "run.duckdb")
    (found,) = (each for each in run.debug().findings if isinstance(each, GarbageCollection))
    assert found.cost_ms == pytest.approx(10_000)
    assert all(each.gc_ms <= each.task_ms for each in run.debug().stages)
