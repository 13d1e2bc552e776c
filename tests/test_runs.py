"""Runs in the cache: listing, `last`, similar names, removal; and scopes by the ids that answers print."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.cli.main import run

LOG = Path(__file__).parent.parent / "lab" / "recordings" / "first-hour" / "builder-settings.zstd"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with two runs, `second-job` the newest."""
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path))
    folder = tmp_path / "runs"
    folder.mkdir(parents=True)
    cp.profile([LOG], output=folder / "first-job.duckdb")
    (folder / "second-job.duckdb").write_bytes((folder / "first-job.duckdb").read_bytes())
    os.utime(folder / "first-job.duckdb", (1, 1))
    return folder


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(["runs", "--json", *arguments]) == 0
    return [each["run"] for each in json.loads(capsys.readouterr().out)["runs"]]


def test_lists_the_newest_first_and_filters(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys) == ["second-job", "first-job"]
    assert listed(capsys, "first") == ["first-job"]
    assert listed(capsys, "nothing") == []
    (kept / "damaged.duckdb").write_text("no run")
    assert set(listed(capsys)) == {"damaged", "second-job", "first-job"}


def test_last_is_the_newest_run(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "last", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == str(kept / "second-job.duckdb")


def test_similar_names_are_proposed_and_nothing_is_removed(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["debug", "frist-job"]) == 1
    assert "did you mean first-job" in capsys.readouterr().err
    assert run(["runs", "--rm", "frist-job"]) == 1
    assert sorted(each.stem for each in kept.iterdir()) == ["first-job", "second-job"]


def test_removes_only_runs_of_the_cache(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.duckdb"
    other.write_bytes(b"x")
    assert run(["runs", "--rm", str(other)]) == 1
    assert other.exists()
    assert run(["runs", "--rm", "first-job"]) == 0
    assert [each.stem for each in kept.iterdir()] == ["second-job"]


@pytest.mark.parametrize(("scope", "length_ms"), [("stage:1.0", 26_500), ("driver:0", 23_600)])
def test_scopes_are_the_ids_that_answers_print(kept: Path, scope: str, length_ms: float) -> None:
    assert cp.Run(kept / "first-job.duckdb").debug(scope).runtime_ms == pytest.approx(length_ms, rel=0.02)


@pytest.mark.parametrize(("word", "place"), [("local", "plain"), ("k8s", "kubernetes"), ("kubernetes", "kubernetes")])
def test_setup_knows_the_usual_names_of_places(word: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["setup", "spark", "--on", word, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["place"] == place
