"""What-ifs about streaming queries of Spark: the time of a batch, the latency of a row, the highest rate."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.indexes.errors import SettingError
from crystalperf.query.execution.micro_batches import BatchCost, MicroBatches
from crystalperf.query.frameworks.spark.remarks import StreamingQuery, StreamState
from crystalperf.query.ledger.facts import facts_of
from crystalperf.query.results.answers import BatchPrediction, NextStep, Prediction
from crystalperf.query.run import Run
from tests.reading import rows
from tests.stream_events import FIRST_MS, FIXED_MS, QUERY, ROW_MS, STATE_MS, STATE_ROW_MS, batch_ms, run, written

Answer = Callable[..., tuple[int, str, str]]

VARIED = [10_000 + 5_000 * (-1) ** number + 1000 * (number % 3 - 1) for number in range(40)]
"""Rows of batches, 4 000 to 16 000; the first 20 s are warm-up."""


def profiled(folder: Path, counts: list[int], **changes: Any) -> Run:
    return cp.profile(written(folder, run(counts, **changes)), output=folder / "run.duckdb")


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return profiled(tmp_path_factory.mktemp("varied"), VARIED)


def batch_of(found: Prediction) -> BatchPrediction:
    assert found.stream is not None
    assert found.stream.batch is not None
    return found.stream.batch


def kinds(found: Prediction) -> list[str]:
    return [each.kind for each in found.refused]


def batches(counts: list[float], noise: float = 0.0, interval_ms: float = 1000.0) -> MicroBatches:
    count = np.array(counts, dtype=np.float64)
    rng = np.random.default_rng(7)
    time_ms = FIXED_MS + ROW_MS * count + noise * rng.standard_normal(len(count))
    start_ms = np.arange(len(count)) * interval_ms
    return MicroBatches("q", start_ms, count, time_ms, {"run": float(time_ms.mean()) - 50}, "run")


# The model -----------------------------------------------------------------------------------------------------------


def test_batches_of_different_sizes_show_the_time_of_a_row() -> None:
    found = batches([4e3, 8e3, 12e3, 16e3, 10e3]).cost
    assert found.row_ms == pytest.approx(ROW_MS)
    assert found.fixed_ms == pytest.approx(FIXED_MS)
    low, high = found.row_range
    assert low < ROW_MS < high < 1.2 * low


def test_noise_widens_the_range_of_the_time_of_a_row() -> None:
    counts = [4e3, 8e3, 12e3, 16e3, 10e3] * 4
    exact, noisy = batches(counts).cost, batches(counts, noise=60.0).cost
    assert noisy.row_range[1] - noisy.row_range[0] > exact.row_range[1] - exact.row_range[0]
    assert noisy.row_range[0] <= ROW_MS <= noisy.row_range[1]


def test_row_takes_some_time_even_if_larger_batches_are_faster_at_random() -> None:
    counts = [4e3, 8e3, 12e3, 16e3, 10e3] * 4
    found = replace(batches(counts), time_ms=1000 - 0.01 * np.array(counts)).cost
    assert found.row_range[0] == 0 < found.row_ms < found.row_range[1]
    assert found.fixed_ms < found.time_ms


@pytest.mark.parametrize("counts", [[1e4] * 20, [1e4, 10_200, 9_900, 1e4, 1e4], [5e3, 2e4, 1e4, 8e3]])
def test_alike_or_few_batches_leave_the_time_of_a_row_open(counts: list[float]) -> None:
    found = batches(counts)
    assert found.alike
    low, high = found.cost.row_range
    assert low == 0
    assert high == pytest.approx((found.time_ms.mean() - 50) / found.rows.mean())
    rate, is_lower_bound = found.highest_rate(found.cost)
    assert is_lower_bound
    assert rate == pytest.approx(1e3 / high)


def test_the_interval_is_that_of_the_trigger_until_a_batch_takes_longer() -> None:
    cost = BatchCost(rows=1000, time_ms=400, row_ms=0.2, row_range=(0.2, 0.2), mean_sd=0.0)
    assert cost.at_rate(1.0, 1000.0) == (1000.0, 400.0)
    assert cost.at_rate(4.0, 1000.0) == pytest.approx((1000.0, 1000.0))
    assert cost.at_rate(4.5, 1000.0) == pytest.approx((2000.0, 2000.0))  # 200 + 0.2 · 4.5 · 2000
    assert cost.at_rate(0.5, 0.0) == pytest.approx((200 / 0.9, 200 / 0.9))
    assert cost.at_rate(5.0, 1000.0) is None


def test_batches_that_follow_each_other_have_no_interval_of_their_own() -> None:
    busy = batches([4e3, 8e3, 12e3, 16e3, 10e3])
    assert busy.least_interval_ms == 1000
    full = replace(busy, start_ms=np.concatenate([[0.0], np.cumsum(busy.time_ms)[:-1]]))
    assert full.busy_share == pytest.approx(1.0)
    assert full.least_interval_ms == 0.0


def test_the_rows_of_a_batch_arrived_before_it_began() -> None:
    assert batches([9e9, 1e3, 3e3]).rate_per_s == pytest.approx(2000.0)
    assert math.isnan(batches([1e3]).rate_per_s)


# Runs ----------------------------------------------------------------------------------------------------------------


def test_the_recorded_rate_predicts_the_recorded_batch(varied: Run) -> None:
    found = varied.predict("rate=1x")
    batch, steady = batch_of(found), VARIED[20:]
    assert batch.query == QUERY
    assert batch.recorded_rows == pytest.approx(np.mean(steady))
    assert batch.recorded_ms == pytest.approx(batch_ms(float(np.mean(steady))))
    assert batch.time_ms == pytest.approx(batch.recorded_ms, rel=0.02)  # the first batch is not part of the rate
    assert batch.interval_ms == 1000
    assert found.measure == "latency"
    assert found.runtime_ms == pytest.approx(500 + batch.recorded_ms)
    assert found.stream is not None
    assert found.stream.max_per_s == pytest.approx(1e3 / ROW_MS, rel=0.01)
    assert not found.stream.is_lower_bound


@pytest.mark.parametrize(
    ("settings", "expected_ms", "interval_ms"),
    [
        (["rate=20000"], FIXED_MS + 20_000 * ROW_MS, 1000),
        (["rate=5000"], FIXED_MS + 5_000 * ROW_MS, 1000),
        (["rate=10000", "trigger=5s"], FIXED_MS + 50_000 * ROW_MS, 5000),
        (["rate=10000", "trigger=2500ms"], FIXED_MS + 25_000 * ROW_MS, 2500),
        (["rate=10000", "partitions=8"], FIXED_MS + 2 * STATE_MS + 10_000 * ROW_MS, 1000),
        (["rate=10000", "partitions=2"], FIXED_MS - STATE_MS + 10_000 * ROW_MS, 1000),
        (["rate=10000", "cores=2x"], FIXED_MS - STATE_MS + 10_000 * (ROW_MS - STATE_ROW_MS / 4), 1000),
    ],
)
def test_rates_triggers_partitions_and_slots(
    varied: Run, settings: list[str], expected_ms: float, interval_ms: float
) -> None:
    found = varied.predict(settings)
    batch = batch_of(found)
    assert batch.time_ms == pytest.approx(expected_ms, rel=0.02)
    assert batch.interval_ms == interval_ms
    assert batch.keeps_pace
    assert found.predicted_ms == pytest.approx(interval_ms / 2 + expected_ms, rel=0.02)
    assert (found.interval_ms is None) == ("cores=2x" in settings)
    if found.interval_ms is not None:
        assert found.interval_ms[0] < found.predicted_ms < found.interval_ms[1]


def test_the_latency_is_the_sum_of_its_parts(varied: Run) -> None:
    found = varied.predict("rate=20000")
    parts = {each.id: (each.recorded_ms, each.predicted_ms) for each in found.stages}
    assert parts["walCommit"] == (25, 25)
    assert parts["addBatch"][0] == pytest.approx(batch_of(found).recorded_ms - 70)
    assert sum(each for each, _ in parts.values()) == pytest.approx(found.runtime_ms)
    assert sum(each or 0.0 for _, each in parts.values()) == pytest.approx(found.predicted_ms)


def test_a_rate_beyond_the_highest_is_refused_with_that_rate(varied: Run) -> None:
    found = varied.predict("rate=50000")
    assert kinds(found) == ["rate-not-sustained"]
    assert found.is_answered
    assert found.stream is not None
    assert found.stream.max_per_s == pytest.approx(1e3 / ROW_MS, rel=0.01)
    assert kinds(varied.predict("rate=32000")) == ["rate-near-limit"]


def test_a_batch_that_misses_its_trigger_is_followed_at_once(varied: Run) -> None:
    batch = batch_of(varied.predict(["rate=20000", "trigger=300ms"]))
    assert batch.keeps_pace is False
    assert batch.time_ms == pytest.approx(FIXED_MS / (1 - 20 * ROW_MS), rel=0.03)
    assert batch.interval_ms == batch.time_ms


def test_alike_batches_give_bounds_of_the_latency(tmp_path: Path) -> None:
    found = profiled(tmp_path, [10_000] * 40).predict("rate=2x")
    assert kinds(found) == ["batches-alike"]
    assert found.bound_ms is not None
    low, high = found.bound_ms
    assert low == pytest.approx(500 + batch_ms(10_000))
    assert high == pytest.approx(500 + 2 * batch_ms(10_000) - 70)
    assert found.stream is not None
    assert found.stream.is_lower_bound


def test_the_recorded_rate_needs_no_time_of_a_row(tmp_path: Path) -> None:
    found = profiled(tmp_path, [10_000] * 40).predict("rate=1x")
    assert found.predicted_ms == pytest.approx(500 + batch_ms(10_000))


def test_too_few_batches_are_refused(tmp_path: Path) -> None:
    found = profiled(tmp_path, [10_000, 5_000, 8_000, 1_000])
    assert kinds(found.predict("rate=2x")) == ["too-few-batches"]


@pytest.mark.parametrize("setting", ["memory=2x", "input=2x", "skew=none", "cpu_speed=2x"])
def test_settings_that_are_not_modelled_are_refused(varied: Run, setting: str) -> None:
    assert kinds(varied.predict(["rate=1x", setting])) == ["not-modelled-for-streams"]


def test_partitions_are_unknown_if_batches_run_different_stages(tmp_path: Path) -> None:
    events = run(VARIED)
    kept = [each for each in events if each.get("Stage ID", 0) % 8 != 1]  # the second stage of every fourth batch
    found = cp.profile(written(tmp_path, kept), output=tmp_path / "run.duckdb")
    assert kinds(found.predict(["rate=1x", "partitions=8"])) == ["batch-stages-differ"]
    assert not kinds(found.predict("rate=2x"))


def test_other_settings_still_predict_the_recorded_work(varied: Run) -> None:
    found = varied.predict("cores=2x")
    assert found.stream is None
    assert found.measure == "makespan"


def test_a_run_without_a_stream_has_no_rate(tmp_path: Path) -> None:
    events = [each for each in run(VARIED) if "progress" not in each]
    found = cp.profile(written(tmp_path, events), output=tmp_path / "run.duckdb")
    with pytest.raises(SettingError, match="rate"):
        found.predict("rate=2x")


def test_reruns_do_not_correct_batches(varied: Run, tmp_path: Path) -> None:
    other = profiled(tmp_path, VARIED[:-1])
    with pytest.raises(SettingError, match="batches"):
        varied.predict("rate=2x", reruns=[cp.Other("other", other)])


def test_the_command_line_shows_batch_latency_and_highest_rate(crystalperf: Answer, tmp_path: Path) -> None:
    log = written(tmp_path, run(VARIED))
    code, out, _ = crystalperf("predict", log, "--set", "rate=20000")
    assert code == 0
    assert "20 000 rows a batch" in out
    assert f"{QUERY}: 33 " in out
    code, out, _ = crystalperf("predict", log, "--set", "rate=1x,2x,9x", "--json")
    assert code == 0
    assert [each["predicted_ms"] is None for each in json.loads(out)["points"]] == [False, False, True]


def test_debug_reports_the_highest_rate(varied: Run) -> None:
    (found,) = [each for each in varied.debug().measurements if isinstance(each, StreamingQuery)]
    assert found.max_per_s == pytest.approx(1e3 / ROW_MS, rel=0.01)
    assert not found.is_lower_bound


def test_the_next_question_about_a_stream_is_its_rate(varied: Run) -> None:
    assert varied.verdict().next == NextStep("predict", {"setting": "rate=1x,2x,4x"})


def test_a_stream_has_no_end_that_the_ledger_could_compare(varied: Run) -> None:
    assert facts_of(varied) is None


def test_debug_reports_the_state_and_its_commits(varied: Run) -> None:
    (found,) = [each for each in varied.debug().measurements if isinstance(each, StreamState)]
    assert (found.query, found.operator, found.partitions, found.others) == (QUERY, "stateStoreSave", 4, 0)
    assert (found.rows_first, found.rows_last, found.size_bytes) == (0, 7 * (len(VARIED) - 1), 512)
    assert (found.updates_ms, found.commit_ms, found.in_rocksdb) == (10, 15, True)
    assert found.batch_ms == pytest.approx(batch_ms(float(np.mean(VARIED))))
    assert found.fewer_partitions is None  # 30 of 480 ms


def test_debug_reports_what_fewer_partitions_would_save(tmp_path: Path) -> None:
    counts = [each // 10 for each in VARIED]
    (found,) = [each for each in profiled(tmp_path, counts).debug().measurements if isinstance(each, StreamState)]
    assert found.fewer_partitions == 2
    assert found.fewer_batch_ms == pytest.approx(batch_ms(float(np.mean(counts[20:]))) - STATE_MS, rel=0.03)


# Tables --------------------------------------------------------------------------------------------------------------


def test_sources_and_states_are_rows_of_each_trigger(varied: Run) -> None:
    found = rows(
        varied,
        "SELECT query_id, run_id, start_ms, source, description, input_rows FROM spark_stream_sources"
        " WHERE batch_id = 3",
    )
    assert found == [("q-1", "r-1", FIRST_MS + 3000, 0, "RateStreamV2", VARIED[3])]
    found = rows(
        varied,
        """
        SELECT operator, name, partitions, rows, bytes, updated_rows, removed_rows, late_rows, updates_ms, removals_ms,
            commit_ms, rocksdb_put_ms, rocksdb_flush_ms, rocksdb_copied_bytes, rocksdb_stall_ms
        FROM spark_stream_states WHERE batch_id = 3
        """,
    )
    assert found == [(0, "stateStoreSave", 4, 21, 512, VARIED[3], 1, 3, 40, 2, 60, 9, 11, 4096, None)]


def test_the_view_of_streams_has_rates_and_phases(varied: Run) -> None:
    found = varied.sql(
        "SELECT name, batches, rows_per_s, batch_ms, wal_commit_ms, state_commit_ms, state_rows FROM spark_streams"
    )
    (row,) = found.rows
    assert row[:2] == (QUERY, len(VARIED)) or list(row[:2]) == [QUERY, len(VARIED)]
    assert row[2] == pytest.approx(np.mean(VARIED[1:]))
    assert row[3] == pytest.approx(batch_ms(float(np.mean(VARIED))))
    assert list(row[4:]) == [25, 60, 7 * (len(VARIED) - 1)]
