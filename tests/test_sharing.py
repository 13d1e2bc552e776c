"""Devices that tasks share: sums that can be done by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystalperf.query.execution.cpu_limits import background_cores, cpu_limits
from crystalperf.query.execution.worker_loads import Loads
from crystalperf.query.simulate.device_sharing import Sorted, together
from crystalperf.query.simulate.list_schedule import has_compiled


def test_the_mean_level_is_the_sum_of_the_rates_of_all_that_run() -> None:
    group, start, end = np.array([1, 0, 1, 1]), np.array([0.0, 3.0, 5.0, 7.0]), np.array([10.0, 4.0, 15.0, 7.0])
    level = Sorted(group, start, end).means(np.array([2.0, 9.0, 4.0, 1.0]))
    assert level.tolist() == pytest.approx([4.0, 9.0, 5.0, 1.0])  # one without length has its own rate


def counted(rows: list[tuple[int, int, int, int]]) -> list[float]:
    """The same ms by ms: of (group, start, length, rate)."""
    found = []
    for group, start, length, own in rows:
        open_ = [
            sum(rate for other, first, lasting, rate in rows if other == group and first <= ms < first + lasting)
            for ms in range(start, start + length)
        ]
        found.append(sum(open_) / length if length else float(own))
    return found


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 6), st.integers(0, 5)), max_size=8))
def test_mean_levels_are_as_counted(rows: list[tuple[int, int, int, int]]) -> None:
    group, start, length, rate = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    begin = start.astype(np.float64)
    found = Sorted(group, begin, begin + length).means(rate.astype(np.float64))
    assert found.tolist() == pytest.approx(counted(rows))


@pytest.mark.skipif(not has_compiled(), reason="the loop was not compiled: there is no C compiler")
@given(st.integers(1, 400), st.integers(0, 2**32))
def test_compiled_mean_levels_are_the_same_to_the_last_bit(count: int, seed: int) -> None:
    number = np.random.default_rng(seed)
    begin, rate = np.round(number.random(count) * 50, 1), number.random(count)
    length = number.random(count) * number.integers(0, 2, count) * 20
    group = number.integers(0, 4, count)
    compiled, plain = (Sorted(group, begin, begin + length, compiles=each) for each in (True, False))
    assert np.array_equal(compiled.means(rate, compiles=True), plain.means(rate, compiles=False))


@pytest.mark.skipif(not has_compiled(), reason="the loop was not compiled: there is no C compiler")
def test_compiled_order_of_moments_far_out_of_order_is_the_same() -> None:
    begin = np.arange(400.0)[::-1] // 3
    compiled, plain = (Sorted(np.arange(400) % 2, begin, begin + 5, compiles=each) for each in (True, False))
    rate = np.random.default_rng(0).random(400)
    assert np.array_equal(compiled.means(rate, compiles=True), plain.means(rate, compiles=False))


def test_concurrency_counts_tasks_on_the_device() -> None:
    compared = Sorted(np.array([0, 0, 1]), np.zeros(3), np.full(3, 10.0))
    for share, expected in (([1.0, 1.0, 1.0], [2, 2, 1]), ([1.0, 0.0, 1.0], [1, 2, 1])):
        assert together(compared.means(np.array(share)), np.array(share)).tolist() == pytest.approx(expected)


def test_no_intervals_have_no_concurrency() -> None:
    nothing = np.zeros(0)
    assert len(Sorted(np.zeros(0, dtype=np.int64), nothing, nothing).means(nothing)) == 0


def looks_of(since_ms: np.ndarray, **measured: np.ndarray) -> Loads:
    """Looks of a second each at worker 0, which has tasks and uses a core; nothing else is measured."""
    count = len(since_ms)
    unknown = np.full(count, np.nan)
    usual = {"cores": np.ones(count), "quota": unknown, "throttled": unknown, "received_per_s": unknown}
    columns = {**usual, "has_tasks": np.ones(count, np.bool_), **measured}
    return Loads(worker=np.zeros(count, np.int64), since_ms=since_ms, until_ms=since_ms + 1e3, **columns)


def loads_of(cores: list[float], throttled: float = np.nan, *, quota: float = np.nan, idle: int = 0) -> Loads:
    """Of one executor, that had no tasks in the last `idle` measurements."""
    count = len(cores)
    return looks_of(
        np.arange(count) * 1e3,
        cores=np.array(cores),
        quota=np.full(count, quota),
        throttled=np.full(count, throttled),
        has_tasks=np.arange(count) < count - idle,
    )


def limits(load: float, total_cpu_ms: float, cpu_ms: float, throttled: float = np.nan) -> list[float]:
    """Of one executor with one task."""
    loads = loads_of([load] * 20, throttled)
    return cpu_limits(loads, np.zeros(1, dtype=np.int64), np.array([total_cpu_ms]), np.array([cpu_ms]), 1).tolist()


def test_an_executor_whose_tasks_waited_for_a_cpu_was_at_its_limit() -> None:
    assert limits(0.4, total_cpu_ms=5_000.0, cpu_ms=20_000.0) == pytest.approx([0.4])


def test_an_executor_whose_tasks_got_the_cpu_they_wanted_shows_no_limit() -> None:
    assert limits(1.0, total_cpu_ms=20_000.0, cpu_ms=20_000.0) == [np.inf]


def test_a_quota_that_was_used_up_is_a_limit_whatever_tasks_wanted() -> None:
    assert limits(0.4, total_cpu_ms=20_000.0, cpu_ms=20_000.0, throttled=0.9) == pytest.approx([0.4])
    assert limits(0.4, total_cpu_ms=20_000.0, cpu_ms=20_000.0, throttled=0.1) == [np.inf]
    others = loads_of([0.1] * 20, 0.9, quota=0.4)  # another process had the rest
    cpu_ms = np.array([20_000.0])
    assert cpu_limits(others, np.zeros(1, dtype=np.int64), cpu_ms, cpu_ms, 1).tolist() == [0.4]


def test_cpu_use_of_an_executor_without_tasks_goes_by_the_clock() -> None:
    busy = [0.7] * 8
    assert background_cores(loads_of([*busy, 0.2, 0.06, 0.05, 0.06, 0.05], idle=5)) == pytest.approx(0.05)
    assert background_cores(loads_of([*busy, 0.05, 0.05, 0.05], idle=3)) == 0.0  # too few to know
    assert background_cores(loads_of(busy)) == 0.0
    driver = replace(loads_of([0.5] * 8, idle=8), worker=np.full(8, -1))
    assert background_cores(driver) == 0.0


def test_peak_of_a_burst_is_not_a_limit() -> None:
    """Tasks that read a slow disk want a CPU for some ms at a time; no executor is at a limit for a second."""
    loads = loads_of([0.0, 0.01, 0.34, 0.01, 0.16, 0.1, 0.01, 0.07, 0.08])
    starved = np.array([500.0]), np.array([1_000.0])
    assert cpu_limits(loads, np.zeros(1, dtype=np.int64), *starved, 1).tolist() == [np.inf]
