"""Proof of whole configurations: what ``crystalperf tune`` predicts for a case, and what reruns measure.

A case runs unchanged, with the tuned configuration, and with its best single recommendation, in turns.  Limits are the
cores of the machine and the memory of the case.  As in lab.advice.reruns, a row holds durations only: predictions come
from the kept log with the present code.  Without a configuration that is noticeably better, there is nothing to rerun;
the table says so.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab.advice.applying import Applied
from lab.advice.cases import Case
from lab.advice.reruns import (
    JOBS,
    REPETITIONS,
    REPOSITORY,
    TIMEOUT_S,
    Rig,
    advised,
    change_id,
    duration_ms,
    submit,
    unchanged,
)
from lab.advice.score import is_held_out, noise_ms
from lab.errors import LabError

ROWS = "tuning.jsonl"

RANKS = 3
"""The best single recommendation is the first of so many that can be tried."""


@dataclass(frozen=True)
class Tuned:
    """A case with its tuned configuration and its best single recommendation.

    Attributes:
        answer: the answer of ``tune --json``.
        changed: the case with the configuration; None if nothing is noticeably better.
        single: the first recommendation that can be tried, and the case with it; None without one.
    """

    case: Case
    answer: dict[str, Any]
    changed: Applied | None
    single: tuple[dict[str, Any], Applied] | None

    @property
    def key(self) -> tuple[str, str, str]:
        """Its row has these as well: case, change, and single recommendation."""
        single = "" if self.single is None else change_id(self.single[1])
        return self.case.name, "" if self.changed is None else change_id(self.changed), single


def tuned(case: Case, log: Path, cores: int) -> Tuned:
    """A case as its log's answers change it."""
    answer = tune(log, cores, case.conf.get("spark.driver.memory", "2g"))
    changed = applied((JOBS / case.file).read_text(), answer) if answer["settings"] else None
    single = next((each for each in advised(case, log, cores, RANKS) if each[1].tried), None)
    return Tuned(case, answer, changed, single)


def tune(log: Path, cores: int, memory: str) -> dict[str, Any]:
    """The answer of ``crystalperf tune --json`` for a log."""
    command = [sys.executable, "-m", "crystalperf", "tune", str(log), "--limits", f"cores={cores},memory={memory}"]
    with TemporaryDirectory() as home:
        environment = os.environ | {"CRYSTALPERF_HOME": home, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(
            [*command, "--json"], capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False
        )
    if done.returncode:
        raise LabError(f"crystalperf tune failed: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def applied(text: str, answer: dict[str, Any]) -> Applied:
    """A program and its arguments with a tuned configuration: its lines on the command line, and those that the program
    sets also there."""
    arguments: list[str] = []
    for setting in answer["settings"]:
        for change in setting["settings"]:
            name, value = change["name"], str(change["after"])
            if change["set_by"] in ("program", "unclear"):
                text = re.sub(rf'\.config\("{re.escape(name)}", "[^"]*"\)', f'.config("{name}", "{value}")', text)
            arguments += ["--master", value] if name == "spark.master" else ["--conf", f"{name}={value}"]
    return Applied(text, tuple(arguments), "tuned", True)


def measure(found: Tuned, rig: Rig) -> dict[str, Any]:
    """The row of a case: durations in ms of the unchanged, the tuned and the singly changed run, in turns."""
    variants = {"before_ms": unchanged(found.case), "tuned_ms": found.changed}
    if found.single is not None:
        variants["single_ms"] = found.single[1]
    took: dict[str, list[float]] = {name: [] for name in ("before_ms", "tuned_ms", "single_ms")}
    for _ in range(REPETITIONS):
        for name, each in variants.items():
            if each is not None:
                took[name].append(duration_ms(submit(found.case, each, rig)))
    case, change, single = found.key
    return {"case": case, "change": change, "single": single, **took, "date": time.strftime("%Y-%m-%d")}


def read_rows(folder: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The rows of a folder by what identifies them."""
    file = folder / ROWS
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {(row["case"], row["change"], row["single"]): row for row in rows}


def table(found: list[Tuned], rows: dict[tuple[str, str, str], dict[str, Any]]) -> list[str]:
    """The lines of the Markdown table, and its totals: all cases, and the held-out ones."""
    lines = [
        "| case | tuned | default [s] | tuned: predicted [s] | measured [s] | ± [s] | best single | measured [s] |"
        " as predicted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ordered = sorted(found, key=lambda each: (is_held_out(each.case.name), each.case.name))
    lines += [_line(each, rows.get(each.key)) for each in ordered]
    for name, those in (("All", ordered), ("Held out", [each for each in ordered if is_held_out(each.case.name)])):
        lines += ["", f"{name}: {_totals(those, rows)}"]
    return lines


def _line(found: Tuned, row: dict[str, Any] | None) -> str:
    run = found.answer["runs"][0]
    what = ", ".join(
        f"{change['name'].removeprefix('spark.')}={change['after']}"
        for setting in found.answer["settings"]
        for change in setting["settings"]
    )
    single = "none" if found.single is None else found.single[0]["kind"]
    if found.changed is None:
        return f"| {found.case.name} | nothing is noticeably better | | | | | {single} | | |"
    low, high = run["interval_ms"]
    predicted = f"{run['predicted_ms'] / 1e3:.1f} ({low / 1e3:.1f} to {high / 1e3:.1f})"
    if row is None:
        return f"| {found.case.name} | {what} | | {predicted} | not run | | {single} | | |"
    before, after, alone = (statistics.median(row[key]) if row[key] else None for key in _COLUMNS)
    assert before is not None
    assert after is not None
    noise = noise_ms(row["before_ms"], row["tuned_ms"])
    cells = [f"{before / 1e3:.1f}", predicted, f"{after / 1e3:.1f}", f"{noise / 1e3:.1f}", single]
    cells.append("" if alone is None else f"{alone / 1e3:.1f}")
    return f"| {found.case.name} | {what} | {' | '.join(cells)} | {'yes' if _is_kept(found, row) else 'no'} |"


_COLUMNS = ("before_ms", "tuned_ms", "single_ms")


def _is_kept(found: Tuned, row: dict[str, Any]) -> bool:
    """Whether the measured change of the runtime is in the predicted range, within noise.

    The prediction is for the recorded run, the measured change for the unchanged runs next to the tuned ones."""
    run = found.answer["runs"][0]
    before, after = statistics.median(row["before_ms"]), statistics.median(row["tuned_ms"])
    noise = noise_ms(row["before_ms"], row["tuned_ms"])
    low, high = (before * each / run["runtime_ms"] for each in run["interval_ms"])
    return bool(low - noise <= after <= high + noise)


def _totals(found: list[Tuned], rows: dict[tuple[str, str, str], dict[str, Any]]) -> str:
    measured = [(each, rows[each.key]) for each in found if each.changed is not None and each.key in rows]
    nothing = sum(each.changed is None for each in found)
    if not measured:
        return f"{len(found)} cases, {nothing} without a better configuration, none rerun."
    claims, savings, hurts, better, worse = [], [], 0, 0, 0
    for each, row in measured:
        run = each.answer["runs"][0]
        before, after = statistics.median(row["before_ms"]), statistics.median(row["tuned_ms"])
        claims.append(run["runtime_ms"] - run["predicted_ms"])
        savings.append(before - after)
        hurts += after - before > noise_ms(row["before_ms"], row["tuned_ms"])
        if row["single_ms"]:
            noise = noise_ms(row["single_ms"], row["tuned_ms"])
            difference = statistics.median(row["single_ms"]) - after
            better, worse = better + (difference > noise), worse + (difference < -noise)
    kept = sum(_is_kept(each, row) for each, row in measured)
    return (
        f"{len(found)} cases, {nothing} without a better configuration, {len(measured)} rerun: {kept} took as long as"
        f" predicted, {hurts} longer than the default beyond noise; {better} were faster than with the best single"
        f" recommendation, {worse} slower. Mean predicted gain over mean measured gain: "
        f"{sum(claims) / (sum(savings) or 1.0):.2f}."
    )
