"""The sweep of trainings: its order, its roles, and what predictions are asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import crystalperf as cp
from lab.runs.training import SWEPT, base_of, planned, role_of, run_all
from lab.score import training
from tests.refusals import is_one_line

KEPT = Path(__file__).parents[1] / "lab/recordings/sweeps/pytorch"


@pytest.mark.parametrize(("framework", "models"), [("pytorch", 4), ("tensorflow", 1)])
def test_plan_has_bases_before_each_six_runs_and_no_duplicates(framework: str, models: int) -> None:
    swept = [each for each in SWEPT if each.framework == framework]
    runs = planned(2, framework)
    names = [each.name for each in runs]
    assert names == [each.name for each in planned(2, framework)]
    assert len(set(names)) == len(names)
    bases = {each.name for each in swept if role_of(each) == "base"}
    assert len(bases) == models
    since = 0
    for name in names:
        since = 0 if name.rpartition(".")[0] in bases else since + 1
        assert since <= 6
    kept = [name.rpartition(".")[0] for name in names]
    assert all(kept.count(each.name) == 2 for each in swept if each.name not in bases)
    roles = [role_of(each) for each in swept]
    assert min(roles.count("even"), roles.count("odd")) >= 8


def test_a_sweep_goes_on_from_rows_whose_folders_have_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (KEPT / "rows.jsonl").read_text().splitlines()[:-1]
    kept = "".join(f"{line}\n" for line in lines)
    (tmp_path / "rows.jsonl").write_text(kept)
    names = [json.loads(line)["name"] for line in lines]
    assert run_all([each for each in planned(1) if each.name in names], "no python", tmp_path, None) == 0
    assert capsys.readouterr().err == "0 runs are missing\n"
    missing = [each for each in planned(1) if each.name not in names]
    assert run_all(missing, "no python", tmp_path, 0.0) == len(missing) > 0
    assert (tmp_path / "rows.jsonl").read_text() == kept


def test_question_has_the_settings_that_differ_from_the_base() -> None:
    base = next(each for each in SWEPT if base_of(each) is each)
    assert training.asks(base, base) == []
    other = next(each for each in SWEPT if each.name == "cnn-r3-c0.2-n50")
    assert training.asks(other, base_of(other)) == ["cpu_speed=0.333333x", "network=50Mbps", "ranks=1.5x"]
    for each in SWEPT:
        job, of_base = ({**one.asked, "lasting_s": 0.0, "batch": 16} for one in (each, base_of(each)))
        assert job == of_base  # but for how long it goes on, and its batch
        assert base_of(each).framework == each.framework


def test_a_folder_without_a_sweep_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert training.main([str(tmp_path)]) == 1
    is_one_line(capsys.readouterr().err, "lab.runs.training sweep")


@pytest.mark.later  # 3 s
def test_kept_runs_are_scored_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert training.main([str(KEPT), "--only", "even"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (ours,) = [each for each in lines if each.startswith(f"| {training.OURS} | even ")]
    mean = float(ours.split("|")[4].split("±")[0])
    (ring,) = [each for each in lines if each.startswith("| computing, then sending (Paleo's terms) | even ")]
    assert mean < float(ring.split("|")[4].split("±")[0])


def test_a_thread_that_waits_for_a_collective_runs_no_python() -> None:
    """A rank went on some ms before the collective's own thread, short of CPU, had stamped its end."""
    run = cp.profile(KEPT / "cnn-r2-c0.6-n200.0/traces")
    python = (
        "SELECT max(finish_ms - launch_ms) FROM tasks JOIN training_operations USING (task_id) WHERE kind = 'python'"
    )
    (longest_ms,) = run.sql(python).rows[0]
    assert longest_ms < 10
    assert run.debug().resource_ms["net"] > 0.7 * run.debug().runtime_ms
