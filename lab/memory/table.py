"""The table: the heap that one roomy run shows to be safe, next to the smallest that works."""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from crystalperf.query import profile
from crystalperf.query.frameworks.spark.needs import Needs, needs
from lab.memory.search import SLOWER, STEP

MIB = 1 << 20
NEAR = 1.3
"""A safe heap is near the smallest that works if it is at most this many times as large."""


@dataclass(frozen=True)
class Compared:
    """A job: what the log of its roomy run says, and what the runs in smaller heaps showed, MiB."""

    job: str
    tuning: bool
    used: float
    safe: int
    needed: float
    smallest: int
    works: bool
    """Whether the safe heap is at least the smallest that works."""

    @property
    def near(self) -> bool:
        return self.safe <= NEAR * self.smallest


def recorded_needs(out: Path, job: str, *, sampled: bool) -> Needs:
    """The needs by the log of a job's roomy run, with `sampled` also by the recording of its heap."""
    files = [out / "logs" / job]
    if sampled and (recording := out / "logs" / f"{job}.jfr").exists():
        files.append(recording)
    with tempfile.TemporaryDirectory() as folder:
        run = profile(files, output=Path(folder) / "run.duckdb")
        with duckdb.connect(str(run.path), read_only=True) as connection:
            properties = dict(connection.execute("SELECT properties FROM runs").fetchall()[0][0])
            found = needs(connection, properties)
    assert found is not None
    return found


def compared(out: Path, row: dict[str, Any], *, sampled: bool = False) -> Compared:
    """The comparison of a row."""
    found = recorded_needs(out, row["job"], sampled=sampled)
    safe = math.ceil(found.safe_bytes / MIB)
    smallest = row["smallest_mib"]
    return Compared(
        row["job"], row["tuning"], found.used_bytes / MIB, safe, found.needed_bytes / MIB, smallest, safe >= smallest
    )


def table(out: Path, rows: list[dict[str, Any]], checks: list[dict[str, Any]], *, sampled: bool = False) -> list[str]:
    """The lines of the Markdown table, and the totals of each half."""
    heads = ["job", "half", "in use [MiB]", "safe", "no more spills", "smallest that works", "safe / smallest"]
    heads += ["time in safe"] if checks else []
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    roomy = {row["job"]: row["roomy"]["cpu_s"] for row in rows}
    ran = {(each["job"], each["heap_mib"]): each for each in checks}
    found = sorted((compared(out, row, sampled=sampled) for row in rows), key=lambda each: (not each.tuning, each.job))
    for each in found:
        cells = (
            each.job, "tune" if each.tuning else "score", f"{each.used:.0f}", str(each.safe), f"{each.needed:.0f}",
            str(each.smallest), f"{each.safe / each.smallest:.2f}",
            _ended(ran.get((each.job, each.safe)), roomy[each.job]),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells[: len(heads)])} |")
    lines.append("")
    for tuning in (True, False):
        half = [each for each in found if each.tuning is tuning]
        if half:
            lines.append(
                f"{'Tuning' if tuning else 'Scoring'} half, {len(half)} jobs: {sum(each.works for each in half)} safe"
                f" heaps work (no error, at most {SLOWER:g} times the CPU time), {sum(each.near for each in half)} are"
                f" within 30 % of the smallest that works (tried in steps of {STEP - 1:.0%})."
            )
    return lines


def _ended(check: dict[str, Any] | None, roomy_s: float) -> str:
    """How the run with the safe heap ended, and its CPU time."""
    if check is None:
        return ""
    return f"{check['cpu_s'] / roomy_s:.2f}x" if check["ended"] == "well" else str(check["ended"])
