"""Change detection: whether a job got slower, from a change of level in its noisy runtimes.

Runtimes scatter by factors rather than by seconds, so the test compares logarithms, and medians, which one outlier does
not move.  It tries every possible change point and takes the most significant one, if that exceeds the level that
multiple testing finds in noise; then it repeats on either side.  Only the last change is reported: a job that got
faster and then a little slower did get slower, and one that is fast again did not.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import Floats, Ints

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


@frozen
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
    best = _clearest(logs)
    if best is None or best.clearness < 1:
        return []
    first = best.first
    return [*_borders(logs[:first]), first, *(first + each for each in _borders(logs[first:]))]


def _clearest(logs: Floats) -> Change | None:
    """The most significant change point, of equal ones the first; None if there are too few runs.

    A step costs a sort of all runs, so only those are taken that may be the best: by their bounds, best first.
    """
    count, places = len(logs), np.arange(MIN_EACH, len(logs) - MIN_EACH + 1)
    if not len(places):
        return None
    was, now = _medians(logs)[places - 1], _medians(logs[::-1])[count - places - 1]
    noise = np.maximum(_least_noise(logs, places, was, now), MIN_NOISE)
    errors = np.abs(now - was) / (_MEDIAN * noise * np.sqrt(1 / places + 1 / (count - places)))
    bounds = errors / (CLEAR * (1 + FEW / count)) * (1 + 1e-9)
    best: Change | None = None
    for each in np.argsort(-bounds, kind="stable"):
        if best is not None and bounds[each] < best.clearness:
            break
        seen = _step(logs, 0, int(places[each]), count)
        if best is None or (seen.clearness, -seen.first) > (best.clearness, -best.first):
            best = seen
    return best


def _least_noise(logs: Floats, places: Ints, was: Floats, now: Floats) -> Floats:
    """A lower bound of the noise at each change point; `was` and `now` are the medians before and after it.

    The residuals are sorted at some points only.  Between such a point and a near one, the residuals of few runs change
    sides, and the others move by no more than the medians do.
    """
    count, bounds = len(logs), np.zeros(len(places))
    width = math.isqrt(len(places))
    for start in range(0, len(places), width):
        near = np.arange(start, min(start + width, len(places)))
        at = near[len(near) // 2]
        residuals = np.sort(np.abs(logs - np.where(np.arange(count) < places[at], was[at], now[at])))
        moved = np.maximum(np.abs(was[near] - was[at]), np.abs(now[near] - now[at]))
        rank = (count - 1) // 2 - np.abs(near - at)
        bounds[near] = np.where(rank >= 0, residuals[np.maximum(rank, 0)] - moved, 0.0)
    return _SIGMA * bounds * math.sqrt(count / max(count - 2, 1))


def _medians(values: Floats) -> Floats:
    """The median of the first value, of the first two, and so on."""
    ordered: list[float] = []
    found = np.empty(len(values))
    for number, value in enumerate(values.tolist()):
        insort(ordered, value)
        found[number] = (ordered[number // 2] + ordered[(number + 1) // 2]) / 2
    return found


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
