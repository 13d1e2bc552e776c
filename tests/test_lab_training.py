"""The sweep of trainings: its order, its roles, and what predictions are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

import crystalperf as cp
from lab.runs.training import SWEPT, base_of, planned
from lab.score import training


def test_bases_come_before_each_six_and_no_run_twice() -> None:
    runs = planned(2)
    names = [each.name for each in runs]
    assert names == [each.name for each in planned(2)]
    assert len(set(names)) == len(names)
    bases = {each.name for each in SWEPT if base_of(each) is each}
    assert len(bases) == 2
    since = 0
    for name in names:
        since = 0 if name.rpartition(".")[0] in bases else since + 1
        assert since <= 6
    kept = [name.rpartition(".")[0] for name in names]
    assert all(kept.count(each.name) == 2 for each in SWEPT if each.name not in bases)


def test_a_question_names_what_is_other_than_in_the_base() -> None:
    base = next(each for each in SWEPT if base_of(each) is each)
    assert training.asks(base, base) == []
    other = next(each for each in SWEPT if each.name == "cnn-r3-c0.2-n50")
    assert training.asks(other, base_of(other)) == ["cpu_speed=0.333333x", "network=50Mbps", "ranks=1.5x"]
    for each in SWEPT:
        assert base_of(each).asked == each.asked


def test_a_folder_without_a_sweep_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert training.main([str(tmp_path)]) == 1
    complaint = capsys.readouterr().err
    assert "lab.runs.training sweep" in complaint
    assert complaint.count("\n") == 1


KEPT = Path(__file__).parents[1] / "lab/recordings/sweeps/pytorch"


def test_kept_runs_are_scored_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert training.main([str(KEPT), "--only", "even"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (ours,) = [each for each in lines if each.startswith(f"| {training.OURS} | even ")]
    mean = float(ours.split("|")[4].split("±")[0])
    (ring,) = [each for each in lines if each.startswith("| computing, then a ring | even ")]
    assert mean < float(ring.split("|")[4].split("±")[0])


def test_a_thread_that_waits_for_a_collective_runs_no_python() -> None:
    """A rank went on some ms before the collective's own thread, short of CPU, had stamped its end."""
    run = cp.profile(KEPT / "cnn-r2-c0.6-n200.0/traces")
    python = (
        "SELECT max(finish_ms - launch_ms) FROM units JOIN training_operations USING (unit_id) WHERE kind = 'python'"
    )
    (longest_ms,) = run.sql(python).rows[0]
    assert longest_ms < 10
    assert run.debug().resource_ms["net"] > 0.7 * run.debug().runtime_ms
