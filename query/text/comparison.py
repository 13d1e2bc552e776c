"""The sentences of a comparison, for every interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crystalperf.query.text.answers import capitalised

if TYPE_CHECKING:
    from crystalperf.query.results.comparison import Comparison
    from crystalperf.query.text.figures import TimeUnit


def headline(comparison: Comparison, unit: TimeUnit) -> str:
    """Whether the runtime changed beyond noise."""
    found = comparison.difference
    times = f"{unit.number(found.before_ms)} → {unit.text(found.after_ms)}"
    return f"{capitalised(found.verdict)}: {times} ({unit.change(found.after_ms, found.before_ms)})."


def range_sentence(comparison: Comparison) -> str:
    """The range of the ratio, and its basis."""
    found = comparison.difference
    return (
        f"90 % range of the ratio: {found.ratio_low:.2f} to {found.ratio_high:.2f}, from {found.source}"
        f" ({found.runs_before} before, {found.runs_after} after)."
    )
