"""Vectors against the machine's truth: differences, their averages, and a real recorded run with a made truth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import crystalperf as cp
from lab.runs.suites import find_suite
from lab.runs.sweep import load_rows, write_rows
from lab.score.vectors import (
    Off,
    Truth,
    average,
    code_vectors,
    compare,
    split_vectors,
    truth_of,
    vector_table,
)


def off(task_ms: float, error: list[float], residual: float = 0.0) -> Off:
    return Off(task_ms, np.array(error), residual)


def test_stage_without_a_breakdown_is_all_unknown() -> None:
    truth = {
        "stage:1.0": Truth(10.0, np.array([0.5, 0.2, 0.2, 0.1]), 0.1),
        "stage:2.0": Truth(5.0, np.array([1, 0, 0, 0]), 0.0),
    }
    first, second = compare({"stage:1.0": np.array([0.6, 0.1, 0.2, 0.1])}, truth)
    assert first.error.tolist() == pytest.approx([0.1, -0.1, 0, 0])
    assert second.error.tolist() == [-1, 0, 0, 1]


def test_share_that_ground_truth_left_open_is_not_an_error() -> None:
    """Of 10 points too much cpu, 8 may be what was seen asleep for no known reason; too little cpu is wrong."""
    assert off(1.0, [0.1, 0.0, 0.0, -0.1], 0.08).beyond.tolist() == pytest.approx([0.02, 0, 0, 0.02])
    assert off(1.0, [-0.1, 0.0, 0.0, 0.1], 0.08).beyond.tolist() == pytest.approx([0.1, 0, 0, 0.1])


def test_stages_weigh_as_much_as_their_task_time() -> None:
    rows = [off(30.0, [0.1, 0, 0, -0.1]), off(10.0, [-0.3, 0, 0, 0.3])]
    sizes = [abs(each.error) for each in rows]
    assert average(rows, sizes).tolist() == pytest.approx([0.15, 0, 0, 0.15])
    assert average(rows, sizes, weighted=False).tolist() == pytest.approx([0.2, 0, 0, 0.2])
    assert average(rows, (each.error for each in rows)).tolist() == pytest.approx([0, 0, 0, 0])


def stage_row(stage: int, attempt: int, shares: list[float]) -> dict[str, object]:
    names = ("cpu", "disk", "net", "other")
    named = dict(zip(names, shares, strict=True))
    return {"stage_id": stage, "stage_attempt": attempt, "task_ms": 1000.0, "residual_ms": 50.0, **named}


def test_run_without_stored_samples_uses_the_ground_truth_of_its_row(tmp_path: Path) -> None:
    row = {"stages": json.dumps([stage_row(3, 1, [0.5, 0.1, 0.2, 0.2])])}
    truth = truth_of(tmp_path, row, tmp_path)
    assert truth["stage:3.1"].shares.tolist() == [0.5, 0.1, 0.2, 0.2]
    assert truth["stage:3.1"].residual == pytest.approx(0.05)


def test_a_suite_without_base_runs_has_no_table(tmp_path: Path) -> None:
    assert vector_table(find_suite("q6"), tmp_path, tmp_path / "kept") == ""


@pytest.fixture(scope="module")
def recorded_base(demo: Path, shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite's folder with the demo's run as its base, the profile's own vectors being its truth; the profile."""
    tmp_path = tmp_path_factory.mktemp("suites")
    folder = tmp_path / "q9" / "base-0-00-jfr20"
    folder.mkdir(parents=True)
    (log,) = demo.glob("eventlog*")
    (folder / log.name).symlink_to(log)
    recordings = [path.name for path in sorted(demo.glob("executor-*.jfr.gz"))]
    for name in recordings:
        (folder / name).symlink_to(demo / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(shared_home))
        run = cp.profile([log, *(demo / name for name in recordings)], output=tmp_path / "run.duckdb").path
    recorded = json.loads((demo / "run.json").read_text())
    stages = []
    for key, share in split_vectors(run).items():
        stage, attempt = key.removeprefix("stage:").split(".")
        stages.append(stage_row(int(stage), int(attempt), share.tolist()))
    changes = {"event_logs": [log.name], "recordings": recordings, "truth": {"stages": stages}}
    cluster = {"disk_bytes_per_s": None, "storage": "local"} | recorded["configuration"]
    (folder / "run.json").write_text(json.dumps(recorded | changes | {"configuration": cluster}))
    write_rows(load_rows(tmp_path, find_suite("q9")), tmp_path / "q9" / "rows.parquet")
    return run


def test_a_recorded_run_has_a_row_for_each_source_of_its_vectors(recorded_base: Path) -> None:
    for vectors in (split_vectors(recorded_base), code_vectors(recorded_base)):
        assert all(each.sum() == pytest.approx(1) for each in vectors.values())
    table = vector_table(find_suite("q9"), recorded_base.parent, recorded_base.parent / "kept").split("\n")
    assert [line.split("|")[2].strip() for line in table[2:]] == ["hybrid", "metrics only", "code only"]
    # The made truth is the profile's own, so that it is off by nothing and the others by something.
    assert "| 0.0 / 0.0 / 0.0 / 0.0 |" in table[2]
    assert "| 0.0 / 0.0 / 0.0 / 0.0 |" not in table[3] + table[4]
