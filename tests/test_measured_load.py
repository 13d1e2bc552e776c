"""Measured quotas and networks in predictions: CPU waits, use by the clock, bytes on the wire."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.query.execution.cpu_limits import starved_ms
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.wire_bytes import FRAME_DATA, wire_ratio
from crystalperf.query.execution.worker_loads import Loads
from crystalperf.query.predict.estimate import predict
from crystalperf.query.simulate.effects.device_speed import MIN_LEFT, of_tasks
from crystalperf.query.simulate.transfers import MODEL, crossing
from tests.test_predict import execution, predicted, scenario
from tests.test_sharing import looks_of

MEGA = 1_000_000


def limited(run: Execution, cores: float, idle: float = 0.0) -> Execution:
    """The run on workers that can use so many cores."""
    slots = replace(run.slots, cpu_cores=np.full(len(run.slots), cores / len(run.slots)))
    return replace(run, slots=slots, background_cores=idle)


def with_volumes(run: Execution, **columns: float) -> Execution:
    changed = {name: np.full(len(run.tasks), value) for name, value in columns.items()}
    return replace(run, volumes=replace(run.volumes, **changed))


def test_cpu_use_by_the_clock_does_not_shrink_with_the_workers_cpu() -> None:
    run = limited(execution([(0, 100)], (1, 0, 0, 0)), cores=0.7, idle=0.1)
    assert of_tasks(run, 0.5).tolist() == pytest.approx([(0.35 - 0.1) / 0.6])
    assert of_tasks(run, 2.0).tolist() == pytest.approx([(1.4 - 0.1) / 0.6])
    assert predicted(run, "cpu_speed=0.5x") == pytest.approx(100 * 0.6 / 0.25)
    assert of_tasks(run, 0.1).tolist() == [MIN_LEFT * 0.1]  # less than what it uses by the clock
    two = execution([(0, 100), (0, 100)], (1, 0, 0, 0), executors=2)
    other = replace(two, slots=replace(two.slots, cpu_cores=np.array([0.7, np.inf])), background_cores=0.1)
    assert of_tasks(other, 0.5).tolist() == pytest.approx([(0.35 - 0.1) / 0.6, 0.5])


def test_worker_with_spare_cpu_is_not_slowed_by_fixed_use() -> None:
    run = replace(execution([(0, 100)], (1, 0, 0, 0)), background_cores=0.1)
    assert predicted(run, "cpu_speed=0.5x") == pytest.approx(200)


def test_unknown_time_under_an_exhausted_quota_is_cpu_wait() -> None:
    """Half of its life its worker was held back, so half of what nothing explains is the CPU's."""
    run = execution([(0, 100)], (0.6, 0, 0, 0.4))
    assert predicted(run, "cpu_speed=0.5x") == pytest.approx(160)
    held_back = with_volumes(run, starved_ms=50.0)
    assert predicted(held_back, "cpu_speed=0.5x") == pytest.approx(180)
    assert predicted(held_back, "cpu_speed=0.999x") == pytest.approx(100.08)
    waits_for_others = replace(held_back, tasks=replace(held_back.tasks, pipeline_wait_ms=np.array([40.0])))
    assert predicted(waits_for_others, "cpu_speed=0.5x") == pytest.approx(160)


def test_throttled_time_of_a_task_is_that_of_its_worker_during_the_task() -> None:
    since_ms = np.array([0.0, 1000.0, 5000.0])  # between the second and the third nobody looked
    loads = looks_of(since_ms, throttled=np.array([0.5, 1.0, 1.0]))
    worker = np.array([0, 0, 0, 1, -1])
    launch, finish = np.array([0.0, 500.0, 0.0, 0.0, 0.0]), np.array([2000.0, 1500.0, 9000.0, 2000.0, 2000.0])
    assert starved_ms(loads, worker, launch, finish) == pytest.approx([1500, 750, 2500, 0, 0])
    unmeasured = replace(loads, throttled=np.full(3, np.nan))
    assert starved_ms(unmeasured, worker, launch, finish).tolist() == [0.0] * 5


def measured(bytes_per_s: float, *, logged: float = 10 * MEGA, seconds: int = 10) -> float | None:
    """The ratio of a run of one task of ten seconds, whose worker's network was measured for so many of them."""
    run = with_volumes(execution([(0, 10_000)], (0, 0, 1, 0)), remote_read=logged)
    return wire_ratio(received(np.arange(seconds) * 1e3, bytes_per_s), run.tasks, run.volumes)


def received(since_ms: np.ndarray, bytes_per_s: float) -> Loads:
    return looks_of(since_ms, received_per_s=np.full(len(since_ms), bytes_per_s))


def test_bytes_on_the_wire_are_reported_if_the_network_was_measured() -> None:
    assert measured(MEGA / FRAME_DATA) == pytest.approx(1.0)
    assert measured(0.25 * MEGA / FRAME_DATA) == pytest.approx(0.25)  # records are packed before they are sent


def test_other_traffic_and_half_a_measurement_are_not_bytes_on_the_wire() -> None:
    assert measured(2 * MEGA) is None  # somebody else's are among them
    assert measured(MEGA, seconds=8) is None
    assert measured(MEGA, logged=MEGA) is None  # too little to distinguish from heartbeats
    assert measured(-MEGA) is None  # damage


def test_workers_of_one_host_share_its_devices() -> None:
    run = with_volumes(execution([(0, 10_000)] * 2, (0, 0, 1, 0), executors=2), remote_read=10.0 * MEGA)
    together = replace(run.tasks, host=np.zeros(2, np.int64))
    loads = received(np.tile(np.arange(10) * 1e3, 2), 2 * MEGA / FRAME_DATA)
    of_both = replace(loads, worker=np.repeat([0, 1], 10))
    assert wire_ratio(of_both, together, run.volumes) == pytest.approx(1.0)


def test_wire_ratio_needs_measurements_during_the_tasks() -> None:
    """The network carried much before the task began, and nobody measured the most of its time."""
    run = with_volumes(execution([(100_000, 110_000)], (0, 0, 1, 0)), remote_read=10.0 * MEGA)
    loads = replace(received(np.array([0.0, 100_000.0]), MEGA), until_ms=np.array([100_000.0, 104_000.0]))
    assert wire_ratio(loads, run.tasks, run.volumes) is None


def test_a_slower_network_costs_what_crosses_it() -> None:
    """Ten seconds on the network: 10 MB were logged, of which a quarter crossed at 1 MB/s; the rest is latency."""
    run = with_volumes(execution([(0, 10_000)], (0, 0, 1, 0)), remote_read=10.0 * MEGA)
    stated = scenario(run, "network=0.5MB/s", recorded=("network=1MB/s",))
    network = next(each for each in run.resources if each.name == "net")
    assert predict(run, stated).predicted_ms == pytest.approx(20_000, rel=0.05)
    packed = replace(run, wire_bytes_ratio=0.25)
    assert crossing(packed, network, MODEL)[0] == pytest.approx([2.5 * MEGA])
    assert crossing(packed, network, replace(MODEL, wire_bytes_ratio=False))[0] == pytest.approx([10 * MEGA])
    assert predict(packed, stated).predicted_ms == pytest.approx(12_500, rel=0.05)
