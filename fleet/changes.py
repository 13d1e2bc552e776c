"""Whether a job got slower: a change of level in its runtimes, told from their noise.

Runtimes scatter by factors rather than by seconds, so logarithms are compared, and medians, which a single odd run does
not move.  Every place where the level may have changed is tried, and the clearest counts, if it is clearer than what
trying them all finds in noise; then the same on either side of it.  What is told is the last change: a job that got
faster and then a little slower did get slower, and one that is fast again did not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crystalperf.query.trace.records import Floats

LEAST_EACH = 3
"""Fewest runs before a change and after it."""

CLEAR, FEW = 4.3, 8.0
"""Standard errors that a change must have: CLEAR · (1 + FEW / runs), for of few runs the noise is badly known.  Of jobs
without a change some 1 % then have one; `python -m crystalperf.fleet.changes` prints how many, and how many real ones
are found."""

LEAST_NOISE = 0.02
"""Of runtimes that hardly scatter: no cluster is steadier than that for long."""

_MEDIAN = 1.2533
"""Standard error of a median, over that of a mean, of a normal distribution."""

_SIGMA = 1.4826
"""Standard deviation over the median of absolute deviations, likewise."""


@dataclass(frozen=True)
class Change:
    """From run `first` on, runs take `ratio` times as long as those from run `before` to it; counted from 0.

    One run scatters by `noise` (0.1: 10 %).
    """

    before: int
    first: int
    ratio: float
    noise: float
    clearness: float
    """Standard errors that the change has, over those that it must have: 1 and more is clear."""


def change(runtimes_ms: Sequence[float]) -> Change | None:
    """The last change of level in runtimes in the order of their runs; None where there is none."""
    logs = np.log(np.asarray(runtimes_ms, dtype=np.float64))
    borders = [0, *_borders(logs), len(logs)]
    while len(borders) > 2:
        seen = [_step(logs, *three) for three in zip(borders, borders[1:], borders[2:], strict=False)]
        least = min(range(len(seen)), key=lambda number: seen[number].clearness)
        if seen[least].clearness >= 1:
            return seen[-1]
        del borders[least + 1]  # clear beside all that came before, and not beside the level next to it
    return None


def _borders(logs: Floats) -> list[int]:
    """Where levels change: at the clearest place, and within what is on either side of it."""
    places = range(LEAST_EACH, len(logs) - LEAST_EACH + 1)
    best = max((_step(logs, 0, first, len(logs)) for first in places), key=lambda each: each.clearness, default=None)
    if best is None or best.clearness < 1:
        return []
    first = best.first
    return [*_borders(logs[:first]), first, *(first + each for each in _borders(logs[first:]))]


def _step(logs: Floats, start: int, first: int, end: int) -> Change:
    before, after = logs[start:first], logs[first:end]
    was, now = np.median(before), np.median(after)
    noise = max(_noise(np.concatenate([before - was, after - now]), levels=2), LEAST_NOISE)
    errors = abs(now - was) / (_MEDIAN * noise * math.sqrt(1 / len(before) + 1 / len(after)))
    return Change(start, first, math.exp(now - was), noise, float(errors) / (CLEAR * (1 + FEW / (end - start))))


def noise(runtimes_ms: Sequence[float]) -> float:
    """How much one run scatters around the median of all, as a standard deviation of logarithms."""
    logs = np.log(np.asarray(runtimes_ms, dtype=np.float64))
    return _noise(logs - np.median(logs), levels=1)


def _noise(apart: Floats, levels: int) -> float:
    """The scatter of what is left of runtimes beside the medians of so many levels."""
    return float(_SIGMA * np.median(np.abs(apart)) * math.sqrt(len(apart) / max(len(apart) - levels, 1)))


def main() -> None:
    """Print how often made jobs without a change have one, and how often one of 1.3 times is found.

    Runtimes scatter by 10 %, as a normal distribution or as one with heavy tails (Student's t with 3 degrees).
    """
    random, jobs = np.random.default_rng(0), 500
    print(f"{'runs':>5s} {'false, normal':>14s} {'false, tails':>14s} {'1.3x found':>12s}   of {jobs} made jobs each")
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
