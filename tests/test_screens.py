"""First screens: four word by word, which `python -m tests.test_shown` writes, and what holds of every screen."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crystalperf.cli.run_commands import next_command
from crystalperf.cli.screen import MAX_LINES, verdict_text
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query import profile
from crystalperf.query.results.answers import Verdict
from tests.conftest import REAL_INPUTS

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SCREENS = DATA / "screens"
RECORDINGS = ROOT / "lab" / "recordings"
GOLDEN = {
    "spark": [RECORDINGS / "demo-q9"],
    "stream": [DATA / "flink" / "skew-8000.json.gz", DATA / "flink" / "skew-8000.series.gz"],
    "training": [DATA / "training" / "torch-2-ranks"],
    "failed": [RECORDINGS / "odd" / "failed-at-end.zstd"],
}
"""The input of each screen in SCREENS."""

BOTTLENECKS = {
    "busy-driver": ("driver", 2768, ["driver"]),
    "cut-off": ("no worker", 7851, ["starting-tasks", "driver", "no-worker", "at-start"]),
    "dropped-events": ("start", 7044, ["driver", "at-start", "samples"]),
    "failed-at-end": ("start", 8208, ["outcome", "delegated", "driver", "at-start"]),
    "idle-shell": ("driver", 4105, ["driver", "samples"]),
    "lost-executor": ("delegated", 15328, ["delegated", "workers", "no-worker", "at-start"]),
    "micro-batches": ("no scope", 3816, ["no-scope", "driver"]),
    "nested-queries": ("start", 9865, ["driver", "cpu_speed", "at-start", "samples"]),
    "out-of-heap": ("no worker", 14105, ["outcome", "starting-tasks", "driver", "at-start"]),
    "python-udf": ("start", 8219, ["delegated", "driver", "at-start"]),
    "skewed-key": (
        "cpu",
        17510,
        ["straggler", "spilling", "driver", "cpu_speed", "workers", "no-worker", "at-start", "samples"],
    ),
    "speculative-copies": ("delegated", 12592, ["delegated", "no-worker"]),
    "survived-failure": (
        "no worker",
        5941,
        ["starting-tasks", "driver", "cpu_speed", "delegated", "no-worker", "at-start"],
    ),
    "threads": ("driver", 3785, ["driver", "samples"]),
    "tiny-tasks": ("start", 5479, ["starting-tasks", "at-start"]),
}
"""Of each odd recording: the bottleneck, its ms on the critical path, and what the recommendations rest on."""

PUBLIC = sorted(REAL_INPUTS.glob("spark-eventlog/*/*")) if REAL_INPUTS.is_dir() else []


def verdict(paths: Sequence[Path], folder: Path) -> Verdict:
    return profile(paths, output=folder / "run.duckdb").verdict()


def screen(found: Verdict, name: str = "run") -> str:
    """The first screen, as if the run file were in /runs."""
    run = Path(f"/runs/{name}.duckdb")
    return verdict_text(replace(found, run=str(run)), next_command(found.next, run), name)


@pytest.mark.parametrize("name", GOLDEN)
def test_matches_the_kept_screen(name: str, tmp_path: Path) -> None:
    text = screen(verdict(GOLDEN[name], tmp_path), name)
    assert text == (SCREENS / f"{name}.txt").read_text(encoding="utf-8"), "python -m tests.test_shown writes it"
    check(text)


def test_keeps_no_other_screens() -> None:
    assert {each.stem for each in SCREENS.iterdir()} == set(GOLDEN)


@pytest.mark.few(4)
@pytest.mark.parametrize("log", sorted((RECORDINGS / "odd").iterdir()), ids=lambda each: each.stem)
def test_finds_the_bottleneck_of_an_odd_run_and_fits_it_on_a_screen(log: Path, tmp_path: Path) -> None:
    found = verdict([log], tmp_path)
    name, time_ms, reasons = BOTTLENECKS[log.stem]
    assert (found.bottleneck.name, [each.because for each in found.recommendations]) == (name, reasons)
    assert found.bottleneck.time_ms == pytest.approx(time_ms, abs=0.5)
    check(screen(found))


@pytest.mark.later
@pytest.mark.parametrize("log", PUBLIC or [None], ids=lambda each: each.name if each else "none")
def test_keeps_the_rules_of_a_screen_on_a_public_log(log: Path | None, real_inputs: Path, tmp_path: Path) -> None:
    assert log is not None
    try:
        found = verdict([log], tmp_path)
    except CrystalPerfError as error:
        pytest.skip(str(error))
    check(screen(found))


# Laws of every screen -----------------------------------------------------------------------------------------------

NEVER = re.compile(r"\bnan\b|\binf\b|None|<unknown>|\bNaN\b|\{|\}")
OF = re.compile(r"([\d.]+) of ([\d.]+) (?:s|ms|min) \((<?)(\d+) %\)")
CHANGE = re.compile(r"=\S+ +([\d.]+) +([+-]?\d+) %")


def check(text: str) -> None:
    """At most 45 lines of 80 columns, no word of a program's insides, and figures that agree with each other."""
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= MAX_LINES, len(lines)
    assert not [each for each in lines if len(each) > 80 and " " in each.strip()]
    assert not [each for each in lines if NEVER.search(each)]
    for part, whole, less, share in OF.findall(" ".join(text.split())):
        assert less or abs(100 * float(part) / float(whole) - float(share)) <= 0.5 + _rounding(whole)
    if "No bottleneck: " in text:  # and so no rows, and no settings that would change them
        assert not [each for each in lines if each.startswith("Critical path") or CHANGE.search(each)]
        return
    whole_s = _check_path(lines)
    for after, change in CHANGE.findall(text):
        assert abs(100 * (float(after) - whole_s) / whole_s - float(change)) <= 0.5 + _rounding(after, whole_s), (
            after,
            change,
        )


def _rounding(text: str, whole: float | None = None) -> float:
    """Percent that two figures written like this one may be off together, because they are rounded."""
    return (10 if "." in text else 100) / (float(text) if whole is None else whole)


def _check_path(lines: list[str]) -> float:
    """The rows of the critical path sum to the total, up to rounding; the total."""
    (first,) = [number for number, each in enumerate(lines) if each.startswith("Critical path")]
    (last,) = [number for number, each in enumerate(lines) if each.startswith("total ")]
    resources = len(lines[first].partition("]")[2].split())
    cells = [re.split(" {2,}", each)[-resources - 1] for each in lines[first + 1 : last + 1]]
    times = [0.0 if each == "." else float(each) for each in cells]
    decimals = 0.05 if any("." in str(each) and each % 1 for each in times) else 0.5
    assert abs(sum(times[:-1]) - times[-1]) <= decimals * len(times) + 0.01
    return times[-1]


def write() -> None:
    """Write the four screens."""
    os.environ.update(COLUMNS="80", NO_COLOR="1")
    for each, paths in GOLDEN.items():
        with tempfile.TemporaryDirectory() as place:
            (SCREENS / f"{each}.txt").write_text(screen(verdict(paths, Path(place)), each), encoding="utf-8")
