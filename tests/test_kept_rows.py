"""Rows that executors keep in memory: read again they cross no disk and no network, whatever their files do."""

from __future__ import annotations

from pathlib import Path

import duckdb

import crystalperf as cp
from query.attribute.storage import assumptions
from query.frameworks.spark import SPARK
from query.model.execution import Execution
from query.model.load import load
from query.model.places import KEPT, far_groups, kept_groups
from query.model.world import Value, changed_world
from query.run import Run
from query.whatif.predict import predict
from tests.spark_logs import MIB, Stage, Task, write

KMEANS = Path(__file__).parent.parent / "lab" / "recordings" / "sweeps" / "fresh" / "base-3-00-jfr20"
FILES = "hdfs://nn/data/points.csv"
KEPT_RDD = 100


def stage(bytes_: int, *, tasks: int = 4, keeps: bool = True) -> Stage:
    """A stage of even tasks that read so many bytes each, of the RDD of four partitions that is kept."""
    every = [Task(ms=2000, cpu_ms=400, read_bytes=bytes_, executor=str(number % 2 + 1)) for number in range(tasks)]
    return Stage(every, reads=FILES, keeps=(KEPT_RDD, 4) if keeps else None)


def profiled(folder: Path, *stages: Stage) -> Run:
    return cp.profile([write(folder / "log", stages, executors={"1": 2, "2": 2})], output=folder / "run.duckdb")


def kept(run: Run) -> set[str]:
    with duckdb.connect(str(run.path), read_only=True) as connection:
        found = kept_groups(connection)
        assert not found & set(far_groups(connection))
        return found


def execution(run: Run) -> Execution:
    with duckdb.connect(str(run.path), read_only=True) as connection:
        return load(connection, "whole")


def test_rows_that_all_were_computed_before_are_read_from_memory(tmp_path: Path) -> None:
    run = profiled(tmp_path, stage(10 * MIB), stage(70 * MIB), stage(70 * MIB))
    assert kept(run) == {"stage:1.0", "stage:2.0"}
    volumes = execution(run).volumes
    for each in execution(run).resources:
        if each.moves:
            assert not volumes.moved(each)[4:].any(), each.name
    assert volumes.far[:4].tolist() == [10 * MIB] * 4
    assert volumes.kept.tolist() == [0] * 4 + [70 * MIB] * 8


def test_a_part_of_the_rows_is_not_all_of_them(tmp_path: Path) -> None:
    """take(1) computes a partition, and whoever reads the rest reads the files."""
    assert kept(profiled(tmp_path, stage(10 * MIB, tasks=1), stage(12 * MIB))) == set()


def test_as_many_bytes_as_the_files_have_are_of_the_files(tmp_path: Path) -> None:
    """Rows that memory had no room for are computed again."""
    assert kept(profiled(tmp_path, stage(10 * MIB), stage(10 * MIB))) == set()


def test_rows_that_nobody_keeps_are_read_from_their_files(tmp_path: Path) -> None:
    assert kept(profiled(tmp_path, stage(10 * MIB), stage(70 * MIB, keeps=False))) == set()


def test_a_slower_network_slows_only_what_crosses_it(tmp_path: Path) -> None:
    """The rows that are kept would take 11 times as long as their stage did, if the link carried them."""
    run = execution(profiled(tmp_path, stage(MIB), stage(400 * MIB)))
    run_at = {**run.recorded, "network": 25e6}
    answer = predict(run, changed_world({"network": Value("network", "0.5x", ratio=0.5)}, run_at))
    assert answer.interval_ms is not None
    assert answer.interval_ms[1] < 1.5 * run.runtime_ms


def test_what_was_in_memory_is_told(tmp_path: Path) -> None:
    run = profiled(tmp_path, stage(10 * MIB), stage(70 * MIB), stage(70 * MIB))
    with duckdb.connect(str(run.path), read_only=True) as connection:
        groups = [name for (name,) in connection.execute("SELECT group_id FROM groups").fetchall()]
        said = assumptions(connection, groups, False, SPARK)
    assert "input of 2 stages was in the memory of executors: no disk and no network carried it" in said


def test_the_rows_of_a_real_job_are_read_from_memory_once_they_are_there(tmp_path: Path) -> None:
    """k-means reads 23 MB of Parquet in the first stage of each of its four passes, and then 276 MB of kept rows."""
    run = cp.profile([KMEANS], output=tmp_path / "run.duckdb").path
    with duckdb.connect(str(run), read_only=True) as connection:
        rows = connection.execute(
            """
            SELECT root = ?, sum(input_bytes)::BIGINT
            FROM units JOIN group_inputs USING (group_id) GROUP BY group_id, root ORDER BY min(launch_ms)
            """,
            [KEPT],
        ).fetchall()
    of_files = [bytes_ for is_kept, bytes_ in rows if not is_kept]
    assert of_files == [22_635_337] * 4
    assert min(bytes_ for is_kept, bytes_ in rows if is_kept) == 276_021_640
    assert len(rows) > 40
