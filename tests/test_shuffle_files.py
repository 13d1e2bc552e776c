"""A file for each partition and task: what they cost where other slots or partitions make other numbers of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.blocks import FILE_MS, files_ms
from crystalperf.query.simulate.repartition import with_tasks
from tests.test_predict import MIB, execution, predicted, reading, tasks_for

FILES = 200


def scanning(cpu_ms: list[float], read_bytes: list[int], *, waits: float = 4.0) -> Execution:
    """A scan that hands its rows over: tasks that wait so many seconds for each of their CPU time."""
    times = [(0.0, each * (1 + waits)) for each in cpu_ms]
    run = reading(execution(times, (1, 0, 0, 0), executors=2, cores=2), files=MIB)
    volumes = replace(
        run.volumes,
        input=np.array(read_bytes),
        exchange_write=np.full(len(cpu_ms), 5 * MIB),
        total_cpu_ms=np.array(cpu_ms),
        overhead_ms=np.zeros(len(cpu_ms)),
    )
    return replace(run, volumes=volumes, recorded={**run.recorded, "tasks": float(FILES)})


def test_tasks_that_read_more_show_the_cost_of_their_files() -> None:
    """200 files of 1.5 ms and 100 ms for each MiB: two points of a line, so the run outweighs what is usual."""
    run = scanning([400.0, 1300.0] * 20, [MIB, 10 * MIB] * 20)
    assert files_ms(run, FILES) == pytest.approx(np.full(40, 300.0), rel=0.05)


def test_tasks_proportional_to_their_input_have_free_files() -> None:
    run = scanning([100.0, 1000.0] * 20, [MIB, 10 * MIB] * 20)
    assert files_ms(run, FILES) == pytest.approx(np.zeros(40), abs=10.0)


def test_even_tasks_show_nothing_so_files_cost_the_default() -> None:
    run = scanning([1000.0] * 4, [10 * MIB] * 4)
    assert files_ms(run, FILES) == pytest.approx(np.full(4, FILES * FILE_MS))


@pytest.mark.parametrize("why", ["few rows", "no query", "another writer", "fewer files allowed"])
def test_tasks_that_write_no_file_for_each_partition(why: str) -> None:
    run, partitions = scanning([1000.0] * 4, [10 * MIB] * 4), FILES
    if why == "few rows":
        run = replace(run, volumes=replace(run.volumes, exchange_write=np.full(4, 10)))
    elif why == "no query":
        of_no_query = [replace(each, scope_id=None) for each in run.dag.stages]
        run = replace(run, dag=replace(run.dag, stages=of_no_query))
    elif why == "another writer":
        partitions = 201
    else:
        run = replace(run, properties={"spark.shuffle.sort.bypassMergeThreshold": "100"})
    assert not files_ms(run, partitions).any()


def test_twice_the_tasks_write_twice_the_files() -> None:
    """Each task's 500 ms of CPU are 100 for its files and 400 for its rows, and each second waits for four."""
    run = scanning([500.0] * 4, [10 * MIB] * 4)
    cut = tasks_for(run, "cores=2x")
    assert len(cut.tasks) == 8
    assert cut.volumes.total_cpu_ms.tolist() == pytest.approx([300.0] * 8)
    assert cut.tasks.duration_ms.tolist() == pytest.approx([1500.0] * 8)


def test_repartitioning_to_the_same_count_keeps_the_recorded_work() -> None:
    run = scanning([500.0, 700.0], [10 * MIB] * 2)
    same = with_tasks(run, {0: 2}, files_ms(run, FILES))
    assert same.tasks.duration_ms.sum() == pytest.approx(run.tasks.duration_ms.sum())
    assert same.volumes.total_cpu_ms.sum() == pytest.approx(1200.0)


def test_fewer_partitions_are_fewer_files() -> None:
    run = scanning([500.0] * 4, [10 * MIB] * 4)
    assert predicted(run, "partitions=100") == pytest.approx(2500.0 - 50 * 5)
    assert predicted(run, "partitions=20") == pytest.approx(2500.0 - 90 * 5)
    assert predicted(run, "partitions=400") == pytest.approx(2500.0)  # of another writer nothing is known
