"""Suites as data, the order of their runs, and what is read back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lab.__main__ import main
from lab.errors import LabError
from lab.runs import series, sweep, training
from lab.runs.suites import SUITES, Suite, Sweep, axis, changes, cluster_config, configurations, find_suite
from lab.runs.workloads import find_workload
from tests.refusals import is_one_line, refused

SMALL = Suite(
    "small",
    "",
    (
        Sweep("q6", 1, {"memory": "1g"}, (axis("slots", 1, 2, 4, base=1), axis("network", "10Mbps", "20Mbps", base=0))),
        Sweep("q9", 1, {"disk": "4MB/s"}, (changes({"slots": 4}, {"disk": "2MB/s"}),)),
    ),
)


def test_last_axis_is_fastest_and_numbers_go_on() -> None:
    found = configurations(SMALL)
    assert [one.number for one in found] == list(range(9))
    assert [(one.knobs["slots"], one.knobs["network"]) for one in found[:6]] == [
        (1, "10Mbps"),
        (1, "20Mbps"),
        (2, "10Mbps"),
        (2, "20Mbps"),
        (4, "10Mbps"),
        (4, "20Mbps"),
    ]
    assert [one.role for one in found] == ["even", "odd", "base", "odd", "even", "odd", "base", "odd", "even"]
    assert found[5].changed == {"slots": 4, "network": "20Mbps"}
    assert [one.changed for one in found[6:]] == [{}, {"slots": 4}, {"disk": "2MB/s"}]
    assert found[7].knobs == {"disk": "4MB/s", "slots": 4}


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_can_be_run(name: str) -> None:
    suite = find_suite(name)
    found = configurations(suite)
    assert sum(one.is_base for one in found) == len(suite.sweeps)
    assert len({(one.sweep, str(one.knobs)) for one in found}) == len(found)
    for one in found:
        find_workload(one.workload)
        cluster = cluster_config(one.knobs)
        # No more CPU than a machine of two cores can give.
        assert cluster.workers * cluster.slots * (cluster.slot_cpu_cores or 0) <= 1.6


@pytest.mark.parametrize("name", ["q6", "q9"])
def test_figure_5_has_27_configurations_and_its_base_in_the_middle(name: str) -> None:
    found = configurations(find_suite(name))
    assert [one.number for one in found if one.is_base] == [13]
    assert len(found) == 27


def test_every_configuration_is_planned_between_base_runs() -> None:
    planned = sweep.plan(SMALL, 3)
    assert planned == sweep.plan(SMALL, 3)
    assert len({one.name for one in planned}) == len(planned)
    counts = {number: sum(one.configuration.number == number for one in planned) for number in range(9)}
    assert all(counts[number] == 3 for number in range(9) if number not in (2, 6))
    for position in (0, 1):
        of_sweep = [one for one in planned if one.configuration.sweep == position]
        assert of_sweep[0].configuration.is_base
        gaps = "".join("b" if one.configuration.is_base else "c" for one in of_sweep).split("b")
        assert max(map(len, gaps)) <= sweep.CONFIGURATION_PER_BASE
        samplers = {(one.sampling.kind, one.sampling.sample_ms) for one in of_sweep if one.configuration.is_base}
        assert samplers >= {("jfr", 20), ("async", 20), ("none", 20)}
    assert all(one.sampling.kind == "none" for one in planned if not one.configuration.is_base)


def test_repetitions_of_one_plan_are_part_of_a_longer_one() -> None:
    assert {one.name for one in sweep.plan(SMALL, 2)} <= {one.name for one in sweep.plan(SMALL, 7)}


def test_only_some_configurations() -> None:
    assert {one.configuration.role for one in sweep.plan(SMALL, 1, "odd")} == {"odd", "base"}
    assert {one.configuration.role for one in sweep.plan(SMALL, 1, "base")} == {"base"}
    with refused(LabError, 8):
        sweep.plan(SMALL, 8)


@pytest.mark.parametrize("recorder", sweep.RECORDERS)
def test_base_runs_of_one_recorder_have_the_names_of_the_whole_plan(recorder: str) -> None:
    whole, some = sweep.plan(SMALL, 7, recorders=sweep.RECORDERS), sweep.plan(SMALL, 1, recorders=[recorder])
    bases = [one for one in some if one.configuration.is_base]
    assert {one.configuration.sweep for one in bases} == {0, 1}
    assert {one.name.rsplit("-", 1)[1] for one in bases} == {recorder}
    assert {one.name for one in some} <= {one.name for one in whole}
    assert [one for one in some if not one.configuration.is_base] == [
        one for one in sweep.plan(SMALL, 1) if not one.configuration.is_base
    ]


def test_a_recorder_that_is_not_known_is_refused() -> None:
    with refused(LabError, "jfr7", "jfr20", "none", "async20", "jfr100"):
        sweep.plan(SMALL, 1, recorders=["jfr7"])


def _fake_run(folder: Path, wall_ms: float) -> dict[str, Any]:
    (folder / "eventlog").mkdir(parents=True)
    (folder / "eventlog" / "app-1").write_text("{}\n")
    row = {
        "wall_ms": wall_ms,
        "start_ms": 1,
        "end_ms": 2,
        "rows": 3,
        "configuration": {
            "workers": 2,
            "slots": 1,
            "slot_cpu_cores": 0.2,
            "executor_memory_bytes": 2**30,
            "network_bps": None,
            "disk_bytes_per_s": None,
            "storage": "local",
        },
        "sampler": {"kind": "none", "sample_ms": 20},
        "event_logs": ["eventlog/app-1"],
        "recordings": [],
        "truth": {"executors": {"cpu_ms": 12.5}, "residual": 0.1, "stages": [{"stage_id": 1}]},
    }
    (folder / "run.json").write_text(json.dumps(row))
    return row


def test_whole_runs_are_kept_and_damaged_ones_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def run_once(config: Any, out: Path) -> dict[str, Any]:
        made.append(out.name)
        if out.name == "001-0" and made.count("001-0") == 1:
            raise LabError("it did not work.")
        return _fake_run(out, 1000.0 + len(made))

    monkeypatch.setattr(sweep, "run_once", run_once)
    names = [one.name for one in sweep.plan(SMALL, 1)]
    assert sweep.run_suite(SMALL, tmp_path, 1) == 1
    assert made == names
    made.clear()
    made.append("001-0")
    (tmp_path / "small" / "003-0" / "run.json").write_text('{"wall_ms": 1')
    (tmp_path / "small" / "004-0" / "eventlog" / "app-1").unlink()
    assert sweep.run_suite(SMALL, tmp_path, 1) == 0
    assert sorted(made[1:]) == ["001-0", "003-0", "004-0"]
    rows = sweep.load_rows(tmp_path, SMALL)
    assert len(rows) == len(names)
    assert [row["number"] for row in rows] == sorted(row["number"] for row in rows)
    stored = duckdb.sql(f"FROM '{tmp_path / 'small' / 'rows.parquet'}'")
    assert set(stored.columns) == set(rows[0])
    assert len(stored.fetchall()) == len(rows)
    assert all((tmp_path / row["event_log"]).exists() for row in rows)


def test_a_lab_that_cannot_run_stops_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_once(config: Any, out: Path) -> dict[str, Any]:
        raise LabError("no root.")

    monkeypatch.setattr(sweep, "run_once", run_once)
    with refused(LabError, 3, "no root"):
        sweep.run_suite(SMALL, tmp_path, 1)


def test_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "run_once", lambda config, out: _fake_run(out, 1.0))
    assert sweep.run_suite(SMALL, tmp_path, 1, limit_minutes=0.5) == len(sweep.plan(SMALL, 1))


def test_no_run_is_started_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed run shows how long one takes, too; three in a row would end the series."""
    clock, made = [0.0], list[int]()
    monkeypatch.setattr(series.time, "monotonic", lambda: clock[0])

    def run(number: int) -> str:
        made.append(number)
        clock[0] += 25.0
        if number == 1:
            raise LabError("no slots.")
        return "made"

    written: list[int] = []
    left = series.make_missing(range(5), run, str, lambda: written.append(len(made)), minutes=1.0)
    assert (left, made, written) == (4, [0, 1], [1])
    assert series.make_missing(range(3), run, str, lambda: None, minutes=1.0, first_guess_s=61.0) == 3


def test_command_line_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "q99"]) == 1
    captured = capsys.readouterr()
    is_one_line(captured.err, "q99")


def test_trainings_resume_restart_after_failures_and_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [training.Configuration(f"one-{number}", "pytorch") for number in range(3)]
    ran: list[str] = []

    def finished(_jobs: object, name: str) -> list[dict[str, Any]]:
        ran.append(name)
        if ran == ["one-0"]:
            raise LabError("one-0: a job ended with code 1")
        return [{"rank": 0, "step_s": [0.1, 0.3, 0.2], "cpu_s": 0.05}]

    monkeypatch.setattr(training, "_pytorch", lambda *_: [])
    monkeypatch.setattr(training, "_finished", finished)
    assert training.run_all(wanted, "python", tmp_path, 0.0) == 3
    assert training.run_all(wanted, "python", tmp_path, None) == 1
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 2, "a series that is left early"
    assert training.run_all(wanted, "python", tmp_path, None) == 0
    assert ran == ["one-0", "one-1", "one-2", "one-0"]
    assert training.run_all([training.Configuration("other", "pytorch")], "python", tmp_path, None) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    names = ["one-1", "one-2", "one-0", "other"]
    assert [(each["name"], each["step_ms"], each["cpu_ms"]) for each in rows] == [
        (name, [200.0], [50.0]) for name in names
    ]


LOUD = """
import json, sys, time
from pathlib import Path
asked = json.loads(sys.argv[1])
while not Path(asked.get("after", ".")).exists():
    time.sleep(0.01)
print("x" * 200_000, file=sys.stderr)
Path(asked["mark"]).touch()
print("{}")
"""


def test_output_of_a_training_process_blocks_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second says more than a pipe holds, and the first, whose end is waited for, waits for it."""
    monkeypatch.setattr(training, "TIMEOUT_S", 60.0)
    marks = [str(tmp_path / "first"), str(tmp_path / "second")]
    (tmp_path / "loud.py").write_text(LOUD)
    asked = ({"after": marks[1], "mark": marks[0]}, {"mark": marks[1]})
    jobs = [
        training._job(sys.executable, str(tmp_path / "loud.py"), each, tmp_path / f"{number}.log", {})
        for number, each in enumerate(asked)
    ]
    assert training._finished(jobs, "loud") == [{}, {}]
    (tmp_path / "failing.py").write_text("raise SystemExit('no such port')")
    failing = training._job(sys.executable, str(tmp_path / "failing.py"), {}, tmp_path / "2.log", {})
    with refused(LabError, 1, "no such port", "2.log"):
        training._finished([failing], "dead")


def test_cpu_time_of_slots_is_asked_as_the_cpus_speed() -> None:
    pytest.importorskip("scipy", reason="the lab's extra is not installed")
    from lab.score.predictors import asked_of

    asked = [asked_of(each) for each in configurations(find_suite("speed")) if each.workload == "q9"]
    assert asked == [["cpu_speed=0.5x"], [], ["cpu_speed=1.5x"], ["cpu_speed=2x"]]
