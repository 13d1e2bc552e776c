"""Errors of predictions of sweeps, by predictor."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

OURS = "CrystalPerf"

_DRAWS, _SEED = 100_000, 20210714


@dataclass
class Scored:
    """Predictions compared with ground truth: relative errors by predictor; for ours also whether each range covers the
    truth, and its half width over the prediction."""

    off: dict[str, list[float]] = field(default_factory=dict)
    held: list[bool] = field(default_factory=list)
    half_widths: list[float] = field(default_factory=list)

    def take(self, who: str, predicted: float | None, truth: float) -> None:
        """Add a prediction, if there is one."""
        if predicted is not None and truth > 0:
            self.off.setdefault(who, []).append(predicted / truth - 1)

    def take_range(self, predicted: float, interval: tuple[float, float], truth: float) -> bool:
        """Add the range of one of our predictions; returns whether it covers the truth."""
        low, high = interval
        self.held.append(low <= truth <= high)
        self.half_widths.append((high - low) / 2 / predicted)
        return self.held[-1]

    def cells(self, who: str) -> str:
        """Cells of a table row: number of predictions, mean ± standard deviation of errors, median and worst, in %; for
        ours also the share of ranges that cover the truth, and the median of their half widths."""
        away = [abs(each) for each in self.off[who]]
        held, half = "", ""
        if who == OURS and self.held:
            held, half = f"{100 * statistics.mean(self.held):.0f}", f"{100 * statistics.median(self.half_widths):.0f}"
        middle = 100 * statistics.median(away)
        return f"{len(away)} | {spread(away)} | {middle:.1f} | {100 * max(away):.0f} | {held} | {half}"


def spread(shares: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in %: `8.8 ± 8.3`."""
    return f"{100 * statistics.mean(shares):.1f} ± {100 * statistics.pstdev(shares):.1f}"


def from_median(reruns_ms: Iterable[Sequence[float]]) -> list[float]:
    """|run / median − 1| of repeated runs of each configuration, corrected to deviations from the true median."""
    return [
        abs(time / statistics.median(times) - 1) * nearer(len(times))
        for times in reruns_ms
        if len(times) > 1
        for time in times
    ]


@cache
def nearer(count: int) -> float:
    """The mean ratio of a run's deviation from the true median to its deviation from the median of `count` runs that
    include it, for a normal distribution."""
    drawn = np.random.default_rng(_SEED).standard_normal((_DRAWS, count))
    to_own = np.abs(drawn - np.median(drawn, axis=1, keepdims=True)).mean()
    return math.sqrt(2 / math.pi) / float(to_own)
