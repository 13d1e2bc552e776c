"""Devices that tasks share: sums that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from query.sharing import Loads, cpu_use, mean_level


def test_mean_level_is_the_sum_of_the_rates_of_all_that_run() -> None:
    group, start, end = np.array([0, 0]), np.array([0.0, 5.0]), np.array([10.0, 15.0])
    assert mean_level(group, start, end, np.array([2.0, 4.0])).tolist() == [4.0, 5.0]


def test_work_of_a_process_is_shared_by_the_tasks_then_running() -> None:
    """0.4 cores over 20 s, the first 10 s for one task, the rest for two."""
    loads = Loads(np.zeros(20, dtype=np.int64), np.arange(1, 21) * 1000.0, np.full(20, 0.4))
    launch, finish = np.array([0.0, 10_000.0]), np.array([20_000.0, 20_000.0])
    waited = np.array([20_000.0, 10_000.0])
    use = cpu_use(loads, np.zeros(2, dtype=np.int64), launch, finish, waited / 4, waited, 1)
    assert use.work_ms.tolist() == pytest.approx([4000 + 2000, 2000])
    assert use.cores.tolist() == pytest.approx([0.4])


def test_an_executor_whose_tasks_got_the_cpu_they_wanted_shows_no_limit() -> None:
    loads = Loads(np.zeros(20, dtype=np.int64), np.arange(1, 21) * 1000.0, np.full(20, 1.0))
    launch, finish, busy = np.array([0.0]), np.array([20_000.0]), np.array([20_000.0])
    use = cpu_use(loads, np.zeros(1, dtype=np.int64), launch, finish, busy, busy, 1)
    assert use.cores.tolist() == [np.inf]
