"""First screens: those of real runs word by word, and what holds of all, on public logs too.

python -m tests.test_screens        writes tests/data/screens anew; read them aloud before you commit them
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from crystalperf.cli.answering import next_command
from crystalperf.cli.screen import MOST_LINES, verdict_text
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query import profile
from crystalperf.query.run import Run
from tests.conftest import REAL_INPUTS

ROOT = Path(__file__).resolve().parent.parent
SCREENS = ROOT / "tests" / "data" / "screens"
RECORDED = (*sorted((ROOT / "lab" / "recordings" / "odd").iterdir()), ROOT / "lab" / "recordings" / "demo-q9")
"""Odd logs, and a recording with samples."""

PUBLIC = sorted(REAL_INPUTS.glob("spark-eventlog/*/*")) if REAL_INPUTS.is_dir() else []


def screen(run: Run, name: str) -> str:
    """The first screen, as if the run file lay where it lies on no machine."""
    told = replace(run.verdict(), run=f"/runs/{name}.duckdb")
    step = next_command(told.next, Path(f"/runs/{name}.duckdb"))
    return verdict_text(told, step, name)


def of_recorded(log: Path, output: Path) -> str:
    return screen(profile([log], output=output), log.stem)


@pytest.mark.parametrize("log", RECORDED, ids=lambda each: each.stem)
def test_the_first_screen_says_what_was_read_aloud(log: Path, tmp_path: Path) -> None:
    text = of_recorded(log, tmp_path / "run.duckdb")
    assert text == (SCREENS / f"{log.stem}.txt").read_text(encoding="utf-8"), "see the head of this file"
    check(text)


def test_no_screen_is_left_of_a_run_that_is_gone() -> None:
    assert {each.stem for each in SCREENS.iterdir()} == {each.stem for each in RECORDED}


@pytest.mark.later
@pytest.mark.parametrize("log", PUBLIC or [None], ids=lambda each: each.name if each else "none")
def test_the_first_screen_of_a_public_log_keeps_the_rules(log: Path | None, real_inputs: Path, tmp_path: Path) -> None:
    assert log is not None
    try:
        run = profile([log], output=tmp_path / "run.duckdb")
    except CrystalPerfError as error:
        pytest.skip(str(error))
    check(screen(run, "run"))


# What holds of every screen -----------------------------------------------------------------------------------------

NEVER = re.compile(r"\bnan\b|\binf\b|None|<unknown>|\bNaN\b|\{|\}")
OF = re.compile(r"([\d.]+) of ([\d.]+) (?:s|ms|min) \((<?)(\d+) %\)")
ROW = re.compile(r"^.*?  +(\.|[\d.]+)(?:  +(?:\.|\?|[\d.]+))+$")
CHANGE = re.compile(r"=\S+ +([\d.]+) +([+-]?\d+) %")


def check(text: str) -> None:
    """At most 45 lines of 80 columns, no word of a program's insides, and figures that agree with each other."""
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= MOST_LINES, len(lines)
    assert not [each for each in lines if len(each) > 80 and " " in each.strip()]
    assert not [each for each in lines if NEVER.search(each)]
    for part, whole, less, share in OF.findall(" ".join(text.split())):
        assert less or abs(100 * float(part) / float(whole) - float(share)) <= 0.5 + _rounding(whole)
    if "Nothing to explain: " in text:  # and so no rows, and no settings that would change them
        assert not [each for each in lines if each.startswith("Critical path") or CHANGE.search(each)]
        return
    whole_s = _check_path(lines)
    for after, change in CHANGE.findall(text):
        assert abs(100 * (float(after) - whole_s) / whole_s - float(change)) <= 0.5 + _rounding(after, whole_s), (
            after,
            change,
        )


def _rounding(text: str, whole: float | None = None) -> float:
    """Percent that two figures written like this one may be off together, for they are rounded to its last digit."""
    return (10 if "." in text else 100) / (float(text) if whole is None else whole)


def _check_path(lines: list[str]) -> float:
    """The rows of the critical path sum to the whole, up to what rounding takes; the whole."""
    (first,) = [number for number, each in enumerate(lines) if each.startswith("Critical path")]
    (last,) = [number for number, each in enumerate(lines) if each.startswith("whole ")]
    times = [_time(each) for each in lines[first + 1 : last + 1]]
    decimals = 0.05 if any("." in str(each) and each % 1 for each in times) else 0.5
    assert abs(sum(times[:-1]) - times[-1]) <= decimals * len(times) + 0.01
    return times[-1]


def _time(line: str) -> float:
    row = ROW.match(line)
    assert row is not None, line
    return 0.0 if row[1] == "." else float(row[1])


if __name__ == "__main__":
    SCREENS.mkdir(exist_ok=True)
    os.environ.update(COLUMNS="80", NO_COLOR="1")
    with tempfile.TemporaryDirectory() as place:
        for each in RECORDED:
            made = of_recorded(each, Path(place) / f"{each.stem}.duckdb")
            (SCREENS / f"{each.stem}.txt").write_text(made, encoding="utf-8")
