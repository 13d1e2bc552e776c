"""The table of whole configurations: what ``crystalperf tune`` predicts for a case, and what reruns took.

A case runs unchanged, with the tuned configuration, and with its best single recommendation: the first of its
recommendations that can be tried.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.advice.score import is_held_out, noise_ms


@dataclass(frozen=True)
class Tuned:
    """A case with its tuned configuration and its best single recommendation.

    Attributes:
        claim: see lab.advice.claims.tuned.
        single: kind of the best single recommendation, or None.
        measured: the row of the configuration, or None.
        alone: the row of the single recommendation, or None.
    """

    case: str
    claim: Mapping[str, Any]
    single: str | None
    measured: Mapping[str, Any] | None
    alone: Mapping[str, Any] | None

    @property
    def predicted_gain_ms(self) -> float:
        """Recorded runtime less the predicted one."""
        return float(self.claim["runtime_ms"] - self.claim["predicted_ms"])

    @property
    def gain_ms(self) -> float:
        """Median runtime of the unchanged runs less that of the tuned ones."""
        assert self.measured is not None
        return float(statistics.median(self.measured["before_ms"]) - statistics.median(self.measured["after_ms"]))

    @property
    def noise_ms(self) -> float:
        """Half-width of the 90 % range of the mean gain."""
        assert self.measured is not None
        return noise_ms(self.measured["before_ms"], self.measured["after_ms"])

    @property
    def kept(self) -> bool:
        """Whether the measured runtime is in the predicted range, within noise.

        The prediction is for the recorded run, so its range is taken as a part of that run's time."""
        assert self.measured is not None
        before = statistics.median(self.measured["before_ms"])
        low, high = (before * each / self.claim["runtime_ms"] for each in self.claim["interval_ms"])
        return bool(low - self.noise_ms <= before - self.gain_ms <= high + self.noise_ms)

    @property
    def ahead_ms(self) -> tuple[float, float] | None:
        """Median runtime with the single recommendation less the tuned one, and its noise; None without both.

        Both are shifted to the same unchanged runtime if they were not made in the same turns."""
        if self.measured is None or self.alone is None:
            return None
        shift = statistics.median(self.measured["before_ms"]) - statistics.median(self.alone["before_ms"])
        alone = [each + shift for each in self.alone["after_ms"]]
        difference = statistics.median(alone) - statistics.median(self.measured["after_ms"])
        return difference, noise_ms(alone, list(self.measured["after_ms"]))


def tuned(claims: Mapping[str, Any], rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> Tuned:
    """A case's configuration and best single recommendation, with their rows by case and change."""
    case, configuration = claims["case"], claims["tuned"]
    single = next((each for each in claims["recommendations"] if each["change"]), None)
    return Tuned(
        case,
        configuration,
        single["kind"] if single else None,
        rows.get((case, configuration["change"])),
        rows.get((case, single["change"])) if single else None,
    )


def table(found: Sequence[Tuned]) -> list[str]:
    """The lines of the Markdown table, and its totals: all cases, and the held-out ones."""
    lines = [
        "| case | tuned | default [s] | tuned: predicted [s] | measured [s] | ± [s] | best single | measured [s] |"
        " as predicted |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ordered = sorted(found, key=lambda each: (is_held_out(each.case), each.case))
    lines += [_line(each) for each in ordered]
    for name, those in (("All", ordered), ("Held out", [each for each in ordered if is_held_out(each.case)])):
        lines += ["", f"{name}: {_totals(those)}"]
    return lines


def _line(found: Tuned) -> str:
    what = ", ".join(f"{change['name'].removeprefix('spark.')}={change['after']}" for change in found.claim["settings"])
    single = found.single or "none"
    if found.claim["change"] is None:
        return f"| {found.case} | nothing is noticeably better | | | | | {single} | | |"
    low, high = found.claim["interval_ms"]
    predicted = f"{found.claim['predicted_ms'] / 1e3:.1f} ({low / 1e3:.1f} to {high / 1e3:.1f})"
    if found.measured is None:
        return f"| {found.case} | {what} | | {predicted} | not run | | {single} | | |"
    before, after = (statistics.median(found.measured[key]) / 1e3 for key in ("before_ms", "after_ms"))
    cells = [f"{before:.1f}", predicted, f"{after:.1f}", f"{found.noise_ms / 1e3:.1f}", single]
    cells.append("" if found.alone is None else f"{statistics.median(found.alone['after_ms']) / 1e3:.1f}")
    return f"| {found.case} | {what} | {' | '.join(cells)} | {'yes' if found.kept else 'no'} |"


def _totals(found: Sequence[Tuned]) -> str:
    measured = [each for each in found if each.measured is not None]
    nothing = sum(each.claim["change"] is None for each in found)
    if not measured:
        return f"{len(found)} cases, {nothing} without a better configuration, none rerun."
    ahead = [each.ahead_ms for each in measured if each.ahead_ms is not None]
    ratio = sum(each.predicted_gain_ms for each in measured) / (sum(each.gain_ms for each in measured) or 1.0)
    return (
        f"{len(found)} cases, {nothing} without a better configuration, {len(measured)} rerun: "
        f"{sum(each.kept for each in measured)} took as long as predicted, "
        f"{sum(each.gain_ms < -each.noise_ms for each in measured)} longer than the default beyond noise; "
        f"{sum(by > noise for by, noise in ahead)} were faster than with the best single recommendation, "
        f"{sum(by < -noise for by, noise in ahead)} slower. "
        f"Mean predicted gain over mean measured gain: {ratio:.2f}."
    )
