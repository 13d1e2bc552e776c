"""Rates of the gate on repeated runs: the split by job, comparisons, and the usual spreads."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy", reason="the lab's extra is not installed")

from crystalperf.query.compare.noise import kind_of
from lab.score.gate import fit, later, pairs, slowed, spreads, table
from lab.score.repeats import Group, halves, lab_groups

ROOT = Path(__file__).parent.parent
KIND = kind_of("spark", "runtime")


def made(job: str, deviation: float, runs: int, seed: int, resources: str = "1", times: float = 1.0) -> Group:
    drawn = np.random.default_rng(seed).normal(0.0, deviation, runs)
    return Group(KIND, "made", job, resources, "", tuple(60_000.0 * times * np.exp(drawn)), fits=True)


def test_jobs_are_in_one_half_and_kinds_in_both() -> None:
    groups = lab_groups()
    tuning, tested = halves(groups)
    assert len(tuning) + len(tested) == len(groups)
    assert not {(each.kind, each.job) for each in tuning} & {(each.kind, each.job) for each in tested}
    assert KIND in {each.kind for each in tested} & {each.kind for each in tuning}


def test_the_shipped_spreads_are_those_of_the_tuning_half() -> None:
    tuning, _ = halves(lab_groups())
    assert spreads(tuning) == (ROOT / "query" / "compare" / "spread.csv").read_text(encoding="utf-8")


def test_held_out_configurations_do_not_change_the_spreads() -> None:
    groups = [made(f"job {number}", 0.05, 3, number) for number in range(5)]
    noisy = [replace(made(f"other {number}", 0.9, 3, number), fits=False) for number in range(5)]
    assert spreads([*groups, *noisy]) == spreads(groups)
    rows = list(csv.DictReader(io.StringIO(spreads(groups))))
    assert {each["groups"] for each in rows} == {"5"}


@pytest.mark.parametrize("deviation", [0.03, 0.1])
def test_the_fit_finds_the_deviation_of_single_runs(deviation: float) -> None:
    found, weight = fit([made(str(number), deviation, 8, number) for number in range(40)])
    assert found == pytest.approx(deviation, rel=0.15)
    assert weight == 10.0  # all groups have the same spread, so a prior counts as much as it may


def test_sides_of_a_comparison_have_no_run_in_common() -> None:
    group = replace(made("a", 0.1, 1, 1), runs_ms=tuple(float(each) for each in range(1, 13)))
    found = pairs([group], 3)
    assert [(each.before_ms, each.after_ms) for each in found] == [
        ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
        ((7.0, 8.0, 9.0), (10.0, 11.0, 12.0)),
    ]
    assert pairs([group], 7) == []


def test_rates_of_quiet_runs() -> None:
    groups = [made(f"job {number}", 0.02, 10, number) for number in range(12)]
    (same, longer) = [each for each in table(groups) if each.startswith("| all, 5 a side")]
    assert same.split(" | ")[1:3] == ["12", "12"]
    assert same.split(" | ")[3].startswith("0.0 (0.0 to ")
    assert longer.split(" | ")[3].startswith("100.0 (")


def test_real_slower_runs_are_of_one_job_within_the_range() -> None:
    fast, slow, far = (made("job", 0.02, 5, seed, str(seed), times) for seed, times in ((1, 1.0), (2, 1.3), (3, 2.5)))
    other = made("other", 0.02, 5, 4, "4", 1.3)
    assert [(each.before_ms, each.after_ms) for each in slowed([fast, slow, far, other], 5)] == [
        (fast.runs_ms, slow.runs_ms)
    ]


def test_another_day_is_another_series_of_the_same_resources() -> None:
    day = [replace(made("job", 0.02, 2, seed), place="lab", series=str(seed)) for seed in (1, 2)]
    assert [(each.before_ms, each.after_ms) for each in later([*day, made("job", 0.02, 2, 3)])] == [
        (day[0].runs_ms, day[1].runs_ms)
    ]
