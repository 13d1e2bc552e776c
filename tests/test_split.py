"""Task time by resource: measured times bound what labels say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crystalperf.indexes.resources import resources
from crystalperf.query.attribution.splitting import Recorded
from crystalperf.query.attribution.splitting import split as split_tasks
from crystalperf.query.frameworks.spark.trace import bounds
from crystalperf.query.trace.records import Columns, Floats, Ints

CPU, DISK, NET, OTHER = range(4)
TIMES = (
    *("duration_ms", "scheduler_delay_ms", "deserialize_ms", "deserialize_cpu_ms", "run_ms", "run_cpu_ms"),
    *("result_serialize_ms", "getting_result_ms", "gc_ms", "fetch_wait_ms", "shuffle_write_ms", "result_bytes"),
)
"""The times that Spark logs of each task, and its duration."""


def measured(count: int = 1, **times: float) -> Columns:
    return {name: np.full(count, float(times.get(name, 0.0))) for name in TIMES}


def split(tasks: Columns, stage: Ints, recorded: Recorded | None) -> Floats:
    """The time of tasks of Spark, by what Spark measured of them."""
    return split_tasks(bounds(tasks), tasks["duration_ms"], stage, recorded, resources())


def samples(*rows: list[float]) -> Recorded:
    table = np.array(rows)
    return Recorded(np.zeros_like(table), table)


def one_stage(count: int = 1) -> np.ndarray:  # type: ignore[type-arg]
    return np.zeros(count, dtype=np.int64)


def test_without_samples_only_what_was_measured_has_a_resource() -> None:
    task = measured(duration_ms=100, run_ms=90, run_cpu_ms=30, fetch_wait_ms=20, gc_ms=5, scheduler_delay_ms=10)
    assert split(task, one_stage(), None)[0].tolist() == [35, 0, 20, 45]


def test_without_samples_blocked_shuffle_writes_are_disk() -> None:
    task = measured(duration_ms=100, run_ms=100, run_cpu_ms=30, shuffle_write_ms=25)
    assert split(task, one_stage(), None)[0].tolist() == [30, 25, 0, 45]


def test_samples_share_out_what_was_not_measured() -> None:
    task = measured(duration_ms=1000, run_ms=1000, run_cpu_ms=200)
    sampled = samples([200.0, 600.0, 200.0, 0.0])
    assert split(task, one_stage(), sampled)[0].tolist() == pytest.approx([200, 600, 200, 0])


def test_measured_cpu_time_is_a_floor_for_the_labels() -> None:
    """Code labelled disk that burned CPU for 800 of 1000 ms spent at most 200 ms on the disk."""
    task = measured(duration_ms=1000, run_ms=1000, run_cpu_ms=800)
    sampled = samples([0.0, 1000.0, 0.0, 0.0])
    assert split(task, one_stage(), sampled)[0].tolist() == pytest.approx([800, 200, 0, 0])


def test_measured_fetch_wait_is_a_floor_for_net() -> None:
    task = measured(duration_ms=1000, run_ms=1000, run_cpu_ms=100, fetch_wait_ms=700)
    sampled = samples([1000.0, 0.0, 0.0, 0.0])
    parts = split(task, one_stage(), sampled)[0]
    assert parts[NET] == pytest.approx(700)
    assert parts[CPU] == pytest.approx(300)


def test_a_thread_that_ran_java_without_a_cpu_waited_for_the_cpu() -> None:
    """42 s of task time with 8.5 s of CPU time under a quota: the rest is cpu too, though CPU time lacks it."""
    task = measured(duration_ms=42_000, run_ms=42_000, run_cpu_ms=8_500)
    sampled = samples([42_000.0, 0.0, 0.0, 0.0])
    assert split(task, one_stage(), sampled)[0, CPU] == pytest.approx(42_000)


def test_measured_intervals_keep_their_length_and_samples_fill_the_rest() -> None:
    """100 ms of samples represent the 700 ms that were not parked: half of the ticks of a starved sampler are lost."""
    task = measured(duration_ms=1000, run_ms=1000)
    recorded = Recorded(np.array([[0.0, 0.0, 300.0, 0.0]]), np.array([[100.0, 0.0, 0.0, 0.0]]))
    assert split(task, one_stage(), recorded)[0].tolist() == pytest.approx([700, 0, 300, 0])


def test_task_without_samples_gets_the_mixture_of_its_stage() -> None:
    tasks = measured(2, duration_ms=100, run_ms=100)
    sampled = samples([0.0, 0.0, 1000.0, 0.0], [0.0, 0.0, 0.0, 0.0])
    assert split(tasks, one_stage(2), sampled)[1].tolist() == pytest.approx([0, 0, 100, 0])


def test_a_task_without_metrics_is_unknown() -> None:
    task = {name: np.full(1, 50.0 if name == "duration_ms" else np.nan) for name in TIMES}
    assert split(task, one_stage(), None)[0].tolist() == [0, 0, 0, 50]


times = st.floats(0, 1e6, allow_nan=False)


@given(st.lists(times, min_size=11, max_size=11), st.lists(times, min_size=4, max_size=4), times)
def test_the_parts_always_sum_to_the_duration(fields: list[float], sampled: list[float], duration: float) -> None:
    task = {name: np.array([value]) for name, value in zip(TIMES, (duration, *fields), strict=True)}
    for recorded in (None, samples(sampled), Recorded(np.array([sampled[::-1]]), np.array([sampled]))):
        parts = split(task, one_stage(), recorded)
        assert parts.sum() == pytest.approx(duration, rel=1e-9, abs=1e-6)
        assert (parts >= -1e-6).all()


def test_time_that_a_recorder_of_all_states_did_not_see_was_waiting_for_the_cpu() -> None:
    """Two tasks of a second, half of it seen, on the network; nothing else was measured."""
    task = measured(2, duration_ms=1000, run_ms=1000)
    seen = np.array([[0.0, 0.0, 600.0, 0.0], [0.0, 0.0, 400.0, 0.0]])
    stage = one_stage(2)
    partly = split(task, stage, Recorded(np.zeros_like(seen), seen))
    assert partly[:, NET].tolist() == pytest.approx([1000.0] * 2)
    wholly = split(task, stage, Recorded(np.zeros_like(seen), seen, np.ones(2, dtype=bool)))
    assert wholly[:, CPU].tolist() == pytest.approx([500.0] * 2)
    assert wholly[:, NET].tolist() == pytest.approx([500.0] * 2)
    # A stage of which no sample was taken stays as unknown as it was.
    intervals = np.array([[0.0, 0.0, 1.0, 0.0]] * 2)
    nothing = split(task, stage, Recorded(intervals, 0 * seen, np.ones(2, dtype=bool)))
    assert nothing[:, CPU].tolist() == [0.0, 0.0]
