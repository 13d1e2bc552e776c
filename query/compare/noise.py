"""Whether a difference between runs of one job is more than noise: ``difference``.

Logarithms of durations are compared, because relative differences multiply.  Each side's centre is its median, so one
slow run hardly moves it.  The spread of single runs is pooled from both sides and from the usual spread of such jobs,
a prior that counts as `weight` runs (empirical Bayes: the moderated t statistic of Smyth, 2004).  With one run a side
only the prior is left.

`spread.csv` has the priors by kind of job; ``python -m lab.score.gate --fit`` writes it from repeated runs of the lab.
The range covers repeated runs on the same machines.  It does not cover a change of the machines between the two sides.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.noise import Change, Difference, Source
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Floats

Measure = Literal["runtime", "step", "latency", "throughput"]

RANGE = 0.9
"""Probability of a range."""

ALARM = 0.95
"""Probability of the range that must exclude an equal duration before a change counts as one: of 100 comparisons
without a change, 5 would have one."""

FARTHEST = 2.5
"""A run farther from its side's median than so many standard deviations counts as that far: one slow run does not make
all others look noisy."""

ANY = "*"


@frozen
class Spread:
    """The spread of repeated runs of a kind of job.

    `deviation` is the standard deviation of log durations.  `weight` is the number of a job's own runs that count as
    much as it does.  `groups` of repeated runs, `runs` in total, are its basis.
    """

    deviation: float
    weight: float
    groups: int
    runs: int


def kind_of(framework: str, measure: Measure) -> str:
    """The kind of job for ``difference``: a framework, by its name in the registry, and the duration measured."""
    return f"{framework} {measure}"


@cache
def spreads() -> dict[str, Spread]:
    """The usual spreads by kind of job."""
    text = files(__package__).joinpath("spread.csv").read_text(encoding="utf-8")
    return {
        row["kind"]: Spread(float(row["deviation"]), float(row["weight"]), int(row["groups"]), int(row["runs"]))
        for row in csv.DictReader(io.StringIO(text))
    }


def usual(kind: str) -> Spread:
    """The spread of a kind of job; for an unknown kind the one of its framework's jobs, or of all jobs."""
    known = spreads()
    names = (kind, f"{kind.split()[0]} {ANY}", f"{ANY} {ANY}")
    return next(known[name] for name in names if name in known)


def difference(before_ms: Sequence[float], after_ms: Sequence[float], kind: str) -> Difference:
    """The difference between the durations of two sides' runs, ms, with its 90 % range.

    `kind` is that of ``kind_of``.  Raises ValueError if a side has no runs, or a duration that is not above 0.
    """
    if not before_ms or not after_ms or min(*before_ms, *after_ms) <= 0:
        raise ValueError("each side needs a run, and each run a duration above 0")
    sides = [np.log(np.asarray(each, dtype=np.float64)) for each in (before_ms, after_ms)]
    error, freedom = standard_error(sides, usual(kind))
    middle = [median(each) for each in sides]
    change = middle[1] - middle[0]
    reach, alarm = (error * quantile((1 + each) / 2, freedom) for each in (RANGE, ALARM))
    verdict: Change = "no change" if abs(change) <= alarm else "longer" if change > 0 else "shorter"
    repeated: Source = "repeated runs" if max(len(before_ms), len(after_ms)) > 1 else "typical spread"
    return Difference(
        statistics.median(before_ms),
        statistics.median(after_ms),
        math.exp(change),
        math.exp(change - reach),
        math.exp(change + reach),
        repeated,
        len(before_ms),
        len(after_ms),
        verdict,
    )


def runs_to_decide(
    before_ms: Sequence[float], after_ms: Sequence[float], kind: str, limit: float, most: int
) -> int | None:
    """The least number of runs a side whose 90 % range would exclude the ratio `limit`, if medians and spread stay as
    they are; None if it is more than `most`."""
    sides, prior = [np.log(np.asarray(each, dtype=np.float64)) for each in (before_ms, after_ms)], usual(kind)
    error, _ = standard_error(sides, prior)
    deviation = error / math.sqrt(sum(of_median(len(each)) for each in sides))
    away = abs((median(sides[1]) - median(sides[0])) - math.log(limit))
    for runs in range(2, most + 1):
        reach = quantile((1 + RANGE) / 2, prior.weight + 2 * (runs - 1)) * deviation * math.sqrt(2 * of_median(runs))
        if reach < away:
            return runs
    return None


def standard_error(sides: Sequence[Floats], prior: Spread) -> tuple[float, float]:
    """The standard error of the difference of two sides' medians of log durations, and its degrees of freedom."""
    own = sum(len(each) - 1 for each in sides)
    squares = _squares(sides, prior) if own else 0.0
    freedom = prior.weight + own
    variance = (prior.weight * prior.deviation**2 + squares) / freedom
    return math.sqrt(variance * sum(of_median(len(each)) for each in sides)), freedom


def _squares(sides: Sequence[Floats], prior: Spread) -> float:
    """The sum of squared deviations from each side's median, (runs − 1) of them, with far ones cut off."""
    away = [np.abs(each - median(each)) for each in sides if len(each) > 1]
    # A median of deviations is 0.67 standard deviations; few runs alone would make it 0.
    limit = FARTHEST * max(median(np.concatenate(away)) / 0.6745, prior.deviation)
    return sum(
        float((np.minimum(each, limit) ** 2).sum()) * (len(each) - 1) / (len(each) * deviations_of_median(len(each)))
        for each in away
    )


def of_median(runs: int) -> float:
    """The variance of the median of normal values, in units of a single value's; within 1.5 %."""
    return 1 / runs if runs <= 2 else math.pi / 2 / (runs + (0.46 if runs % 2 else 1.3))


def deviations_of_median(runs: int) -> float:
    """The mean square of the deviations of normal values from their own median, in units of their variance."""
    return 1 + of_median(runs) - 2 / runs


@cache
def quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t distribution, for a probability above one half."""
    angle = np.linspace(0.0, math.pi / 2, 20_001)  # t = √freedom · tan(angle)
    density = np.cos(angle) ** (freedom - 1)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(freedom) * math.tan(float(np.interp(2 * probability - 1, below / below[-1], angle)))
