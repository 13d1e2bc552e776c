"""Intervals over time, against counting them one millisecond at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystalperf.query.execution.dag import Tasks
from crystalperf.query.execution.intervals import Level, Timeline, covered, merged, uncovered
from crystalperf.query.execution.slots import SlotUse
from crystalperf.query.trace.records import Floats

LAST_MS = 12

moments = st.integers(0, LAST_MS)
intervals = st.lists(st.tuples(moments, moments).map(sorted).map(tuple), max_size=8)
interval = st.tuples(moments, moments).map(sorted).map(tuple)

Interval = tuple[int, int]


def columns(given_intervals: list[Interval]) -> tuple[Floats, Floats]:
    table = np.array(given_intervals, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def open_at(given_intervals: list[Interval], ms: int) -> list[int]:
    """Which of the intervals hold in the millisecond that begins at a moment."""
    return [position for position, (start, end) in enumerate(given_intervals) if start <= ms < end]


# By hand --------------------------------------------------------------------------------------------------------------


def test_the_integral_of_two_rates() -> None:
    """1 from 0 to 4 and 2 from 2 to 6: of the time from 1 to 5 the first has 3, the second twice 3."""
    level = Level(np.array([0.0, 2.0]), np.array([4.0, 6.0]), np.array([[1.0, 0.0], [0.0, 2.0]]))
    found = level.over(np.array([1.0, 5.0, 10.0]), np.array([5.0, 1.0, 20.0]))
    assert found.tolist() == [[3, 6], [0, 0], [0, 0]]


def test_slots_are_full_while_tasks_hold_all_that_there_are() -> None:
    """Three tasks on two slots, the second of which is there from 4 on."""
    use = SlotUse(
        np.array([0.0, 3.0, 5.0]), np.array([3.0, 7.0, 6.0]), np.array([0.0, 4.0]), np.array([np.inf, np.inf])
    )
    assert use.is_full(0, 1)
    assert use.is_full(3, 4), "a unit that ends frees a place, which the next one fills"
    assert not use.is_full(4, 5)
    assert use.is_full(4, 6)
    assert not use.is_full(6, 20)
    assert not SlotUse(np.array([5.0]), np.array([6.0]), np.array([4.0]), np.array([np.inf])).is_full(0, 5)


def tasks_of(*rows: tuple[float, float, list[float]]) -> Tasks:
    """(launch, finish, parts) rows of one stage."""
    number, zero = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    launch, finish = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows], float)
    parts = np.array([row[2] for row in rows], float).reshape(len(rows), -1 if rows else 4)
    return Tasks(number, zero, zero, zero, launch, finish, parts, zero, np.zeros(len(rows)), zero - 1)


def test_running_tasks_share_each_moment_equally() -> None:
    """From 0 to 4 one on the CPU and one on the disk at once, then the second alone."""
    both = Timeline(tasks_of((0, 4, [4, 0, 0, 0]), (0, 6, [0, 6, 0, 0])))
    assert both.between(0, 6).tolist() == [2, 4, 0, 0]


@pytest.mark.parametrize("tasks", [tasks_of(), tasks_of((3, 3, [0, 0, 0, 0]))])
def test_without_tasks_that_take_time_no_resource_has_time(tasks: Tasks) -> None:
    assert Timeline(tasks).between(0, 9).tolist() == [0, 0, 0, 0]


def test_nothing_at_all() -> None:
    level = Level(np.empty(0), np.empty(0))
    assert level.over(np.array([0.0]), np.array([9.0])).tolist() == [[0]]
    assert merged(np.empty(0), np.empty(0)).tolist() == []
    assert uncovered(np.empty((0, 2)), 1, 3) == [(1, 3)]
    assert uncovered(np.empty((0, 2)), 3, 3) == []
    assert covered(np.empty((0, 2)), 1, 3) == 0


# By counting ----------------------------------------------------------------------------------------------------------


@given(intervals, interval)
def test_between_sums_what_is_open(found: list[Interval], interval: Interval) -> None:
    start, end = interval
    rate = np.arange(1.0, len(found) + 1)
    expected = sum(rate[each] for ms in range(start, end) for each in open_at(found, ms))
    level = Level(*columns(found), rate)
    assert level.over(np.array([start]), np.array([end]))[0].tolist() == pytest.approx([expected])


@given(intervals, intervals, interval)
def test_slots_are_full_as_counted(tasks: list[Interval], slots: list[Interval], interval: Interval) -> None:
    running = [(first, last) for first, last in tasks if first < last]
    there = [(first, last) for first, last in slots if first < last]
    full = [len(open_at(running, ms)) >= max(len(open_at(there, ms)), 1) for ms in range(*interval)]
    assert SlotUse(*columns(running), *columns(there)).is_full(*interval) == any(full)


@given(intervals)
def test_merged_covers_the_same_and_overlaps_nowhere(found: list[Interval]) -> None:
    union = [(int(start), int(end)) for start, end in merged(*columns(found)).tolist()]
    for ms in range(LAST_MS):
        assert len(open_at(union, ms)) == min(len(open_at(found, ms)), 1)
    assert all(before[1] < after[0] for before, after in pairwise(union))


@given(intervals, interval)
def test_covered_and_open_parts_add_up_to_the_interval(found: list[Interval], interval: Interval) -> None:
    start, end = interval
    union = merged(*columns(found))
    inside = [ms for ms in range(start, end) if open_at(found, ms)]
    assert covered(union, start, end) == len(inside)
    gaps = [(int(low), int(high)) for low, high in uncovered(union, start, end)]
    assert [ms for low, high in gaps for ms in range(low, high)] == [ms for ms in range(start, end) if ms not in inside]
    assert all(low < high for low, high in gaps)
    assert all(before[1] <= after[0] for before, after in pairwise(gaps))
