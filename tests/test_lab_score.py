"""Scoring predictions against reruns, on the recorded demo with made reruns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import is_one_line, refused

pytest.importorskip("scipy", reason="the lab's extra is not installed")

from lab.__main__ import main
from lab.errors import LabError
from lab.pages import head, put
from lab.runs.suites import Configuration, Suite, Sweep, axis, configurations
from lab.runs.sweep import read_rows, write_rows
from lab.score import priors as learning
from lab.score import report
from lab.score.calibrate import calibrate
from lab.score.floors import as_good, by_workload, floor, floor_table
from lab.score.keep import keep
from lab.score.pairs import Measured, Pair, measured, noise, pairs
from lab.score.predictors import ernest, execution
from lab.scored import nearer

RECORDING = Path(__file__).resolve().parent.parent / "lab" / "recordings" / "demo-q9"
BASE_MS = 100_000.0
MADE = Suite(
    "made", "", (Sweep("q9", 1, {}, (axis("slots", 2, 4, base=0), axis("network", "50Mbps", "100Mbps", base=0))),)
)


def row(number: int, wall_ms: float, **given: Any) -> dict[str, Any]:
    one = configurations(MADE)[number]
    known = {
        "suite": "made",
        "number": number,
        "sweep": 0,
        "role": one.role,
        "repetition": 0,
        "changed": json.dumps(one.changed),
        "sampler": "none",
        "sample_ms": 20,
        "wall_ms": wall_ms,
        "executors_cpu_ms": 1000.0,
        "start_ms": 0,
        "end_ms": 0,
        "run": f"made/{number}",
        "event_log": "made/nothing",
        "recordings": "[]",
    }
    return known | given


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    out = tmp_path_factory.mktemp("out")
    log = next(each for each in RECORDING.iterdir() if each.name.startswith("eventlog"))
    (out / "made").mkdir()
    (out / "made" / "base").symlink_to(RECORDING)
    run = json.loads((RECORDING / "run.json").read_text())
    base = {
        "event_log": f"made/base/{log.name}",
        "recordings": json.dumps([f"made/base/{each.name}" for each in sorted(RECORDING.glob("*.jfr.gz"))]),
        "start_ms": run["start_ms"],
        "end_ms": run["end_ms"],
        "sampler": "jfr",
        "run": "made/base",
        "executors_cpu_ms": 1100.0,
    }
    rows = [
        row(0, run["wall_ms"], **base),
        row(0, 0.95 * BASE_MS, repetition=1, run="made/b1"),
        row(0, 1.05 * BASE_MS, repetition=2, run="made/b2"),
        row(1, 80_000.0),
        row(2, 90_000.0),
        row(3, 60_000.0),
    ]
    write_rows(rows, out / "made" / "rows.parquet")
    return measured(MADE, out, out / "profiles")


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    assert read_rows(tmp_path, MADE) == []
    rows = [row(1, 80_000.0), row(2, 90_000.0)]
    write_rows(rows, tmp_path / "made" / "rows.parquet")
    assert read_rows(tmp_path, MADE) == rows


def test_every_configuration_but_the_base_is_scored(known: Measured) -> None:
    assert [one.number for one in known.scored] == [1, 2, 3]
    assert known.actual_ms == {1: 80_000.0, 2: 90_000.0, 3: 60_000.0}
    assert sorted(noise(known)) == pytest.approx([-0.05, 0.05])


def test_shipped_predictors_answer_with_intervals(known: Measured) -> None:
    found = pairs(known, ("jfr20", "shipped"))
    assert [pair.configuration.number for pair in found] == [1, 2, 3]
    for pair in found:
        assert pair.predicted_ms is not None
        assert pair.interval_ms is not None
        assert pair.interval_ms[0] < pair.predicted_ms < pair.interval_ms[1]
        assert pair.deviation == pytest.approx(pair.predicted_ms / pair.actual_ms - 1)
    assert pairs(known, ("async20", "shipped")) == []


def test_the_simple_predictors(known: Measured) -> None:
    """Double network, double slots, both; the recorded base took what its row says."""
    recorded = known.bases[0, "jfr20"][0].wall_ms
    expected = {"no change": [recorded] * 3, "linear": [recorded / 2, recorded / 2, recorded / 4]}
    for name, times in expected.items():
        assert [pair.predicted_ms for pair in pairs(known, ("jfr20", name))] == pytest.approx(times)
    network, slots, both = (pair.predicted_ms for pair in pairs(known, ("jfr20", "Amdahl")))
    assert network == pytest.approx(recorded)
    assert slots is not None
    assert recorded / 2 < slots < recorded
    assert both == slots
    alone = [pair.predicted_ms for pair in pairs(known, ("jfr20", "slots alone"))]
    assert alone[0] == recorded
    assert alone[1] == alone[2] != recorded


def test_the_papers_model_has_shares_of_samples_alone(known: Measured) -> None:
    shipped = [pair.predicted_ms for pair in pairs(known, ("jfr20", "shipped"))]
    plain = [pair.predicted_ms for pair in pairs(known, ("jfr20", "plain"))]
    assert None not in plain
    assert plain != pytest.approx(shipped)


def test_ernest_recovers_its_own_formula() -> None:
    """t = 10 s + 80 s/m: a sweep over slots on two workers is met exactly, between what it learned from and beyond."""
    suite = Suite("law", "", (Sweep("q9", 1, {}, (axis("slots", 1, 2, 4, 8, base=0),)),))
    every = configurations(suite)

    def law(one: Configuration) -> float:
        return 10_000.0 + 80_000.0 / (2 * one.knobs["slots"])

    predictor = ernest((one, law(one)) for one in every[:3])
    base: Any = None
    for one in every:
        assert predictor(base, one) == pytest.approx(law(one), rel=1e-6)
    assert ernest([(every[0], 1.0)])(base, every[1]) is None


def test_recorded_base_replaces_a_missing_unrecorded_one(known: Measured) -> None:
    """So everybody who needs no samples can be asked; a base that nothing recorded comes first where there is one."""
    (base,) = known.starts(0, "none")
    assert not execution(base).has_samples
    assert base.wall_ms == known.bases[0, "jfr20"][0].wall_ms
    assert len(pairs(known, ("none", "no change"))) == 3
    unrecorded = replace(base, wall_ms=1.0)
    assert replace(known, bases={**known.bases, (0, "none"): (unrecorded,)}).starts(0, "none") == (unrecorded,)
    assert known.starts(0, "async20") == ()


def test_ernest_learns_from_a_recorded_base_if_there_is_no_other(known: Measured) -> None:
    """The made suite's even configuration has other slots than its base; without a base it is one number of slots."""
    twice = replace(known, actual_ms={1: 80_000.0, 2: 60_000.0}, base_ms={})
    assert [pair.predicted_ms is None for pair in pairs(twice, ("none", "Ernest"))] == [False, False]
    assert {pair.predicted_ms for pair in pairs(replace(twice, logs={}, base_ms={}), ("jfr20", "Ernest"))} == {None}


def made_pair(workload: str, number: int, predicted_ms: float | None) -> Pair:
    one = Configuration(number, 0, workload, 1.0, {}, {}, False, {})
    return Pair("made", one, 100.0, predicted_ms)


def test_noise_floor_compares_runs_of_one_series_with_their_median(tmp_path: Path) -> None:
    """A series is not mixed with the one next to it, and one run alone shows nothing."""
    series = {
        "sweeps": [row(1, 90.0), row(1, 110.0, repetition=1), row(2, 50.0), row(3, 70.0, sampler="jfr")],
        "again": [row(1, 1000.0), row(2, 80.0), row(2, 120.0, repetition=1), row(2, 100.0, repetition=2)],
        "other": [row(1, 1.0), row(1, 2.0, repetition=1)],
    }
    for name, rows in series.items():
        write_rows(rows, tmp_path / name / "made" / "rows.parquet")
    known = measured(MADE, tmp_path / "sweeps", tmp_path / "profiles")
    assert known.reruns_ms == {1: ((90.0, 110.0), (1000.0,)), 2: ((50.0,), (80.0, 120.0, 100.0))}
    two, three = 0.1 * nearer(2), 0.2 * nearer(3)
    assert floor(known, "odd") == pytest.approx([two, two])
    assert floor(known, "even") == pytest.approx([three, three, 0.0])


def test_median_that_includes_the_run_is_nearer_to_it() -> None:
    """Of two runs the median is the mean; of many it is nearly the true one."""
    assert nearer(2) == pytest.approx(math.sqrt(2), rel=0.02)
    assert nearer(3) == pytest.approx(1.417, rel=0.02)
    assert nearer(101) == pytest.approx(1.0, abs=0.02)


def test_confidence_interval_resamples_whole_workloads() -> None:
    """Two workloads are both drawn half of the time, and each alone a quarter: its mean is an end of the interval."""
    found = [made_pair("q6", number, 110.0) for number in range(5)]
    assert by_workload(found) is None
    found += [made_pair("q9", 5, 70.0), made_pair("q9", 6, None)]
    assert by_workload(found) == pytest.approx((0.1, 0.3))


def test_equally_good_peer_is_compared_with_ours_where_it_answers() -> None:
    ours = [made_pair("q6", 0, 110.0), made_pair("q6", 1, 150.0)]
    refusing = [made_pair("q6", 0, None), made_pair("q6", 1, 140.0)]
    worse = [made_pair("q6", 0, 110.0), made_pair("q6", 1, 151.0)]
    assert as_good(ours, [("refuses", refusing), ("worse", worse), ("same", ours)]) == [
        "refuses (40.0 to our 50.0 in 1)",
        "same (30.0 to our 30.0 in 2)",
    ]


def test_the_table_of_floors(known: Measured) -> None:
    even, odd = floor_table([known])[2:]
    assert even.startswith("| made | even: 1 |")
    assert odd.startswith("| made | odd: 2 |")
    assert "| one workload | 7.1 (2 runs) |" in even
    assert "Ernest" not in even  # it was fitted to them
    several = floor_table([known, replace(known, suite=replace(known.suite, name="other"))], ("odd",))
    assert [line.split(" | ")[:2] for line in several[2:]] == [
        ["| made", "odd: 2"],
        ["| other", "odd: 2"],
        ["| all", "odd: 4"],
    ]


def test_the_head_of_a_table_says_which_cells_stand_to_the_right() -> None:
    assert head("run | >tasks | check") == ["| run | tasks | check |", "|---|---:|---|"]


def test_tables_of_another_section_go_between_marks_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- floors -->\nold\n<!-- end of floors -->\n<!-- now floors -->\nx\n<!-- end of now floors -->\n"
    )
    put(page, "now floors", ["new"])
    assert page.read_text().split("\n")[:6] == [
        "<!-- floors -->",
        "old",
        "<!-- end of floors -->",
        "<!-- now floors -->",
        "new",
        "<!-- end of now floors -->",
    ]
    with refused(LabError, page, "<!-- now suites -->"):
        put(page, "now suites", ["new"])


def test_command_prints_each_table_under_its_name(
    known: Measured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = known.bases[0, "jfr20"][0].run.parent.parent
    monkeypatch.setattr("lab.__main__.find_suite", lambda _: MADE)
    assert main(["score", "made", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "\n".join(["## floors", "", *floor_table([known])]) in printed
    assert "even: " in printed
    assert main(["score", "made", "--out", str(out), "--only", "all"]) == 0
    as_one_set = capsys.readouterr().out
    assert "all: 3" in as_one_set
    assert "even: " not in as_one_set


def cells_of(table: Sequence[str], line: int) -> dict[str, str]:
    rows = [[cell.strip() for cell in table[number].split("|")] for number in (0, line)]
    return dict(zip(*rows, strict=True))


def test_tables(known: Measured) -> None:
    table = report.deviations([known])
    shipped = next(line for line in table if line.startswith("| shipped") and "odd" in line)
    off = [abs(pair.deviation or 0) for pair in pairs(known, ("jfr20", "shipped")) if pair.configuration.number % 2]
    assert f"| odd: 2 | {100 * sum(off) / 2:.1f} ±" in shipped
    assert any(line.startswith("| noise") and "| 2 runs | 5.0 ± 0.0 |" in line for line in table)
    assert not any("odd" in line for line in report.deviations([known], ("even",)))
    suites = report.by_suite([known])
    assert suites[0].startswith(
        "| suite | configurations | worst of shipped | noise | shipped | the paper's plain model |"
    )
    assert [line.split(" | ")[:2] for line in suites[2:]] == [["| made", "even: 1"], ["| made", "odd: 2"]]
    cells = cells_of(suites, 2)
    assert cells["async-profiler"] == cells["JFR every 100 ms"] == "not kept"
    assert cells["no change"].isdigit()
    assert cells["Ernest"] == "0 (fitted)"
    untaught = replace(known, actual_ms={1: 80_000.0, 3: 60_000.0})
    assert cells_of(report.by_suite([untaught]), 2)["Ernest"] == "refused"
    assert len(report.every_configuration(known)) == 2 + 3
    even, odd = report.coverage([known])[2:]
    assert even.startswith("| even | 1 | 1 |")
    assert odd.startswith("| odd | 2 | 2 |")


def test_calibration_uses_even_configurations_only(known: Measured) -> None:
    calibration, count = calibrate([known])
    assert count == 1
    assert calibration.repetition == pytest.approx(0.05, rel=0.01)
    (pair,) = (pair for pair in pairs(known, ("jfr20", "shipped")) if pair.configuration.number == 2)
    assert pair.predicted_ms is not None
    assert calibration.coverage_width > 0
    assert math.isfinite(calibration.coverage_width)
    odd_changed = Measured(known.suite, known.bases, {**known.actual_ms, 1: 1.0, 3: 1.0}, known.base_ms)
    assert calibrate([odd_changed])[0] == calibration


def test_a_kept_sweep_gives_the_same_predictions(known: Measured, tmp_path: Path) -> None:
    out = known.bases[0, "jfr20"][0].run.parent.parent
    size = keep(MADE, out, tmp_path / "kept", ["jfr20"])
    assert 0 < size < 2_000_000
    again = measured(MADE, tmp_path / "kept", tmp_path / "profiles")
    for before, after in zip(pairs(known, ("jfr20", "shipped")), pairs(again, ("jfr20", "shipped")), strict=True):
        assert after.predicted_ms == pytest.approx(before.predicted_ms)
        assert after.actual_ms == before.actual_ms
    with refused(LabError, tmp_path, "made"):
        keep(MADE, tmp_path, tmp_path / "other", [])


def test_nothing_to_score_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("score", "calibrate"):
        assert main([command, "q9", "--out", str(tmp_path)]) == 1
        is_one_line(capsys.readouterr().err, tmp_path, "q9")


@pytest.mark.later
def test_shipped_priors_match_the_stored_recordings(tmp_path: Path) -> None:
    reported = [learning.reported(each, tmp_path) for each in learning.kept()]
    kept = Path(learning.__file__).parent.parent.parent / "query" / "predict" / "priors.csv"
    assert learning.text_of(learning.rows(reported)) == kept.read_text(encoding="utf-8")
