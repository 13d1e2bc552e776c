"""Comparing the answers of two versions: what the new layout of the JSON makes of the old one is no difference."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from lab.same import compare, main

DEBUG_BEFORE: dict[str, Any] = {
    "scope": "all",
    "bottleneck": "other",
    "runtime_ms": 1000.0,
    "other_ms": {"waiting for executors": 600.0},
    "sql_executions": [{"id": 3, "name": "q", "end_ms": None}],
    "stages": [{"id": "stage:0.0", "sql_id": 3, "tasks": 4, "task_ms": 900.0, "scheduler_delay_ms": 2.0}],
    "operators": [{"sql_id": 3, "stages": [0], "basis": "SQL metrics"}],
    "disagreements": [{"stage": "stage:0.0", "label_share": 0.51}],
    "samples": {"on_tasks": 7, "skipped": {"task": 2}},
    "assumptions": ["input is local"],
    "unseen": ["code: the run left no samples; `crystalperf setup spark` shows what to add to the job"],
}
DEBUG_AFTER: dict[str, Any] = {
    "schema": "crystalperf.debug/1",
    "scope": "all",
    "measure": "makespan",
    "bottleneck": "no worker",
    "runtime_ms": 1000.001,
    "other_ms": {"no worker": 600.0},
    "scopes": [{"id": "sql:3", "name": "q", "end_ms": None}],
    "groups": [{"id": "stage:0.0", "scope": "sql:3", "units": 4, "unit_ms": 900.0, "queued_ms": 2.0, "most_bytes": 1}],
    "operators": [{"scope": "sql:3", "groups": ["stage:0.0", "stage:0.1"], "basis": "plan metrics"}],
    "disagreements": [{"group": "stage:0.0", "label_share": 0.51}],
    "samples": {"on_units": 7, "skipped": {"unit": 2}},
    "assumptions": ["input is local"],
    "unseen": [
        {
            "what": "code: the run left no samples",
            "remedy": {"kind": "set up the job", "facts": {"framework": "spark"}},
        }
    ],
    "coordinator_ms": 5.0,
    "findings": [],
    "vocabulary": {"worker": "executor"},
}
POINT = {"predicted_ms": 5.0, "refused": []}
SWEEP_BEFORE = {
    **{"scope": "all", "set": "cores=1", **POINT, "stages": [{"id": "stage:0.0", "recorded_ms": 2.0}]},
    "sweep": [{"set": "cores=1", **POINT}, {"set": "cores=2", **POINT, "predicted_ms": 3.0}],
}
SWEEP_AFTER = {
    "schema": "crystalperf.sweep/1",
    "points": [
        {**POINT, "scope": "all", "setting": setting, "predicted_ms": ms, "groups": groups, "remedy": None}
        for setting, ms, groups in (
            ("cores=1", 5.0, [{"id": "stage:0.0", "name": "scan", "recorded_ms": 2.0}]),
            ("cores=2", 3.0, [{"id": "stage:0.0", "name": "scan", "recorded_ms": 2.0}]),
        )
    ],
    "amounts": [1.0, 2.0],
    "knee": None,
}
BEFORE = {
    "a": {"debug job:0": DEBUG_BEFORE, "predict --set cores=1,2": SWEEP_BEFORE, "debug sql:9": "not in /x/run.duckdb"}
}
AFTER = {
    "a": {"debug job:0": DEBUG_AFTER, "predict --set cores=1,2": SWEEP_AFTER, "debug sql:9": "not in /y/run.duckdb"}
}


def test_another_layout_is_no_difference() -> None:
    assert not compare(BEFORE, AFTER), compare(BEFORE, AFTER).lines()
    assert not compare(AFTER, AFTER), compare(AFTER, AFTER).lines()


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("runtime_ms",), 1000.003, "figures: 1"),
        (("disagreements", 0, "label_share"), 0.5102, "figures: 1"),
        (("groups", 0, "scope"), "sql:4", "sentences: 1 of 1 kinds"),
        (("bottleneck",), "cpu", "sentences: 1 of 1 kinds"),
        (("assumptions",), ["input is local", "and more"], "sentences: 1 of 1 kinds"),
        (("assumptions",), [], "sentences: 1 of 1 kinds"),
        (("unseen", 0, "remedy"), None, "sentences: 1 of 1 kinds"),
        (("groups", 0, "spill_bytes"), 7, "fields: 1 of 1 kinds"),
        (("scopes", 0, "end_ms"), 7.0, "figures: 1"),
    ],
)
def test_what_differs_is_listed(place: tuple[str | int, ...], value: Any, said: str) -> None:
    after = copy.deepcopy(AFTER)
    holder: Any = after["a"]["debug job:0"]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    heads = [line for line in compare(BEFORE, after).lines() if not line.startswith(" ")]
    assert said in heads
    assert [head.partition(": ")[2][0] for head in heads].count("0") == 2, heads


def test_what_differs_alike_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: {"analyze": f"{number} parts are missing"} for number, name in enumerate("abc")}
    after = {name: {"analyze": f"{number} of its parts are missing"} for number, name in enumerate("ab")}
    before["b"]["debug all"] = "no"
    for name, answers in (("before", before), ("after", after)):
        (tmp_path / name).write_text(json.dumps(answers))
    assert main(["compare", str(tmp_path / "before"), str(tmp_path / "after")]) == 1
    lines = capsys.readouterr().out.split("\n")
    assert lines[:2] == ["figures: 0", "sentences: 2 of 1 kinds"]
    assert any(line.startswith("  debug only before: 1 times, first b: debug all") for line in lines)
