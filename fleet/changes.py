"""Change detection: whether a job got slower, from a change of level in its noisy runtimes.

Runtimes scatter by factors rather than by seconds, so the test compares logarithms, and medians, which one outlier does
not move.  It tries every possible change point and takes the most significant one, if that exceeds the level that
multiple testing finds in noise; then it repeats on either side.  Only the last change is reported: a job that got
faster and then a little slower did get slower, and one that is fast again did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crystalperf.query.trace.records import Floats

MIN_EACH = 3
"""Minimum runs before and after a change."""

CLEAR, FEW = 4.3, 8.0
"""Threshold of a change in standard errors: CLEAR · (1 + FEW / runs), because few runs give a poor estimate of noise.
Some 1 % of jobs without a change then are false positives; `python -m crystalperf.fleet.changes` prints the rate, and
how many real changes are found."""

MIN_NOISE = 0.02
"""Minimum noise: runtimes on a real cluster vary at least that much."""

_MEDIAN = 1.2533
"""Standard error of a median, over that of a mean, of a normal distribution."""

_SIGMA = 1.4826
"""Standard deviation over the median of absolute deviations, of a normal distribution."""


@dataclass(frozen=True)
class Change:
    """From run `first` on, runs take `ratio` times as long as those from run `before` to it; runs count from 0.

    `noise` is the scatter of one run (0.1: 10 %).
    """

    before: int
    first: int
    ratio: float
    noise: float
    clearness: float
    """The change in standard errors, over the threshold: 1 or more is significant."""


def change(runtimes_ms: Sequence[float]) -> Change | None:
    """The last change of level in runtimes, in the order of their runs; None if there is none."""
    logs = np.log(np.asarray(runtimes_ms, dtype=np.float64))
    borders = [0, *_borders(logs), len(logs)]
    while len(borders) > 2:
        seen = [_step(logs, *three) for three in zip(borders, borders[1:], borders[2:], strict=False)]
        least = min(range(len(seen)), key=lambda number: seen[number].clearness)
        if seen[least].clearness >= 1:
            return seen[-1]
        del borders[least + 1]  # significant against all earlier runs, but not against the adjacent level
    return None


def _borders(logs: Floats) -> list[int]:
    """The change points: the most significant one, and those on either side of it, recursively."""
    places = range(MIN_EACH, len(logs) - MIN_EACH + 1)
    best = max((_step(logs, 0, first, len(logs)) for first in places), key=lambda each: each.clearness, default=None)
    if best is None or best.clearness < 1:
        return []
    first = best.first
    return [*_borders(logs[:first]), first, *(first + each for each in _borders(logs[first:]))]


def _step(logs: Floats, start: int, first: int, end: int) -> Change:
    before, after = logs[start:first], logs[first:end]
    was, now = np.median(before), np.median(after)
    noise = max(_noise(np.concatenate([before - was, after - now]), levels=2), MIN_NOISE)
    errors = abs(now - was) / (_MEDIAN * noise * math.sqrt(1 / len(before) + 1 / len(after)))
    return Change(start, first, math.exp(now - was), noise, float(errors) / (CLEAR * (1 + FEW / (end - start))))


def noise(runtimes_ms: Sequence[float]) -> float:
    """The scatter of one run around the median of all, as a standard deviation of logarithms."""
    logs = np.log(np.asarray(runtimes_ms, dtype=np.float64))
    return _noise(logs - np.median(logs), levels=1)


def _noise(apart: Floats, levels: int) -> float:
    """The scatter of the residuals around the medians of `levels` levels."""
    return float(_SIGMA * np.median(np.abs(apart)) * math.sqrt(len(apart) / max(len(apart) - levels, 1)))


def main() -> None:
    """Print the rate of false positives of simulated jobs, and of detected changes by a factor of 1.3.

    Runtimes scatter by 10 %, as a normal distribution or as one with heavy tails (Student's t with 3 degrees).
    """
    random, jobs = np.random.default_rng(0), 500
    print(
        f"{'runs':>5s} {'false, normal':>14s} {'false, tails':>14s} {'1.3x found':>12s}   of {jobs} simulated jobs each"
    )
    for runs in (6, 8, 10, 20, 50, 200):
        half = np.arange(runs) >= runs // 2
        shares = [
            sum(change(np.exp(0.1 * row + half * math.log(step)).tolist()) is not None for row in rows) / jobs
            for rows, step in (
                (random.standard_normal((jobs, runs)), 1.0),
                (random.standard_t(3, (jobs, runs)), 1.0),
                (random.standard_normal((jobs, runs)), 1.3),
            )
        ]
        print(f"{runs:5d} {shares[0]:14.3f} {shares[1]:14.3f} {shares[2]:12.3f}")


if __name__ == "__main__":
    main()
