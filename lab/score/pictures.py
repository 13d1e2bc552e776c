"""One picture a suite: predicted against actual runtimes, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import ScalarFormatter

from lab.score.pairs import SHIPPED, Measured, Pair, pairs

_COLOURS = {"even": "#8a8a8a", "odd": "#0b6fa4"}
_MEANING = {"even": "even (intervals are calibrated on them)", "odd": "odd (scored only)"}


def draw(known: Measured, file: Path) -> None:
    """Write a suite's picture as SVG: each configuration's predictions over its runtime, seconds, and the 90 %
    intervals; the line is where both agree, the band 10 % to either side."""
    found = [pair for pair in pairs(known, SHIPPED) if pair.predicted_ms is not None and pair.interval_ms is not None]
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": known.suite.name, "font.size": 9}):
        figure, axes = plt.subplots(figsize=(5.2, 4.6))
        for role, colour in _COLOURS.items():
            _points(axes, [pair for pair in found if pair.configuration.role == role], colour, _MEANING[role])
        times = [side for pair in found for side in (pair.actual_ms, pair.predicted_ms or 0.0)]
        low, high = min(times) / 1.2e3, max(times) * 1.2e-3
        axes.plot([low, high], [low, high], color="black", linewidth=0.8)
        axes.fill_between(
            [low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="black", alpha=0.08, linewidth=0
        )
        axes.set(
            xscale="log",
            yscale="log",
            xlim=(low, high),
            ylim=(low, high),
            xlabel="actual runtime, s",
            ylabel="predicted runtime, s",
            title=f"{known.suite.name}: {len({pair.configuration.number for pair in found})} configurations",
        )
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(ScalarFormatter())
            axis.set_tick_params(which="minor", labelsize=7)
        axes.legend(loc="upper left", frameon=False)
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.tight_layout()
        figure.savefig(file, metadata={"Date": None})
        plt.close(figure)


def _points(axes: Axes, found: Sequence[Pair], colour: str, label: str) -> None:
    if not found:
        return
    actual = [pair.actual_ms / 1e3 for pair in found]
    predicted = [(pair.predicted_ms or 0.0) / 1e3 for pair in found]
    sides = [pair.interval_ms or (0.0, 0.0) for pair in found]
    below = [middle - side[0] / 1e3 for middle, side in zip(predicted, sides, strict=True)]
    above = [side[1] / 1e3 - middle for middle, side in zip(predicted, sides, strict=True)]
    axes.errorbar(
        actual, predicted, yerr=[below, above], fmt="o", markersize=3.5, color=colour, elinewidth=0.7, label=label
    )
