"""How far off predictions of sweeps are, by who predicted."""

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
    """Predictions held against the truth: relative deviations by who predicted; of ours whether each range held, and
    half its width over the prediction."""

    off: dict[str, list[float]] = field(default_factory=dict)
    held: list[bool] = field(default_factory=list)
    half_widths: list[float] = field(default_factory=list)

    def take(self, who: str, predicted: float | None, truth: float) -> None:
        """A prediction, where there is one."""
        if predicted is not None and truth > 0:
            self.off.setdefault(who, []).append(predicted / truth - 1)

    def take_range(self, predicted: float, interval: tuple[float, float], truth: float) -> bool:
        """The range around a prediction of ours; whether it holds."""
        low, high = interval
        self.held.append(low <= truth <= high)
        self.half_widths.append((high - low) / 2 / predicted)
        return self.held[-1]

    def cells(self, who: str) -> str:
        """Of a row of a table: how many predictions, mean ± standard deviation of how far off, and worst, in %; of ours
        how many ranges hold, and the median of half their widths."""
        away = [abs(each) for each in self.off[who]]
        held, half = "", ""
        if who == OURS and self.held:
            held, half = f"{100 * statistics.mean(self.held):.0f}", f"{100 * statistics.median(self.half_widths):.0f}"
        return f"{len(away)} | {spread(away)} | {100 * max(away):.0f} | {held} | {half}"


def spread(shares: Sequence[float]) -> str:
    """Mean and standard deviation of shares, in %: `8.8 ± 8.3`."""
    return f"{100 * statistics.mean(shares):.1f} ± {100 * statistics.pstdev(shares):.1f}"


def from_median(reruns_ms: Iterable[Sequence[float]]) -> list[float]:
    """|run / median − 1| of runs of one configuration each, where there are several, as far as from the true median."""
    return [
        abs(time / statistics.median(times) - 1) * nearer(len(times))
        for times in reruns_ms
        if len(times) > 1
        for time in times
    ]


@cache
def nearer(count: int) -> float:
    """How many times as far a run is from the true median as from that of `count` runs it is one of, on average: drawn
    from a normal distribution."""
    drawn = np.random.default_rng(_SEED).standard_normal((_DRAWS, count))
    to_own = np.abs(drawn - np.median(drawn, axis=1, keepdims=True)).mean()
    return math.sqrt(2 / math.pi) / float(to_own)
