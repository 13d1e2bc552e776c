"""Cost of a task besides its rows: what fewer of many small tasks save."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.small_tasks import MAX_COST_MS, MAX_SHARE, own_cost_share
from crystalperf.query.simulate.repartition import with_tasks
from tests.test_predict import MIB, execution, reading

KIB = 2**10


def run_of(took_ms: list[float], moved: list[int]) -> Execution:
    """One stage of tasks that read so many bytes of a shuffle."""
    run = reading(execution([(0.0, each) for each in took_ms], (1, 0, 0, 0), executors=1, cores=2), files=0)
    volumes = replace(run.volumes, local_read=np.array(moved), overhead_ms=np.zeros(len(moved)))
    return replace(run, volumes=volumes)


def test_most_of_a_small_task_is_its_own_cost():
    assert own_cost_share(run_of([50.0] * 40, [3 * KIB] * 40)) == pytest.approx(np.full(40, MAX_SHARE))


def test_a_large_task_has_no_cost_of_its_own():
    assert not own_cost_share(run_of([1000.0] * 4, [20 * MIB] * 4)).any()


def test_large_tasks_of_the_run_show_how_long_rows_may_take():
    """100 ms for a MiB: a task of 100 KiB may need 30 ms for its rows, of the 50 ms that it takes."""
    run = run_of([1000.0] * 4 + [50.0] * 40, [10 * MIB] * 4 + [100 * KIB] * 40)
    share = own_cost_share(run)
    assert not share[:4].any()
    assert share[4:] == pytest.approx(np.full(40, 1 - 3 * 100 / 1024 * 100 / 50), rel=0.01)


def test_the_cost_of_a_slow_task_is_at_most_the_median():
    share = own_cost_share(run_of([50.0] * 39 + [500.0], [3 * KIB] * 40))
    assert share[-1] == pytest.approx(0.1 * MAX_SHARE, rel=0.01)


def test_a_long_task_with_few_rows_computes_for_them():
    share = own_cost_share(run_of([10_000.0] * 4, [3 * KIB] * 4))
    assert share == pytest.approx(np.full(4, MAX_COST_MS / 10_000.0))


@pytest.mark.parametrize("why", ["no bytes", "Python workers"])
def test_tasks_whose_rows_are_unknown_have_no_cost(why: str):
    run = run_of([50.0] * 4, [0 if why == "no bytes" else 3 * KIB] * 4)
    if why == "Python workers":
        run = replace(run, delegating=frozenset({0}))
    assert not own_cost_share(run).any()


def test_fewer_tasks_pay_the_cost_less_often():
    run = run_of([50.0] * 40, [3 * KIB] * 40)
    merged = with_tasks(run, {0: 4}, None, own_cost_share(run))
    same = with_tasks(run, {0: 40}, None, own_cost_share(run))
    assert merged.tasks.duration_ms == pytest.approx(np.full(4, 50 * MAX_SHARE + 10 * 50 * (1 - MAX_SHARE)))
    assert same.tasks.duration_ms == pytest.approx(np.full(40, 50.0))
    assert merged.volumes.total_cpu_ms.sum() < same.volumes.total_cpu_ms.sum()
