"""The lab of streaming queries: its configurations, stored rows, and the score of predictions from a baseline's log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.streams.runs import key, log_in, measured, plan
from lab.streams.score import OURS, read_rows, score
from lab.streams.suite import Configuration, configurations
from tests.refusals import refused
from tests.stream_events import FIXED_MS, ROW_MS, STATE_MS, batch_ms, run, written

VARIED = [10_000 + 5_000 * (-1) ** number + 1000 * (number % 3 - 1) for number in range(40)]
TRUTH = {
    "windows-rate10000-trigger2-partitions4": batch_ms(20_000),
    "windows-rate10000-trigger6-partitions4": batch_ms(60_000),
    "windows-rate5000-trigger2-partitions8": batch_ms(10_000) + 2 * STATE_MS,
}


def test_configurations_have_names_of_their_own_and_both_halves() -> None:
    every = configurations()
    assert len({each.name for each in every}) == len(every)
    assert {each.role for each in every} == {"base", "even", "odd"}
    assert {each.job for each in every if each.is_base} == {each.job for each in every}


def test_a_configuration_survives_its_file() -> None:
    one = configurations()[1]
    assert Configuration(**json.loads(json.dumps(one.as_json()))) == one


def test_baselines_run_first_in_each_repetition() -> None:
    planned = plan(2, [])
    half = len(planned) // 2
    assert [repetition for _, repetition in planned] == [0] * half + [1] * half
    bases = sum(each.is_base for each in configurations())
    assert all(one.is_base for one, _ in planned[:bases])
    assert [one.name for one, _ in plan(1, ["dedupe-base"])] == ["dedupe-base"]


def out_of(folder: Path) -> Path:
    """A folder with a baseline's log, and rows of configurations that the model predicts exactly."""
    written(folder, run(VARIED)).rename(folder / "windows-base.json")
    lines = [{"name": "windows-base", "repetition": 0, "batch_ms": 480.0, "processed_per_s": 20_000.0}]
    lines += [
        {"name": name, "repetition": repetition, "batch_ms": ms + 10 * repetition, "processed_per_s": 1.0}
        for name, ms in TRUTH.items()
        for repetition in (-1, 1)
    ]
    lines.append({"name": "windows-overload", "repetition": 0, "batch_ms": 9e3, "processed_per_s": 1e3 / ROW_MS})
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines), encoding="utf-8")
    return folder


def test_predictions_are_scored_against_means_of_runs(tmp_path: Path) -> None:
    lines = list(score(out_of(tmp_path), None))
    rows = {cells[0]: cells for line in lines if len(cells := [each.strip() for each in line.split("|")[1:-1]]) > 1}
    batches = [each for line in lines if line.startswith("| windows |") and len(each := line.split("|")) == 12]
    assert len(batches) == len(TRUTH)
    assert {int(each[7]) for each in batches} == {round(ms) for ms in TRUTH.values()}
    assert all(abs(float(each[9].strip(" %"))) < 2.5 for each in batches)
    assert all("covered" in each[10] for each in batches)
    assert rows[OURS][1] == str(len(TRUTH))
    assert float(rows[OURS][2].split()[0]) < 2
    floor = rows["runs of one configuration among themselves"]
    assert floor[1] == str(len(TRUTH))
    assert 0 < float(floor[2]) < 3
    (rate,) = [each for line in lines if line.startswith("| windows |") and len(each := line.split("|")) == 9]
    assert abs(float(rate[6].strip(" %"))) < 2


def test_only_one_half_is_scored(tmp_path: Path) -> None:
    roles = {each.name: each.role for each in configurations()}
    for only in ("even", "odd"):
        text = "\n".join(score(out_of(tmp_path), only))
        expected = sum(roles[name] == only for name in TRUTH)
        assert len(re.findall(rf"\| {only} \| 2 \|", text)) == expected


def test_a_log_is_measured_after_its_warm_up(tmp_path: Path) -> None:
    found = measured(written(tmp_path, run(VARIED)))
    assert found["batches"] == 20
    assert found["interval_ms"] == 1000
    assert found["batch_ms"] == pytest.approx(FIXED_MS + ROW_MS * found["rows"])
    assert found["processed_per_s"] == pytest.approx(1e3 * found["rows"] / found["batch_ms"])


def test_missing_files_are_errors_of_one_sentence(tmp_path: Path) -> None:
    with refused(LabError, tmp_path):
        read_rows(tmp_path)
    with refused(LabError, tmp_path):
        log_in(tmp_path)


def test_rows_are_found_by_name_and_repetition() -> None:
    assert key({"name": "dedupe-base", "repetition": 2, "rows": 1}) == ("dedupe-base", 2)
