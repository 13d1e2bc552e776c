"""Scores of recommendations: claims compared with measured savings."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

_T_90 = {2: 6.314, 3: 2.920, 4: 2.353, 5: 2.132}
"""Student's t for a two-sided 90 % range, by number of pairs."""


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
    def saves_a_third(self) -> bool:
        """Whether it saves at least a third of its claim: of the point, or of the middle of the range."""
        return self.saved_ms >= self.claimed_ms / 3

    @property
    def claimed_ms(self) -> float:
        """The point of the claim; the middle of its range if it has none."""
        if self.claim_ms is not None:
            return self.claim_ms
        return sum(self.range_ms) / 2 if self.range_ms else 0.0


def proof(row: dict[str, Any]) -> Proof | None:
    """The proof of a row; None if nothing was rerun."""
    before, after = row["before_ms"], row["after_ms"]
    if not before:
        return None
    differences = [one - other for one, other in zip(before, after, strict=True)]
    spread = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    saving = row["saving"] or {}
    bounds = saving.get("range_ms")
    return Proof(
        row["case"],
        row["kind"],
        statistics.median(before),
        saving.get("ms"),
        (bounds[0], bounds[1]) if bounds else None,
        statistics.median(before) - statistics.median(after),
        _T_90.get(len(differences), 2.0) * spread,
    )


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The lines of the Markdown table, and the totals."""
    lines = [
        "| case | recommendation | claims [s] | saved [s] | ± [s] | of [s] | as claimed |",
        "|---|---|---|---|---|---|---|",
    ]
    proofs = []
    for row in sorted(rows, key=lambda row: (row["rank"], row["case"])):
        shown = proof(row)
        if shown is None:
            lines.append(f"| {row['case']} | {row['kind'] or 'none'} | | | | | {row['how']} |")
            continue
        proofs.append(shown)
        word = "yes" if shown.kept else "hurts" if shown.hurts else "no"
        cells = (f"{shown.saved_ms / 1e3:.1f}", f"{shown.noise_ms / 1e3:.1f}", f"{shown.before_ms / 1e3:.1f}")
        lines.append(f"| {row['case']} | {row['kind']} | {_claim(shown)} | {' | '.join(cells)} | {word} |")
    return [*lines, "", *_totals(proofs, len(rows))]


def _claim(shown: Proof) -> str:
    point = "" if shown.claim_ms is None else f"{shown.claim_ms / 1e3:.1f}"
    if shown.range_ms is None:
        return point
    least, most = shown.range_ms
    return f"{point} ({least / 1e3:.1f} to {most / 1e3:.1f})".strip()


def _totals(proofs: list[Proof], rows: int) -> list[str]:
    if not proofs:
        return [f"{rows} recommendations, none of them rerun."]
    pointed = [shown for shown in proofs if shown.claim_ms is not None]
    ratio = sum(shown.claimed_ms for shown in pointed) / (sum(shown.saved_ms for shown in pointed) or 1)
    return [
        f"{rows} recommendations, {len(proofs)} rerun: {sum(shown.kept for shown in proofs)} saved what they claim, "
        f"{sum(not shown.saves_a_third for shown in proofs)} less than a third of it, "
        f"{sum(shown.hurts for shown in proofs)} made the run longer beyond noise.",
        f"Mean claim over mean saving, of {len(pointed)} claims with a point: {ratio:.2f}.",
    ]
