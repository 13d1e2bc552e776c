"""The lower bound that a log proves for an unstated network bandwidth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crystalperf as cp
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.execution.scenario import Scenario, Value
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.assumptions import TransferTimeAtLeast
from crystalperf.query.simulate.list_schedule import has_compiled
from crystalperf.query.simulate.network_speed import carried_bps, most_within
from crystalperf.query.simulate.transfers import PAYLOAD
from crystalperf.query.trace import arrays

DEMO = Path(__file__).parent.parent / "lab" / "recordings" / "demo-q9"
CABLE_BPS = 10e6 / 8
"""The demo's cables, as the lab shaped them, bytes a second."""

TASKS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1000), st.integers(1, 400), st.integers(1, 10**6)),
    min_size=1,
    max_size=8,
)


def within_by_hand(tasks: list[tuple[int, int, int, int]]) -> float:
    """The greatest rate over every interval from one task's start to one task's end."""
    best = 0.0
    for group, begin, _, _ in tasks:
        for _, start, length, _ in tasks:
            end = start + length
            moved = sum(each[3] for each in tasks if each[0] == group and begin <= each[1] and each[1] + each[2] <= end)
            best = max(best, moved / (end - begin)) if end > begin else best
    return best


@given(TASKS)
def test_proven_rate_is_at_least_the_rate_of_a_single_task(tasks: list[tuple[int, int, int, int]]) -> None:
    group, start, length, amount = (np.array(each) for each in zip(*tasks, strict=True))
    found = most_within(group, start.astype(float), (start + length).astype(float), amount.astype(float))
    assert found <= within_by_hand(tasks) * (1 + 1e-9)
    assert found >= (amount / length).max() * (1 - 1e-9)


@pytest.mark.skipif(not has_compiled(), reason="the loop was not compiled: there is no C compiler")
@given(st.integers(1, 300), st.integers(0, 2**32))
def test_compiled_highest_rate_is_the_same_to_the_last_bit(count: int, seed: int) -> None:
    number = np.random.default_rng(seed)
    start = np.sort(np.round(number.random(count) * 500, int(number.integers(0, 3))))
    end, amount = start + np.round(number.random(count) * 40, 1) + 0.1, number.random(count)
    group = number.integers(0, 3, count)
    found = {most_within(group, start, end, amount, compiles=each) for each in (True, False)}
    assert len(found) == 1


def test_tasks_that_are_not_in_order_prove_the_same_rate() -> None:
    start, end, amount = np.array([0.0, 0.0, 100.0]), np.array([100.0, 80.0, 200.0]), np.array([10.0, 20.0, 5.0])
    back = most_within(np.zeros(3, np.int64), start[::-1], end[::-1], amount[::-1])
    assert back == most_within(np.zeros(3, np.int64), start, end, amount)


def test_concurrent_tasks_prove_more_than_one_of_them() -> None:
    times = np.array([0.0, 0.0, 100.0]), np.array([100.0, 100.0, 200.0])
    assert most_within(np.zeros(3, np.int64), *times, np.array([10.0, 20.0, 5.0])) == pytest.approx(0.3)
    assert most_within(np.array([0, 1, 0]), *times, np.array([10.0, 20.0, 5.0])) == pytest.approx(0.2)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Execution:
    run = cp.profile([DEMO], output=tmp_path_factory.mktemp("links") / "demo.duckdb").path
    with duckdb.connect(str(run), read_only=True) as connection:
        return load(connection, "whole")


def faster(run: Execution, times: float, stated_bps: float | None = None) -> cp.Prediction:
    recorded = {**run.recorded, "network": stated_bps}
    scenario = Scenario({"network": Value("network", f"{times}x", ratio=times)}, recorded, {"network": times})
    return predict(run, scenario)


@pytest.mark.later
def test_cable_that_is_the_bottleneck_is_known_within_a_fifth(demo: Execution) -> None:
    found = carried_bps(demo)
    assert 0.8 * CABLE_BPS < found <= CABLE_BPS


@pytest.mark.parametrize("times", [10.0, 4.0, 0.5])
def test_unstated_and_stated_cables_give_nearly_the_same(demo: Execution, times: float) -> None:
    guessed, stated = faster(demo, times), faster(demo, times, CABLE_BPS)
    assert guessed.predicted_ms == pytest.approx(stated.predicted_ms, rel=0.05)
    assert guessed.interval_ms is not None
    low, high = guessed.interval_ms
    assert low < demo.runtime_ms < high  # whatever the network was, something else may be the bottleneck
    (carried,) = (each for each in guessed.assumptions if isinstance(each, TransferTimeAtLeast))
    assert 8 * carried.carried_bps == pytest.approx(8.5e6, abs=0.5e6)


def test_run_without_fetches_proves_nothing_about_its_network(demo: Execution) -> None:
    none = np.zeros_like(demo.volumes.remote_read)
    assert carried_bps(replace(demo, volumes=replace(demo.volumes, remote_read=none, far=none))) is None


def test_bytes_cross_at_the_payload_rate(demo: Execution) -> None:
    first = np.arange(len(demo.tasks)) == 0
    alone = np.where(first, 10**6, 0)
    run = replace(demo, volumes=replace(demo.volumes, remote_read=alone, far=np.zeros_like(alone)))
    seconds = float(demo.tasks.finish_ms[0] - demo.tasks.launch_ms[0]) / 1e3
    assert carried_bps(run) == pytest.approx(1e6 / seconds / PAYLOAD["net"])


@pytest.mark.parametrize("setting", ["cores", "network"])
def test_long_columns_in_blocks_have_the_same_prediction(
    demo: Execution, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario({setting: Value(setting, "2x", ratio=2.0)}, demo.recorded, {setting: 2.0})
    whole = predict(demo, scenario)
    monkeypatch.setattr(arrays, "AT_ONCE", 7)
    assert len(arrays.blocks(len(demo.tasks))) > 1
    parts = predict(demo, scenario)
    assert (parts.predicted_ms, parts.interval_ms, parts.resource_ms) == (
        whole.predicted_ms,
        whole.interval_ms,
        whole.resource_ms,
    )
