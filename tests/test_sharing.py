"""Devices that tasks share: sums that can be done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from query.model.capacity import Loads, cpu_limits
from query.whatif.sharing import mean_level


def test_mean_level_is_the_sum_of_the_rates_of_all_that_run() -> None:
    group, start, end = np.array([0, 0]), np.array([0.0, 5.0]), np.array([10.0, 15.0])
    assert mean_level(group, start, end, np.array([2.0, 4.0])).tolist() == [4.0, 5.0]


def limits(load: float, on_cpu_ms: float, cpu_ms: float) -> list[float]:
    """Of one executor with one task."""
    loads = Loads(np.zeros(20, dtype=np.int64), np.full(20, load))
    return cpu_limits(loads, np.zeros(1, dtype=np.int64), np.array([on_cpu_ms]), np.array([cpu_ms]), 1).tolist()


def test_an_executor_whose_tasks_waited_for_a_cpu_was_at_its_limit() -> None:
    assert limits(0.4, on_cpu_ms=5_000.0, cpu_ms=20_000.0) == pytest.approx([0.4])


def test_an_executor_whose_tasks_got_the_cpu_they_wanted_shows_no_limit() -> None:
    assert limits(1.0, on_cpu_ms=20_000.0, cpu_ms=20_000.0) == [np.inf]
