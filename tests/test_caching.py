"""Rows that executors keep in memory: read again they cross no disk and no network, whatever their files do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

import crystalperf as cp
from crystalperf.query.attribution.locality import CACHE_ROOT, kept_stages, reaches
from crystalperf.query.attribution.storage import assumptions
from crystalperf.query.execution.dag import AT_HOME
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.execution.scenario import Value, scenario_of
from crystalperf.query.frameworks.spark.recommendations import SkipLocalityWait
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.assumptions import CacheMisses, InputCached
from crystalperf.query.results.findings import CacheMissTime, IdleSlots
from crystalperf.query.results.recommendations import MoreMemory, SettingChange
from crystalperf.query.results.refusals import CacheTooSmall
from crystalperf.query.run import Run
from crystalperf.query.simulate.caching import cache_misses, with_memory_capacity
from crystalperf.query.text.notebook import sentence_of
from tests.hand_made import figures
from tests.spark_logs import MIB, Stage, Task, write

KMEANS = Path(__file__).parent.parent / "lab" / "recordings" / "sweeps" / "fresh" / "base-3-00-jfr20"
FILES = "hdfs://nn/data/points.csv"
KEPT_RDD = 100


def stage(bytes_: int, *, tasks: int = 4, keeps: bool = True) -> Stage:
    """A stage of even tasks that read so many bytes each, of the RDD of four partitions that is kept."""
    place = "PROCESS_LOCAL" if bytes_ > 60 * MIB else "ANY"
    every = [
        Task(2000, cpu_ms=400, read_bytes=bytes_, executor=str(number % 2 + 1), locality=place)
        for number in range(tasks)
    ]
    return Stage(every, reads=FILES, keeps=(KEPT_RDD, 4) if keeps else None)


def half_kept(*, says: bool = False, tasks: int = 4, cache_miss_ms: int = 6000, kept_ms: int = 1000) -> Stage:
    """A stage of tasks of which every other found its rows in memory, and the others read their files again.

    `says` is whether the log says so itself, as Spark before 2.0 does.
    """
    there = Task(kept_ms, cpu_ms=300, read_bytes=70 * MIB, locality="PROCESS_LOCAL", method="Memory" if says else None)
    gone = Task(
        cache_miss_ms, cpu_ms=300, read_bytes=10 * MIB, locality="NODE_LOCAL", method="Hadoop" if says else None
    )
    every = [replace(gone if number % 2 else there, executor=str(number // 2 % 2 + 1)) for number in range(tasks)]
    return Stage(every, reads=FILES, keeps=(KEPT_RDD, 4))


def profiled(folder: Path, *stages: Stage) -> Run:
    return cp.profile([write(folder / "log", stages, executors={"1": 2, "2": 2})], output=folder / "run.duckdb")


def kept(run: Run) -> set[str]:
    with duckdb.connect(str(run.path), read_only=True) as connection:
        return {stage_id for stage_id, in_part in kept_stages(reaches(connection)).items() if not in_part}


def execution(run: Run) -> Execution:
    with duckdb.connect(str(run.path), read_only=True) as connection:
        return load(connection, "whole")


def test_rows_that_were_all_computed_before_are_read_from_memory(tmp_path: Path) -> None:
    run = profiled(tmp_path, stage(10 * MIB), stage(70 * MIB), stage(70 * MIB))
    assert kept(run) == {"stage:1.0", "stage:2.0"}
    volumes = execution(run).volumes
    for each in execution(run).resources:
        if each.moves:
            assert not volumes.moved(each)[4:].any(), each.name
    assert volumes.far[:4].tolist() == [10 * MIB] * 4
    assert volumes.cached.tolist() == [0] * 4 + [70 * MIB] * 8


def test_a_part_of_the_rows_is_not_all_of_them(tmp_path: Path) -> None:
    """take(1) computes a partition, and whoever reads the rest reads the files."""
    assert kept(profiled(tmp_path, stage(10 * MIB, tasks=1), stage(12 * MIB))) == set()


def test_bytes_equal_to_those_of_the_files_are_read_from_files(tmp_path: Path) -> None:
    """Rows that did not fit in memory are computed again."""
    assert kept(profiled(tmp_path, stage(10 * MIB), stage(10 * MIB))) == set()


def test_uncached_rows_are_read_from_their_files(tmp_path: Path) -> None:
    assert kept(profiled(tmp_path, stage(10 * MIB), stage(70 * MIB, keeps=False))) == set()


def test_a_slower_network_slows_only_what_crosses_it(tmp_path: Path) -> None:
    """The rows that are kept would take 11 times as long as their stage did, if the link carried them."""
    run = execution(profiled(tmp_path, stage(MIB), stage(400 * MIB)))
    run_at = {**run.recorded, "network": 25e6}
    answer = predict(run, scenario_of({"network": Value("network", "0.5x", ratio=0.5)}, run_at))
    assert answer.interval_ms[1] < 1.5 * run.runtime_ms


@pytest.mark.parametrize("says", [False, True])
def test_only_rows_that_were_in_memory_count_as_cached(tmp_path: Path, says: bool) -> None:
    run = profiled(tmp_path, stage(10 * MIB), half_kept(says=says))
    assert kept(run) == set()
    with duckdb.connect(str(run.path), read_only=True) as connection:
        assert kept_stages(reaches(connection)) == {"stage:1.0": True}
    here = execution(run)
    found = np.sort(here.volumes.cached[4:])
    assert found.tolist() == [0, 0, 70 * MIB, 70 * MIB]
    assert cache_misses(here).sum() == 2


def test_a_stage_that_reads_files_for_rows_that_are_kept_scans(tmp_path: Path) -> None:
    """The stages of cached data are distinguished by which of them read files."""
    first = Stage([Task(2000, read_bytes=10 * MIB, method="Hadoop")] * 4, reads=FILES, keeps=(KEPT_RDD, 4))
    found = Task(500, read_bytes=70 * MIB, method="Memory", locality="PROCESS_LOCAL")
    there = Stage([found] * 4, reads=FILES, keeps=(KEPT_RDD, 4))
    run = profiled(tmp_path, first, there, half_kept(says=True))
    with duckdb.connect(str(run.path), read_only=True) as connection:
        kinds = dict(connection.execute("SELECT stage_id, io_kinds FROM stages").fetchall())
    assert kinds == {"stage:0.0": "scan, cached", "stage:1.0": "cached", "stage:2.0": "scan, cached"}


def test_reads_from_memory_stated_by_spark_take_precedence_over_sizes(tmp_path: Path) -> None:
    """In memory the rows happen to take as much as in their files."""
    there = Task(1000, read_bytes=10 * MIB, locality="PROCESS_LOCAL", method="Memory")
    again = Stage([there] * 4, reads=FILES, keeps=(KEPT_RDD, 4))
    assert kept(profiled(tmp_path, stage(10 * MIB), again)) == {"stage:1.0"}


def test_rows_derived_from_cached_rows_are_cached_too(tmp_path: Path) -> None:
    """The second RDD is computed of the first and kept; it is as large as what it was computed of."""
    second = replace(stage(70 * MIB), keeps=[(KEPT_RDD, 4), (KEPT_RDD + 1, 4)])
    assert kept(profiled(tmp_path, stage(10 * MIB), second, second)) == {"stage:1.0", "stage:2.0"}


def test_task_with_a_cache_miss_was_not_local_to_its_rows(tmp_path: Path) -> None:
    """Files of a service are near no executor, of which Spark says that they are in each of them."""
    gone = Task(3000, read_bytes=10 * MIB, locality="PROCESS_LOCAL")
    there = Task(1000, read_bytes=70 * MIB, locality="PROCESS_LOCAL")
    mixed = Stage([gone, there, gone, there], reads="s3a://bucket/points.csv", keeps=(KEPT_RDD, 4))
    here = execution(profiled(tmp_path, replace(stage(10 * MIB), reads="s3a://bucket/points.csv"), mixed))
    assert here.volumes.cached[4:].tolist() == [0, 70 * MIB, 0, 70 * MIB]
    assert here.volumes.far[4:].tolist() == [10 * MIB, 0, 10 * MIB, 0]


def test_rows_that_did_not_fit_in_memory_are_reported_first(tmp_path: Path) -> None:
    run = profiled(tmp_path, stage(10 * MIB), *[half_kept(says=True)] * 5)
    debug = run.debug()
    first = debug.findings[0]
    assert isinstance(first, CacheMissTime)
    assert first.cost_ms == pytest.approx(5 * 6000 * 10_000 / 14_000, rel=0.05)
    assert (first.stage.id, first.missed, first.tasks) == ("stage:1.0", 2, 4)
    assert (first.other_missed, first.other_stages) == (8, 4)
    verdict = run.verdict()
    assert figures(sentence_of(verdict))[-1] == pytest.approx(first.cost_ms / 1000, rel=0.05)
    (memory,) = (each for each in verdict.recommendations if isinstance(each, MoreMemory))
    assert (memory.because, [each.name for each in memory.settings]) == ("cache-misses", ["spark.executor.memory"])


def test_more_memory_caches_more_rows_in_proportion(tmp_path: Path) -> None:
    """Half of the rows fit.  Twice the memory has all of them, and the five stages take 1 s each and not 6."""
    run = execution(profiled(tmp_path, stage(10 * MIB), *[half_kept(says=True)] * 5))
    twice = {key: Value(key, "2x", ratio=2) for key in ("workers", "cores")}
    more_memory, more_slots = (
        predict(run, scenario_of({key: twice[key]}, run.recorded), replans=False) for key in twice
    )
    assert more_slots.predicted_ms - more_memory.predicted_ms == pytest.approx(5 * 5000, rel=0.1)
    assert CacheMisses(misses=10, reads=20, ratio=2.0, misses_left=0) in more_memory.assumptions


def test_twice_the_memory_caches_all_rows(tmp_path: Path) -> None:
    run = execution(profiled(tmp_path, stage(10 * MIB), *[half_kept(says=True)] * 5))
    run = replace(run, recorded={**run.recorded, "memory": 2.0 * 1024 * MIB})
    answer = predict(run, scenario_of({"memory": Value("memory", "2x", ratio=2)}, run.recorded), replans=False)
    assert answer.predicted_ms == pytest.approx(run.runtime_ms - 5 * 5000, rel=0.1)
    assert answer.interval_ms is not None


def test_half_as_much_memory_again_caches_half_of_the_misses(tmp_path: Path) -> None:
    run = execution(profiled(tmp_path, stage(10 * MIB), *[half_kept(says=True)] * 5))
    before, after = run.tasks.parts_ms.sum(axis=1), with_memory_capacity(run, 1.5).tasks.parts_ms.sum(axis=1)
    again = cache_misses(run)
    assert sorted(after[again].tolist()) == pytest.approx([1000] * 5 + [6000] * 5)
    assert after[~again].tolist() == pytest.approx(before[~again].tolist())
    answer = predict(run, scenario_of({"workers": Value("workers", "3", ratio=1.5)}, run.recorded))
    (misses,) = (each for each in answer.assumptions if isinstance(each, CacheMisses))
    assert (misses.ratio, misses.misses_left) == (1.5, 5)


def test_garbage_collection_of_full_memory_disappears_if_rows_fit(tmp_path: Path) -> None:
    """Tasks that find their rows after all do not have to collect what a full heap made them collect."""
    here = execution(profiled(tmp_path, stage(10 * MIB), half_kept(says=True, tasks=20, cache_miss_ms=6000)))
    full = replace(
        here.volumes,
        gc_ms=np.where(cache_misses(here), 5000.0, 0.0),
        total_cpu_ms=np.where(cache_misses(here), 5000.0, 300.0),
    )
    run, again = replace(here, volumes=full), cache_misses(here)
    roomy = with_memory_capacity(run, 2.0)
    assert not cache_misses(roomy).any()
    assert roomy.tasks.parts_ms[again].sum(axis=1).max() == pytest.approx(1000)
    assert roomy.volumes.gc_ms[again].max() < 1000
    assert roomy.volumes.total_cpu_ms[again].max() < 1000
    assert not roomy.volumes.moved(run.resources[run.names.index("disk")])[again].any()


def test_rows_that_would_not_fit_have_no_figure(tmp_path: Path) -> None:
    """Two executors of 2 GiB fit 2.1 GB of them, one fits half of that."""
    large = stage(400 * MIB)
    here = execution(profiled(tmp_path, stage(10 * MIB), large))
    here = replace(here, recorded={**here.recorded, "memory": 2.0 * 1024 * MIB, "workers": 2.0})
    for key in ("workers", "memory"):
        answer = predict(here, scenario_of({key: Value(key, "0.5x", ratio=0.5)}, here.recorded))
        assert answer.predicted_ms is None
        assert answer.bound_ms == (here.runtime_ms, None)
        (refusal,) = answer.refused
        assert isinstance(refusal, CacheTooSmall)
        assert refusal.capacity_bytes < refusal.cached_bytes == 1600 * MIB
    tight = replace(here, recorded={**here.recorded, "memory": 3.3 * 1024 * MIB})  # one holds 1 849 MiB, of even parts
    answer = predict(tight, scenario_of({"workers": Value("workers", "0.5x", ratio=0.5)}, tight.recorded))
    assert answer.predicted_ms is None
    (refusal,) = answer.refused
    assert isinstance(refusal, CacheTooSmall)
    assert refusal.cached_bytes < refusal.capacity_bytes
    roomy = replace(here, recorded={**here.recorded, "memory": 8.0 * 1024 * MIB})
    assert predict(roomy, scenario_of({"workers": Value("workers", "0.5x", ratio=0.5)}, roomy.recorded)).predicted_ms


def test_rows_in_another_executor_cross_the_network(tmp_path: Path) -> None:
    """Where nothing was free where its rows were, a task fetches them: of LargeBlocks 2.5 GB in 13 s."""
    there = Task(2000, read_bytes=70 * MIB, locality="PROCESS_LOCAL")
    fetched = replace(there, ms=6000, locality="RACK_LOCAL")
    run = profiled(tmp_path, stage(10 * MIB), Stage([there, there, there, fetched], reads=FILES, keeps=(KEPT_RDD, 4)))
    here = execution(run)
    moved = {each.name: here.volumes.moved(each)[4:].tolist() for each in here.resources}
    assert moved["net"] == [0, 0, 0, 70 * MIB]
    assert moved["disk"] == [0, 0, 0, 0]
    assert not cache_misses(here).any()
    with duckdb.connect(str(run.path), read_only=True) as connection:
        said = assumptions(connection, ["stage:1.0"], False, "Spark")
    assert InputCached(stages=1, tasks=3, total=4) in said


def test_cached_rows_are_reported(tmp_path: Path) -> None:
    run = profiled(tmp_path, stage(10 * MIB), stage(70 * MIB), stage(70 * MIB))
    with duckdb.connect(str(run.path), read_only=True) as connection:
        names = [name for (name,) in connection.execute("SELECT stage_id FROM stages").fetchall()]
        said = assumptions(connection, names, False, "Spark")
    assert InputCached(stages=2, tasks=8, total=8) in said


@pytest.mark.later
def test_the_rows_of_a_real_job_are_read_from_memory_once_they_are_there(tmp_path: Path) -> None:
    """k-means reads 23 MB of Parquet in the first stage of each of its four passes, and then 276 MB of cached data."""
    run = cp.profile([KMEANS], output=tmp_path / "run.duckdb").path
    with duckdb.connect(str(run), read_only=True) as connection:
        rows = connection.execute(
            """
            SELECT root = ?, sum(input_bytes)::BIGINT
            FROM tasks JOIN stage_inputs USING (stage_id) GROUP BY stage_id, root ORDER BY min(launch_ms)
            """,
            [CACHE_ROOT],
        ).fetchall()
    of_files = [bytes_ for is_kept, bytes_ in rows if not is_kept]
    assert of_files == [22_635_337] * 4
    assert min(bytes_ for is_kept, bytes_ in rows if is_kept) == 276_021_640
    assert len(rows) > 40


def skewed() -> list[Stage]:
    """Six partitions that executor 1 scanned and keeps, but for the last, which is executor 2's; then they are read
    from there, one after the other on the one slot of executor 1, while the other is idle."""
    there = [("1", each * 500) for each in range(5)] + [("2", 0)]
    scan = [
        Task(500, cpu_ms=400, read_bytes=10 * MIB, executor=executor, launch_ms=at, locality="NODE_LOCAL")
        for executor, at in there
    ]
    read = [
        Task(500, cpu_ms=400, read_bytes=70 * MIB, executor=executor, launch_ms=at, locality="PROCESS_LOCAL")
        for executor, at in there
    ]
    return [Stage(each, reads=FILES, keeps=(KEPT_RDD, 6)) for each in (scan, read, read)]


@pytest.mark.parametrize("version", ["2.4.8", "3.5.1"])
def test_tasks_wait_for_the_worker_that_caches_their_rows(tmp_path: Path, version: str) -> None:
    log = write(tmp_path / "log", skewed(), executors={"1": 1, "2": 1}, version=version)
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    assert run.baseline().replay_error_ratio == pytest.approx(0.0, abs=1e-3)
    tasks = execution(run).tasks
    assert (tasks.placement[tasks.stage > 0] == AT_HOME).all()
    by_id = dict(zip(tasks.task_id.tolist(), tasks.worker.tolist(), strict=True))
    followed = [(worker, by_id[other]) for worker, other in zip(tasks.worker, tasks.follows, strict=True) if other >= 0]
    assert len(followed) == 12
    assert all(worker == other for worker, other in followed)


def test_other_workers_cache_the_rows_that_they_scan(tmp_path: Path) -> None:
    """On three executors of one slot each of the three stages takes two waves of half a second, and the first scan on
    the third its part of being the first there."""
    run = cp.profile([write(tmp_path / "log", skewed(), executors={"1": 1, "2": 1})], output=tmp_path / "run.duckdb")
    whole = execution(run)
    other = predict(whole, scenario_of({"workers": Value("workers", "3", ratio=1.5)}, whole.recorded))
    assert run.baseline().replayed_ms - other.predicted_ms == pytest.approx(3 * 1500, abs=600)


def test_cache_miss_waits_for_locality_as_other_tasks_do(tmp_path: Path) -> None:
    """Three seconds after the last task was launched at home, and half a second until idle slots are offered again."""
    there = Task(500, cpu_ms=300, read_bytes=70 * MIB, locality="PROCESS_LOCAL")
    gone = Task(2000, cpu_ms=300, read_bytes=10 * MIB, locality="ANY", launch_ms=3500, executor="2")
    scan = Stage([replace(there, read_bytes=10 * MIB, locality="NODE_LOCAL")] * 2, reads=FILES, keeps=(KEPT_RDD, 2))
    log = write(
        tmp_path / "log",
        [scan, Stage([there, gone], reads=FILES, keeps=(KEPT_RDD, 2))],
        executors={"1": 2, "2": 2},
        version="2.4.8",
    )
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    assert run.baseline().replay_error_ratio == pytest.approx(0.0, abs=1e-3)


def test_idle_slots_of_workers_without_the_cached_data_are_reported(tmp_path: Path) -> None:
    """Executor 1 has three slots and nearly all rows, executor 2 three that are idle while its tasks wait."""
    there = [("1", each // 3 * 500) for each in range(30)] + [("2", 0)]
    scan, read = (
        [
            Task(500, cpu_ms=400, read_bytes=bytes_, executor=executor, launch_ms=at, locality=place)
            for executor, at in there
        ]
        for bytes_, place in ((10 * MIB, "NODE_LOCAL"), (70 * MIB, "PROCESS_LOCAL"))
    )
    stages = [Stage(each, reads=FILES, keeps=(KEPT_RDD, 31)) for each in (scan, read, read)]
    log = write(tmp_path / "log", stages, executors={"1": 3, "2": 3})
    run = cp.profile([log], output=tmp_path / "run.duckdb")
    (first,) = [each for each in run.debug().findings if isinstance(each, IdleSlots)]
    assert (first.stages[0].on_busiest, first.stages[0].tasks) == (30, 31)
    (skip,) = (each for each in run.verdict().recommendations if isinstance(each, SkipLocalityWait))
    assert skip.settings == (SettingChange("spark.locality.wait", "3s", "0s", is_default=True),)
    assert skip.on_one_executor == 30
