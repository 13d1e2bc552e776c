"""Which task a thread worked for; times in ms."""

from __future__ import annotations

import numpy as np
import pytest

from crystalperf.query.attribution.samples.align import ThreadIntervals, assign, clock_shift, task_at


def seen(*rows: tuple[int, float, float, bool]) -> ThreadIntervals:
    """(thread, start, end, in a task) rows."""
    ordered = sorted(rows, key=lambda row: row[1])
    return ThreadIntervals(
        np.array([row[0] for row in ordered]),
        np.array([row[1] for row in ordered], float),
        np.array([row[2] for row in ordered], float),
        np.array([row[3] for row in ordered], bool),
    )


def ticks(thread: int, start: float, end: float, step: float = 20) -> list[tuple[int, float, float, bool]]:
    return [(thread, moment, min(moment + step, end), True) for moment in np.arange(start, end, step)]


def test_a_task_goes_to_the_thread_that_was_busy_all_its_time() -> None:
    both = seen(*ticks(7, 0, 1000), *ticks(8, 1000, 2000))
    launch, finish = np.array([0.0, 1000.0]), np.array([1000.0, 2000.0])
    assert assign(both, launch, finish).tolist() == [7, 8]


def test_two_tasks_at_a_time_take_two_threads() -> None:
    both = seen(*ticks(7, 0, 1000), *ticks(8, 0, 600))
    launch, finish = np.array([0.0, 0.0]), np.array([600.0, 1000.0])
    assert sorted(assign(both, launch, finish).tolist()) == [7, 8]


def test_a_short_task_leaves_the_busier_thread_to_the_long_one() -> None:
    """Thread 7 was seen all the time, thread 8 now and then and only for as long as the short task ran."""
    both = seen(*ticks(7, 0, 2000), *ticks(8, 0, 600)[::3], (8, 600, 2000, False))
    launch, finish = np.array([0.0, 0.0]), np.array([600.0, 2000.0])
    assert assign(both, launch, finish).tolist() == [8, 7]


def test_where_all_threads_are_busy_a_task_goes_to_the_one_that_became_free() -> None:
    """Back to back on two slots; the longest task, were it to choose first, would take the second one's thread."""
    both = seen(*ticks(7, 0, 5000), *ticks(8, 0, 5000))
    launch, finish = np.array([0.0, 0.0, 1000.0, 1600.0, 2400.0]), np.array([1600.0, 1000.0, 2400.0, 5000.0, 4000.0])
    found = assign(both, launch, finish).tolist()
    assert sorted(found[:2]) == [7, 8]
    assert found[2:] == [found[1], found[0], found[1]]


def test_moments_of_idleness_bound_a_task() -> None:
    """Both threads are busy all along; thread 8 paused where the short task ended, thread 7 where the long one did."""
    both = seen(*ticks(7, 0, 2000), *ticks(8, 0, 2000), (8, 700, 704, False), (7, 1300, 1304, False))
    launch, finish = np.array([0.0, 60.0]), np.array([700.0, 1300.0])
    assert assign(both, launch, finish).tolist() == [8, 7]


def test_an_idle_thread_is_not_taken() -> None:
    idle_then_busy = seen((7, 0, 1000, False), *ticks(7, 1000, 1200), *ticks(8, 0, 1000))
    assert assign(idle_then_busy, np.array([0.0]), np.array([1000.0])).tolist() == [8]


def test_task_without_a_matching_thread_stays_unmatched() -> None:
    assert assign(seen(*ticks(7, 0, 100)), np.array([5000.0]), np.array([6000.0])).tolist() == [-1]


def test_samples_outside_all_tasks_are_not_attributed() -> None:
    found = task_at(
        np.array([7, 7, 7, 9]), np.array([50.0, 150.0, 250.0, 50.0]),
        np.array([7, 7]), np.array([0.0, 200.0]), np.array([100.0, 300.0]),
    )  # fmt: skip
    assert found.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize("offset", [0.0, 3000.0, -7500.0, 25_000.0])
def test_the_shift_between_two_clocks_is_found(offset: float) -> None:
    random = np.random.default_rng(1)
    launch = np.cumsum(random.uniform(100, 3000, 40))
    finish = launch + random.uniform(50, 1500, 40)
    rows = [
        row
        for number, (start, end) in enumerate(zip(launch, finish, strict=True))
        for row in ticks(number % 5, start - offset, end - offset)
    ]
    assert clock_shift(seen(*rows), launch, finish) == pytest.approx(offset, abs=50)


def test_clocks_that_agree_are_left_alone() -> None:
    launch, finish = np.array([0.0, 1000.0]), np.array([900.0, 1900.0])
    rows = [*ticks(1, 15, 890), *ticks(1, 1015, 1890)]
    assert clock_shift(seen(*rows), launch, finish) == 0.0
