"""Check predictions of untuned runs against physics: `python -m lab.checks.laws PATH…`.

Each log (or folder of logs) becomes a run; each setting is predicted at large and small ratios.  A table has
violations:

    more of a device costs time     a faster disk, network or CPU gives a longer runtime
    more slots cost time            more cores or workers do, by more than 2 % (list scheduling may have anomalies)
    a small change is a large one   1 % more or less of anything moves the runtime by more than 5 %
    faster than its work            less than the measured CPU time over all slots and their speed

The command exits with 1 if there is a violation.  Refused predictions are not violations; their number is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import duckdb

import crystalperf as cp
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.run import Run
from lab.checks.plainlog import logs_below
from lab.pages import cell, head

DEVICES, COUNTS = ("disk", "network", "cpu_speed"), ("cores", "workers")
RATIOS = (0.25, 0.5, 0.99, 1.0, 1.01, 2.0, 4.0, 8.0)
NEAR = (0.99, 1.01)

ROUNDING = 0.001
ANOMALY = 0.02
JUMP = 0.05

WORK = """
SELECT (SELECT coalesce(sum(own_cpu_ms), 0) FROM tasks), (SELECT coalesce(sum(slots), 0) FROM workers)
"""


@dataclass(frozen=True)
class Broken:
    """A violated law of a run: the setting, the ratios, and the error as a share of the runtime."""

    run: str
    law: str
    setting: str
    at: str
    share: float


@dataclass(frozen=True)
class Checked:
    """The result of a log: numbers of predictions and refusals, and the violations."""

    answered: int
    refused: int
    broken: tuple[Broken, ...]


def check(name: str, run: Run) -> Checked:
    """Predict all settings for one run."""
    recorded_ms = run.header().duration_ms
    unchanged = _predicted_ms(run, "cpu_speed=1x")
    with duckdb.connect(str(run.path), read_only=True) as connection:
        ((work_ms, slots),) = connection.execute(WORK).fetchall()
    answered = 0
    broken: list[Broken] = []
    for setting in (*DEVICES, *COUNTS):
        asked = {ratio: unchanged if ratio == 1 else _predicted_ms(run, f"{setting}={ratio:g}x") for ratio in RATIOS}
        reported = {ratio: found for ratio, found in asked.items() if found is not None}
        answered += len(reported)
        broken += against(name, setting, reported, recorded_ms)
        for ratio, found in reported.items():
            least = work_ms / (slots * (ratio if setting in ("cpu_speed", *COUNTS) else 1.0)) if slots else 0.0
            if found < least * (1 - ROUNDING):
                broken.append(Broken(name, "faster than its work", setting, f"{ratio:g}x", least / found - 1))
    return Checked(answered, len((*DEVICES, *COUNTS)) * len(RATIOS) - answered, tuple(broken))


def _predicted_ms(run: Run, setting: str) -> float | None:
    """The predicted runtime; None if refused, as for half a core or a device that the run does not have."""
    try:
        return run.predict([setting]).predicted_ms
    except CrystalPerfError:
        return None


def against(name: str, setting: str, reported: Mapping[float, float], runtime_ms: float | None) -> list[Broken]:
    """Check the laws about one setting, from its predictions by ratio."""
    found = []
    whole = runtime_ms or max(reported.values(), default=1.0)
    allowed, law = (
        (ROUNDING, "more of a device costs time") if setting in DEVICES else (ANOMALY, "more slots cost time")
    )
    far = [ratio for ratio in sorted(reported) if setting in DEVICES or ratio not in NEAR]
    for less, more in pairwise(far):
        share = (reported[more] - reported[less]) / whole
        if share > allowed:
            found.append(Broken(name, law, setting, f"{less:g}x to {more:g}x", share))
    for ratio in NEAR:
        if ratio in reported and 1.0 in reported and abs(share := (reported[ratio] - reported[1.0]) / whole) > JUMP:
            found.append(Broken(name, "a small change is a large one", setting, f"{ratio:g}x", share))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """The command of this module."""
    parser = argparse.ArgumentParser(description="Predictions against physics.")
    parser.add_argument("paths", nargs="+", type=Path, help="logs, or folders of them")
    asked = parser.parse_args(argv)
    runs = answered = refused = 0
    broken: list[Broken] = []
    with tempfile.TemporaryDirectory() as folder:
        logs = [log for path in asked.paths for log in logs_below(path)]
        for number, log in enumerate(logs):
            try:
                run = cp.profile([log], output=Path(folder) / f"{number}.duckdb")
            except CrystalPerfError:
                continue  # not a run; lab.checks.inputs prints the reason for each such file
            checked = check(log.name, run)
            runs += 1
            answered, refused = answered + checked.answered, refused + checked.refused
            broken += checked.broken
            print(f"{log.name}: {len(checked.broken)} of {checked.answered}", file=sys.stderr)
    lines = [f"{runs} runs, {answered} answers, {refused} refused; {len(broken)} break a law.", ""]
    lines += head("run | law | setting | at | >% of the runtime")
    lines += [
        f"| {cell(each.run)} | {each.law} | {each.setting} | {each.at} | {100 * each.share:+.1f} |"
        for each in sorted(broken, key=lambda each: -abs(each.share))
    ]
    print("\n".join(lines))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
