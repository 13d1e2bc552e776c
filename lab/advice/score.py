"""Scores of recommendations: claims compared with measured savings."""

from __future__ import annotations

import hashlib
import statistics
from dataclasses import dataclass
from typing import Any

_T_90 = {2: 6.314, 3: 2.920, 4: 2.353, 5: 2.132}
"""Student's t for a two-sided 90 % range, by number of pairs."""


@dataclass(frozen=True)
class Row:
    """A recommendation of a case and, if it was rerun, the durations.

    Attributes:
        rank: 1 for the first recommendation.
        claim: see lab.advice.claims.recommended; None if the case got no recommendation.
        measured: the row of its change, or None.
    """

    case: str
    rank: int
    claim: dict[str, Any] | None
    measured: dict[str, Any] | None


def is_held_out(case: str) -> bool:
    """Whether a case is only scored, and never read for changes: sha256(name) ends in an odd hex digit."""
    return int(hashlib.sha256(case.encode()).hexdigest()[-1], 16) % 2 == 1


@dataclass(frozen=True)
class Proof:
    """A recommendation that was applied and rerun.

    Attributes:
        claim_ms: point of the claim, or None where it claims at most a saving.
        range_ms: least and most that it claims.
        saved_ms: median runtime of the unchanged runs less that of the changed ones.
        noise_ms: half-width of the 90 % range of the paired differences' mean.
    """

    case: str
    kind: str
    before_ms: float
    claim_ms: float | None
    range_ms: tuple[float, float] | None
    saved_ms: float
    noise_ms: float

    @property
    def hurts(self) -> bool:
        """Whether the changed runs were longer beyond noise."""
        return self.saved_ms < -self.noise_ms

    @property
    def kept(self) -> bool:
        """Whether the saving is in the claimed range, within noise; a range from 0 also asks for a saving."""
        if self.range_ms is None:
            return self.saved_ms > self.noise_ms
        least, most = self.range_ms
        saves_something = self.saved_ms > min(self.noise_ms, 0.02 * self.before_ms)
        return saves_something and least - self.noise_ms <= self.saved_ms <= most + self.noise_ms

    @property
    def saves_little(self) -> bool:
        """Whether it saves less than a third of its claim: of the point, or of the middle of the range."""
        return self.saved_ms < self.claimed_ms / 3

    @property
    def claimed_ms(self) -> float:
        """The point of the claim; the middle of its range if it has none."""
        if self.claim_ms is not None:
            return self.claim_ms
        return sum(self.range_ms) / 2 if self.range_ms else 0.0


def proof(row: Row) -> Proof | None:
    """The proof of a row; None if nothing was rerun."""
    if row.measured is None or row.claim is None:
        return None
    before, after = row.measured["before_ms"], row.measured["after_ms"]
    saving = row.claim["saving"] or {}
    bounds = saving.get("range_ms")
    return Proof(
        row.case,
        row.claim["kind"],
        statistics.median(before),
        saving.get("ms"),
        (bounds[0], bounds[1]) if bounds else None,
        statistics.median(before) - statistics.median(after),
        noise_ms(before, after),
    )


def noise_ms(before: list[float], after: list[float]) -> float:
    """The half-width of the 90 % range of the paired differences' mean."""
    differences = [one - other for one, other in zip(before, after, strict=True)]
    spread = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return _T_90.get(len(differences), 2.0) * spread


def table(rows: list[Row]) -> list[str]:
    """The lines of the Markdown tables, by rank: each case, then the totals of all cases and of the held-out ones."""
    lines = []
    for rank in sorted({row.rank for row in rows}):
        ranked = sorted((row for row in rows if row.rank == rank), key=lambda row: (is_held_out(row.case), row.case))
        lines += [
            f"Recommendation {rank} of each case:",
            "",
            "| case | set | recommendation | claims [s] | saved [s] | ± [s] | of [s] | as claimed |",
            "|---|---|---|---|---:|---:|---:|---|",
            *(_line(row) for row in ranked),
            "",
            "| cases | recommendations | rerun | as claimed | saved less than a third | longer | mean claim / saving |",
            "|---|---:|---:|---:|---:|---:|---:|",
            _totals("all", ranked),
            _totals("held out", [row for row in ranked if is_held_out(row.case)]),
            "",
        ]
    return lines[:-1]


def _line(row: Row) -> str:
    kind = row.claim["kind"] if row.claim else "none"
    start = f"| {row.case} | {'held out' if is_held_out(row.case) else 'seen'} | {kind} |"
    shown = proof(row)
    if shown is None:
        how = "" if row.claim is None else "not rerun" if row.claim["change"] else row.claim["how"]
        return f"{start} {_claim(row.claim)} | | | | {how} |"
    word = "yes" if shown.kept else "hurts" if shown.hurts else "no"
    cells = (f"{shown.saved_ms / 1e3:.1f}", f"{shown.noise_ms / 1e3:.1f}", f"{shown.before_ms / 1e3:.1f}")
    return f"{start} {_claim(row.claim)} | {' | '.join(cells)} | {word} |"


def _claim(claim: dict[str, Any] | None) -> str:
    saving = (claim or {}).get("saving") or {}
    parts = ["guess:"] if saving.get("basis") == "guessed" else []
    if saving.get("ms") is not None:
        parts.append(f"{saving['ms'] / 1e3:.1f}")
    if saving.get("range_ms"):
        least, most = saving["range_ms"]
        parts.append(f"({least / 1e3:.1f} to {most / 1e3:.1f})")
    return " ".join(parts)


def _totals(name: str, rows: list[Row]) -> str:
    proofs = [shown for row in rows if (shown := proof(row))]
    pointed = [shown for shown in proofs if shown.claim_ms is not None]
    saved = sum(shown.saved_ms for shown in pointed)
    ratio = f"{sum(shown.claimed_ms for shown in pointed) / saved:.2f}" if saved > 0 else ""
    kept, little, longer = (sum(getattr(each, name) for each in proofs) for name in ("kept", "saves_little", "hurts"))
    return f"| {name} | {len(rows)} | {len(proofs)} | {kept} | {little} | {longer} | {ratio} |"
