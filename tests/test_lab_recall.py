"""The recall check: causes that a log shows, causes that are reported, and how the two are compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.checks.recall import main, pairs, table
from lab.errors import LabError
from tests.refusals import refused
from tests.spark_logs import MIB, Stage, Task, write


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with logs next to it: one with a straggler that read most, and one that is even."""
    folder, logs = tmp_path / "corpus", tmp_path / "corpus-data" / "logs"
    folder.mkdir()
    logs.mkdir(parents=True)
    even = [Task(2000, "1", 2000 * (each // 4), cpu_ms=1900, shuffled_bytes=MIB) for each in range(16)]
    skewed = [*even, Task(30_000, "1", 8000, cpu_ms=29_000, shuffled_bytes=40 * MIB)]
    for name, tasks in (("skewed", skewed), ("even", even)):
        write(logs / f"{name}.ndjson", [Stage(tasks, reads="ShuffledRowRDD")], executors={"1": 4})
    targets = ["SKEW", "STRAG", "CACHE", "SPILL"]
    entries = [{"id": name, "path": f"logs/{name}.ndjson", "targets_detectors": targets} for name in ("skewed", "even")]
    more = [
        {"id": "no targets", "path": "logs/even.ndjson"},
        {"id": "no log", "path": "x", "targets_detectors": ["HOST"]},
    ]
    (folder / "index.json").write_text(json.dumps([*entries, *more]), encoding="utf-8")
    return folder


def test_intended_shown_and_reported_causes_are_separate(checkout: Path) -> None:
    found = pairs(checkout, checkout.with_name("corpus-data"))
    outcomes = {(each.log, each.tag): each.outcome for each in found}
    assert outcomes["skewed", "SKEW"] == outcomes["skewed", "STRAG"] == "found"
    assert outcomes["skewed", "SPILL"] == outcomes["skewed", "CACHE"] == "not in the log"
    assert {outcome for (log, _), outcome in outcomes.items() if log == "even"} == {"not in the log"}
    assert table(found)[-1] == "2 of the 2 problems that the logs show are reported; 8 were intended."


def test_command_finds_the_logs_next_to_the_checkout_and_prints_its_table(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(checkout)]) == 0
    assert "| skewed | skewed data (SKEW) | a task that reads 40 MiB of a shuffle" in capsys.readouterr().out
    assert main([str(checkout / "none")]) == 1
    assert "index.json" in capsys.readouterr().err


def test_an_index_without_logs_is_an_error(checkout: Path, tmp_path: Path) -> None:
    with refused(LabError):
        pairs(checkout, tmp_path / "elsewhere")
