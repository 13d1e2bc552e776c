"""Intervals around predictions, and questions beyond the model's range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crystalperf.indexes.resources import known
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.predict.estimate import predict
from crystalperf.query.predict.interval import CALIBRATED, SOURCES, interval, variances
from crystalperf.query.results.refusals import RemoteReadsUnknown, SendersOutOfRange, SlotsOutOfRange
from crystalperf.query.text.as_json import as_json
from tests.test_predict import execution, scenario

SURE = Evidence(np.zeros(3), np.zeros(3), 0.0)


def around(evidence: Evidence, *settings: str, predicted_ms: float = 900.0, replayed_ms: float = 1000.0) -> float:
    """Half of the interval's width on the log scale."""
    run = execution([(0, 1000)], (0.5, 0.2, 0.3, 0))
    reported = variances(1000.0, replayed_ms, predicted_ms, scenario(run, *settings), evidence, known())
    (low, high), shares = interval(predicted_ms, reported)
    assert list(shares) == list(SOURCES)
    assert sum(shares.values()) == pytest.approx(1)
    assert low * high == pytest.approx(predicted_ms**2)
    return float(np.log(high / low) / 2)


def test_each_source_of_error_widens_the_interval() -> None:
    plain = around(SURE, "network=2x")
    assert around(SURE, "network=2x", replayed_ms=1100.0) > plain  # a worse replay
    assert around(Evidence(np.array([0, 0, 0.2]), np.zeros(3), 0.0), "network=2x") > plain
    assert around(Evidence(np.zeros(3), np.array([0, 0, 0.2]), 0.0), "network=2x") > plain
    assert around(Evidence(np.zeros(3), np.zeros(3), 0.5), "network=2x") > plain


def test_the_models_error_may_grow_with_the_distance() -> None:
    """|log(500 / 1000)| = 0.693, times a slope of 0.2; without a slope the way does not matter."""
    run = execution([(0, 1000)], (0.5, 0.2, 0.3, 0))
    changed = scenario(run, "network=2x")
    steep = replace(CALIBRATED, model=0.1, slope=0.2)
    reported = variances(1000.0, 1000.0, 500.0, changed, SURE, known(), steep)
    assert reported["model"] == pytest.approx(0.1**2 + (0.2 * 0.693147) ** 2)
    flat = variances(1000.0, 1000.0, 500.0, changed, SURE, known(), replace(steep, slope=0.0))
    assert flat["model"] == pytest.approx(0.01)


def test_unknown_time_on_an_unchanged_device_costs_nothing() -> None:
    of_disk = Evidence(np.array([0, 0.2, 0]), np.array([0, 0.2, 0]), 0.5)
    assert around(of_disk, "cores=2x") == pytest.approx(around(SURE, "cores=2x"))
    assert around(of_disk, "disk=2x") > around(SURE, "disk=2x")


def test_an_answer_carries_its_interval() -> None:
    run = execution([(0, 100), (0, 100)], (1, 0, 0, 0))
    answer = predict(run, scenario(run, "cores=2x"))
    assert answer.interval_ms[0] < answer.predicted_ms < answer.interval_ms[1]
    assert as_json(answer)["interval_shares"].keys() == set(SOURCES)


def test_far_more_slots_get_a_bound() -> None:
    run = execution([(0, 100), (0, 100), (100, 200), (100, 200)], (1, 0, 0, 0), cores=2)
    answer = predict(run, scenario(run, "cores=20x"), replans=False)
    assert answer.predicted_ms is None
    assert answer.interval_ms is None
    assert answer.bound_ms == (100, 200)
    assert answer.refused == (SlotsOutOfRange(20.0, 16),)
    assert predict(run, scenario(run, "cores=16x")).predicted_ms is not None


def test_far_fewer_slots_get_a_bound() -> None:
    run = execution([(0, 100)] * 20, (1, 0, 0, 0), cores=20)
    answer = predict(run, scenario(run, "cores=1"))
    assert answer.bound_ms == (100, None)
    assert answer.refused == (SlotsOutOfRange(0.05, 16),)


def test_more_senders_than_were_ever_seen_get_a_bound() -> None:
    run = execution([(0, 100), (100, 200)], (1, 0, 0, 0))
    local = replace(run, volumes=replace(run.volumes, local_read=np.array([10_000, 10_000])))
    answer = predict(local, scenario(local, "executors=2x"))
    assert answer.refused == (RemoteReadsUnknown(),)
    assert answer.bound_ms == (100, None)
    assert predict(run, scenario(run, "executors=2x")).predicted_ms is not None  # nothing is shuffled
    little = replace(run, volumes=replace(run.volumes, local_read=np.array([100, 100])))
    assert predict(little, scenario(little, "executors=2x")).predicted_ms is not None
    remote = replace(run, volumes=replace(run.volumes, remote_read=np.array([10, 10])))
    assert predict(remote, scenario(remote, "executors=2x")).predicted_ms is not None
    assert predict(remote, scenario(remote, "executors=9x")).refused == (SendersOutOfRange(9.0, 8),)


def test_device_of_unknown_use_gets_bounds() -> None:
    """Without samples, time of unknown cause may be the disk's or not: 1000 ms, 400 of them unknown, disk twice as
    fast."""
    run = execution([(0, 1000)], (0.5, 0.0, 0.1, 0.4))
    blind = replace(run, has_samples=False, evidence=replace(run.evidence, unseen_resources=0.4))
    answer = predict(blind, scenario(blind, "disk=2x"))
    assert answer.predicted_ms is None
    assert answer.bound_ms == pytest.approx((800, 1000), abs=5)
    assert predict(blind, scenario(blind, "cores=2x")).predicted_ms is not None
    little = replace(blind, evidence=replace(run.evidence, unseen_resources=0.1))
    assert predict(little, scenario(little, "disk=2x")).predicted_ms is not None


def test_unmeasured_unknown_time_may_be_cpu_time() -> None:
    """400 of 1000 ms are unknown and may be computing: with a CPU twice as fast 750 ms or 550, whatever bytes the log
    has."""
    run = execution([(0, 1000)], (0.5, 0.0, 0.1, 0.4))
    blind = replace(run, has_samples=False, evidence=replace(run.evidence, unseen_resources=0.4, missing_cpu_share=0.4))
    for read in (0, 10):  # whether the log has bytes
        reported = replace(blind, volumes=replace(blind.volumes, input=np.array([read])))
        answer = predict(reported, scenario(reported, "cpu_speed=2x"))
        assert answer.predicted_ms is None
        assert answer.bound_ms == pytest.approx((550, 750))
    measured = replace(blind, evidence=replace(blind.evidence, missing_cpu_share=0.0))
    assert predict(measured, scenario(measured, "cpu_speed=2x")).predicted_ms == pytest.approx(750)
