"""Whether a job got slower: a change of level in its runtimes, told from their noise.

Runtimes scatter by factors rather than by seconds, so logarithms are compared, and medians, which a single odd run does
not move.  Every place where the level may have changed is tried, and the clearest counts, if it is clearer than what
trying them all finds in noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from query.model.records import Floats

LEAST_EACH = 3
"""Fewest runs before a change and after it."""

CLEAR, FEW = 4.3, 8.0
"""Standard errors that a change must have: CLEAR · (1 + FEW / runs), for of few runs the noise is badly known.  Of jobs
without a change some 1 % then have one; `python -m fleet.changes` prints how many, and how many real ones are found."""

LEAST_NOISE = 0.02
"""Of runtimes that hardly scatter: no cluster is steadier than that for long."""

_MEDIAN = 1.2533
"""Standard error of a median, over that of a mean, of a normal distribution."""

_SIGMA = 1.4826
"""Standard deviation over the median of absolute deviations, likewise."""


@dataclass(frozen=True)
class Change:
    """From run number `first` on, runs take `ratio` times as long; one run scatters by `noise` (0.1: 10 %)."""

    first: int
    ratio: float
    noise: float
    errors: float
    """Standard errors that the change has."""


def change(runtimes_ms: Sequence[float]) -> Change | None:
    """The clearest change of level in runtimes in the order of their runs; None where there is none."""
    logs = np.log(np.asarray(runtimes_ms, dtype=np.float64))
    best: Change | None = None
    for first in range(LEAST_EACH, len(logs) - LEAST_EACH + 1):
        before, after = logs[:first], logs[first:]
        step = float(np.median(after) - np.median(before))
        noise = max(_noise(before, after), LEAST_NOISE)
        errors = abs(step) / (_MEDIAN * noise * math.sqrt(1 / len(before) + 1 / len(after)))
        if errors >= CLEAR * (1 + FEW / len(logs)) and (best is None or errors > best.errors):
            best = Change(first, math.exp(step), noise, errors)
    return best


def noise(runtimes_ms: Sequence[float]) -> float:
    """How much one run scatters around the median of all, as a standard deviation of logarithms."""
    logs = np.log(np.asarray(runtimes_ms, dtype=np.float64))
    return _noise(logs, logs[:0])


def _noise(before: Floats, after: Floats) -> float:
    apart = np.concatenate([each - np.median(each) for each in (before, after) if len(each)])
    free = max(len(apart) - (2 if len(after) else 1), 1)
    return float(_SIGMA * np.median(np.abs(apart)) * math.sqrt(len(apart) / free))


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
