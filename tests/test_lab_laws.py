"""The findings of the lab's laws in answers; a recorded run breaks none."""

from __future__ import annotations

import pytest

from crystalperf.query.run import Run
from lab.checks.laws import against, check


@pytest.mark.parametrize(
    ("setting", "reported", "law"),
    [
        ("disk", {1.0: 1000.0, 2.0: 1002.0}, "more of a device costs time"),
        ("cores", {1.0: 1000.0, 2.0: 1030.0}, "more slots cost time"),
        ("network", {0.99: 1060.0, 1.0: 1000.0}, "a small change is a large one"),
    ],
)
def test_a_broken_law_is_named(setting: str, reported: dict[float, float], law: str) -> None:
    (found,) = against("run", setting, reported, 1000.0)
    assert (found.law, found.setting) == (law, setting)


def test_anomalies_of_list_scheduling_and_rounding_break_no_law() -> None:
    assert not against("run", "cores", {1.0: 1000.0, 2.0: 1019.0}, 1000.0)
    assert not against("run", "disk", {1.0: 1000.0, 1.01: 960.0, 2.0: 960.5}, 1000.0)


def test_a_recorded_run_breaks_no_law(demo_run: Run) -> None:
    checked = check("demo", demo_run)
    assert checked.answered > 20
    assert checked.broken == ()
