"""The table: the heap that logs show to be safe, next to the smallest that works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.memory.search import SLOWER, STEP

NEAR = 1.3
"""A safe heap is near the smallest that works if it is at most this many times as large."""


@dataclass(frozen=True)
class Round:
    """A run in the heap that the log before showed to be safe: how it ended, and its CPU time per that of the roomy
    run, None if it did not end well."""

    heap_mib: int
    ended: str
    slower: float | None

    @property
    def works(self) -> bool:
        """Whether it ended well and about as fast."""
        return self.slower is not None and self.slower <= SLOWER

    @property
    def text(self) -> str:
        """The cell: the heap, and what the run took in it."""
        return f"{self.heap_mib}: {self.ended}" if self.slower is None else f"{self.heap_mib}: {self.slower:.2f}x"


@dataclass(frozen=True)
class Sized:
    """A job: its half, what the log of its roomy run shows (lab.memory.logs), the runs in safe heaps, and the smallest
    heap that works, MiB."""

    job: str
    tuning: bool
    needs: dict[str, int]
    rounds: tuple[Round, ...]
    smallest_mib: int

    @property
    def ratio(self) -> float:
        """The first safe heap by the smallest that works."""
        return self.needs["safe"] / self.smallest_mib

    @property
    def last_ratio(self) -> float:
        """The last safe heap that was tried by the smallest that works."""
        return self.rounds[-1].heap_mib / self.smallest_mib if self.rounds else self.ratio


def sized(row: dict[str, Any], checks: Sequence[dict[str, Any]]) -> Sized:
    """A job by its row, and the rows of all checks."""
    roomy_s = row["roomy"]["cpu_s"]
    mine = sorted((each for each in checks if each["job"] == row["job"]), key=lambda each: each["round"])
    rounds = tuple(
        Round(each["heap_mib"], each["ended"], each["cpu_s"] / roomy_s if each["ended"] == "well" else None)
        for each in mine
    )
    return Sized(row["job"], row["tuning"], row["needs"], rounds, row["smallest_mib"])


def table(found: Sequence[Sized]) -> list[str]:
    """The lines of the Markdown table, and the totals of each half."""
    heads = ["job", "half", "in use [MiB]", "no more spills", "safe: time in it", "last safe: time in it", "runs"]
    heads += ["smallest that works", "safe / smallest", "last safe / smallest"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    ordered = sorted(found, key=lambda each: (not each.tuning, each.job))
    for each in ordered:
        tried = [one.text for one in each.rounds] or [str(each.needs["safe"])]
        cells = [
            *(each.job, "tune" if each.tuning else "score"),
            *(str(each.needs["use"]), str(each.needs["no_more_spills"])),
            *(tried[0], tried[-1] if len(tried) > 1 else "", str(len(each.rounds))),
            *(str(each.smallest_mib), f"{each.ratio:.2f}", f"{each.last_ratio:.2f}"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    for tuning in (True, False):
        half = [each for each in ordered if each.tuning is tuning]
        if half:
            lines += ["", f"{'Tuning' if tuning else 'Scoring'} half, {_totals(half)}"]
    return lines


def _totals(half: Sequence[Sized]) -> str:
    tried = [one for each in half for one in each.rounds]
    near = sum(each.ratio <= NEAR for each in half)
    last_near = sum(each.last_ratio <= NEAR for each in half)
    return (
        f"{len(half)} jobs: {sum(one.works for one in tried)} of {len(tried)} runs in safe heaps worked (no error, at"
        f" most {SLOWER:g} times the CPU time); {near} first safe heaps are within 30 % of the smallest that works"
        f" (tried in steps of {STEP - 1:.0%}), {last_near} last ones."
    )
