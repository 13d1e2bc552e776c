"""The lab of Flink: what people do without CrystalPerf, on hand-made flows; rows that are kept; sweeps that go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.query.execution.load import load
from crystalperf.query.execution.stream import Hop, Station, Stream
from crystalperf.query.frameworks.flink.framework import FLINK
from crystalperf.query.frameworks.flink.remarks import Helpers
from crystalperf.query.predictors.amdahl import covered_ms
from crystalperf.query.results.advice import MoreCpu
from crystalperf.query.results.assumptions import AddedSlots
from crystalperf.query.results.findings import ShortOfCpus
from crystalperf.query.results.recommendations import FollowAdvice
from lab.errors import LabError
from lab.flink import sweep
from lab.flink.baselines import BASELINES, Changed, Observation
from lab.flink.suite import configurations
from lab.flink.truth import Ages
from lab.scored import spread
from tests.refusals import refused

CPU = np.array([1.0, 0.0, 0.0, 0.0])


def station(name: str, busy: float, busiest: float, *, is_source: bool = False) -> Station:
    return Station(name, name, 2, 1000.0, busy, busiest, 0.0, CPU, is_source=is_source)


def stream() -> Stream:
    """1 000 records a second; the second vertex is busy for half its time, its busiest subtask for 0.8."""
    between = Hop("a", "b", 4, 1000.0, 100_000.0, 1000.0, 0.5, 0.0)
    return Stream((station("a", 0.1, 0.1, is_source=True), station("b", 0.5, 0.8)), (between,), (), 0.0, 60_000.0)


def reported(measure: str, changed: Changed, seen: Observation) -> Mapping[str, float | None]:
    return {name: baseline(seen, changed, measure) for name, baseline in BASELINES.items()}


def test_busy_time_rules_predict_the_rate_of_the_busiest_vertex() -> None:
    seen = Observation({"throughput_per_s": 1900.0}, stream())
    found = reported("throughput_per_s", Changed(slots=2.0), seen)
    assert found["DS2"] == pytest.approx(1000 * 2 / 0.5)
    assert found["autoscaler"] == pytest.approx(1000 * 2 / 0.8)
    assert found["linear"] == pytest.approx(3800.0)
    assert found["no change"] == 1900.0
    assert found["Amdahl"] is None
    slower = reported("throughput_per_s", Changed(cpu=0.5), seen)
    assert slower["DS2"] == pytest.approx(1000 * 0.5 / 0.5)


def test_only_work_per_record_scales_with_the_cpu() -> None:
    """2 slots at 0.1 and 0.5 busy are 0.2 and 1 ms a record; a buffer holds one record, so nobody has mates."""
    seen = Observation({"latency_ms": 101.2}, stream())
    found = reported("latency_ms", Changed(cpu=0.5), seen)
    assert found["Amdahl"] == pytest.approx(101.2 + 1.2)
    assert found["the paper's model"] == pytest.approx(101.2 + 1.2)
    assert found["linear"] == pytest.approx(202.4)
    assert found["DS2"] is None
    assert reported("latency_ms", Changed(rate=2.0), seen)["the paper's model"] == pytest.approx(101.2)


def test_only_time_with_subtasks_scales_in_a_bounded_job() -> None:
    seen = Observation({"makespan_ms": 100.0}, busy_ms=80.0)
    found = reported("makespan_ms", Changed(slots=2.0), seen)
    assert found["Amdahl"] == pytest.approx(60.0)
    assert found["linear"] == pytest.approx(50.0)
    assert found["the paper's model"] is None


def test_overlapping_running_time_counts_once() -> None:
    assert covered_ms(np.array([0.0, 5.0, 30.0]), np.array([10.0, 12.0, 40.0])) == 22.0
    assert covered_ms(np.array([]), np.array([])) == 0.0
    assert spread([0.1, 0.3]) == "20.0 ± 10.0"


def test_sweep_resumes_after_a_failed_run_and_stops_when_all_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []

    def run_once(_run: Any, _home: Path, _jobs: Path, folder: Path) -> dict[str, Any]:
        calls.append(folder)
        assert not folder.exists()  # what a failed run left is gone
        folder.mkdir(parents=True)
        (folder / "left").touch()
        if len(calls) == 1:
            raise LabError("no slots")
        row = {"workload": {"rate": 5, "name": "skew"}, "ages": {"mean_ms": 3.0, "per_s": 5.0}, "state": "FINISHED"}
        (folder / "run.json").write_text(json.dumps({**row, "job_ms": 1}))
        return {**row, "job_ms": 1}

    monkeypatch.setattr(sweep, "run_once", run_once)
    planned = sweep.plan(1, None, ["skew"])
    assert sweep.run_suite(tmp_path, tmp_path, tmp_path, 1, None, ["skew"], None) == 1
    assert sweep.run_suite(tmp_path, tmp_path, tmp_path, 1, None, ["skew"], None) == 0
    assert len(calls) == len(planned) + 1
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == len(planned)

    def fails(*_: Any) -> dict[str, Any]:
        raise LabError("no slots")

    monkeypatch.setattr(sweep, "run_once", fails)
    with refused(LabError, 3):
        sweep.run_suite(tmp_path, tmp_path, tmp_path / "other", 1, None, ["skew"], None)
    assert sweep.run_suite(tmp_path, tmp_path, tmp_path / "other", 1, None, ["skew"], 0.1) == len(planned)


def test_sweep_resumes_after_its_last_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that other machines made there are rows without folders."""
    (first, repetition), *others = sweep.plan(1, None, ["skew"])
    line = json.dumps({"number": first.number, "repetition": repetition, "latency_ms": 81.5})
    (tmp_path / "rows.jsonl").write_text(f"{line}\n")

    def run_once(_run: Any, _home: Path, _jobs: Path, folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True)
        row = {"workload": {"rate": 5, "name": "skew"}, "state": "FINISHED", "job_ms": 1}
        (folder / "run.json").write_text(json.dumps(row))
        return row

    monkeypatch.setattr(sweep, "run_once", run_once)
    assert sweep.run_suite(tmp_path, tmp_path, tmp_path, 1, None, ["skew"], 0.0) == len(others)
    assert sweep.run_suite(tmp_path, tmp_path, tmp_path, 1, None, ["skew"], None) == 0
    rows = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert line in rows
    assert len(rows) == len(others) + 1


def test_changed_settings_are_relative_to_the_base() -> None:
    one = next(each for each in configurations() if dict(each.changed) == {"rate": 12_000, "cpu": 0.35})
    assert sweep.changed_of(one) == Changed(rate=2.0, cpu=0.5)


def test_rate_is_sustained_if_sources_reached_it() -> None:
    row = {"workload": {"name": "ads", "rate": 3000, "seconds": 40, "records": 600_000}}
    third = Ages(mean_ms=90.0, median_ms=80.0, p95_ms=150.0, per_s=1000.0, seconds=20, records=40_000)
    assert sweep.measured(row, third) == {
        "latency_ms": 90.0,
        "throughput_per_s": None,
        "makespan_ms": None,
        "kept_up": True,
    }
    late = sweep.measured(row, replace(third, per_s=900.0))
    assert (late["kept_up"], late["latency_ms"]) == (False, None)
    full = {"workload": {**row["workload"], "rate": None, "records": 120_000}}
    assert sweep.measured(full, third)["throughput_per_s"] == pytest.approx(3000.0)
    assert sweep.measured(row, None)["kept_up"] is None


def test_threads_use_no_more_cpu_than_their_process(tmp_path: Path) -> None:
    """The recording's shares are of one processor after the quota came, of two before: only the sums show it."""
    folder = Path(__file__).parents[1] / "lab/recordings/sweeps/flink/011-ads-0"
    run = cp.profile([folder / "collected", folder / "recordings"], output=tmp_path / "run.duckdb")
    with run.reading() as connection:
        rows = connection.execute(
            """
            WITH process AS (SELECT worker_id, avg(cpu_cores) AS cores FROM loads
                             WHERE time_ms BETWEEN 20000 AND 40000 GROUP BY worker_id),
                 threads AS (SELECT worker_id, sum(cpu_ms * (least(end_ms, 40000) - greatest(start_ms, 20000))
                                                   / (end_ms - start_ms)) / 20000 AS cores
                             FROM thread_loads WHERE end_ms > 20000 AND start_ms < 40000 GROUP BY worker_id)
            SELECT threads.cores, process.cores FROM threads JOIN process USING (worker_id)
            """
        ).fetchall()
        (named,) = connection.execute(
            "SELECT count(DISTINCT task_id) = (SELECT count(*) FROM tasks) FROM thread_loads"
        ).fetchall()
        execution = load(connection, "all")
        assert execution.planner.stream is not None
        stream = execution.planner.stream(connection, execution)
        said = FLINK.advisor.remarks(connection, execution)
    assert len(rows) == 2
    assert all(0.75 * whole < threads < 1.05 * whole for threads, whole in rows)
    assert named == (True,)
    assert stream is not None
    # Compilers, metrics and the virtual machine's own threads; by Java's threads alone it would be a third.
    assert all(0.5 * each.cpu_cores < each.fixed_cores < 0.7 * each.cpu_cores for each in stream.places)
    assert isinstance(said[0], Helpers)
    assert (said[0].is_cpu_time, said[0].helpers[0].does) == (True, "compiling")


def test_cpu_time_of_subtasks_is_their_threads(tmp_path: Path) -> None:
    """Flink's archive has none; what their threads were measured to use is less than what their processes did."""
    folder = Path(__file__).parents[1] / "lab/recordings/sweeps/flink/084-join-0"
    run = cp.profile([folder / "collected", folder / "recordings"], output=tmp_path / "run.duckdb")
    with run.reading() as connection:
        (reported,) = connection.execute(
            "SELECT sum(total_cpu_ms), count(*) - count(total_cpu_ms) FROM tasks"
        ).fetchall()
        (threads,) = connection.execute("SELECT sum(cpu_ms) FROM thread_loads WHERE task_id IS NOT NULL").fetchall()
        (process,) = connection.execute("SELECT sum(cpu_cores) * 1000 FROM loads").fetchall()  # one a second
        (over,) = connection.execute("SELECT count(*) FROM tasks WHERE total_cpu_ms > finish_ms - launch_ms").fetchall()
    assert reported == (pytest.approx(threads[0], rel=0.1), 0)
    assert reported[0] < process[0]
    assert over == (0,)
    # Its TaskManagers are at the limit of their CPU, and more slots bring them none.
    more = run.predict(["slots=2x"])
    assert more.predicted_ms == pytest.approx(more.replayed_ms, rel=0.01)
    assert AddedSlots(with_cores=False) in more.assumptions
    first = run.verdict().recommendations[0]
    assert isinstance(first, FollowAdvice)
    assert isinstance(first.finding, ShortOfCpus)
    assert isinstance(first.finding.advice, MoreCpu)
    assert first.finding.advice.larger_limit


@pytest.mark.later  # profiles and predicts the whole sweep: 13 s
def test_stored_runs_of_the_sweep_are_scored_again() -> None:
    table = sweep.score(Path(__file__).parents[1] / "lab/recordings/sweeps/flink", "even")
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    (ours,) = [row for row in rows if row[1:3] == ["latency_ms", "CrystalPerf"]]
    (nothing,) = [row for row in rows if row[1:3] == ["latency_ms", "no change"]]
    assert float(ours[4].split()[0]) < float(nothing[4].split()[0])
