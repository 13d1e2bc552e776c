"""Correction of a prediction by the model's errors in other runs of the same job.

The model's error in a scenario is e = log(actual / predicted).  Without other runs its variance is that of the
interval.  Errors in two scenarios are as similar as the scenarios: for log ratios x and x′ of the settings

    cov(e(x), e(x′)) = s(x) · s(x′) · c(x, x′) + r² + [one run] r²

s² is the variance of the model's own error, r² that between two runs of one job.  The first r² is the recorded run's,
which all predictions share; the second is the other run's.  c is the correlation of a Gaussian kernel of length ℓ
between x and x′, conditioned on an error of 0 if nothing changes: a rerun of the baseline shows how runs differ, but
not the model's error, and a model that overestimates the effect of twice the slots overestimates that of half of them
in the other direction.  Conditioned on the observed errors, this is a Gaussian process (Rasmussen and Williams 2006,
eq. 2.19): its mean corrects the prediction, its variance narrows the interval.  The variance does not depend on the
measured runtimes, so it also shows which further run narrows intervals most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.predict.interval import CALIBRATED, Calibration
from crystalperf.query.trace.records import Floats

ALIKE = 2.8
"""ℓ, in log ratios.  On the tuning set interval scores fall by less than 2 % beyond it, and by 7 % up to it
(research/2026-11-27-lab-commands-removed.md)."""

BELIEF = 5.0
"""Weight of the lab's variance between two runs, as a number of pairs of the job's own runs."""


@frozen
class PriorPrediction:
    """A prediction as the input of learned().

    `log_ratios` are those of the scenario's settings; `predicted_ms` and `interval_ms` are without other runs.
    """

    log_ratios: Mapping[str, float]
    predicted_ms: float
    interval_ms: tuple[float, float]


@frozen
class Observation:
    """Another run of the job: the prediction of its scenario from the recorded run, and its measured runtime, ms."""

    guess: PriorPrediction
    actual_ms: float

    @property
    def error(self) -> float:
        """log(actual / predicted)."""
        return math.log(self.actual_ms / self.guess.predicted_ms)


def rerun_correction(
    guess: PriorPrediction, seen: Sequence[Observation], calibration: Calibration = CALIBRATED, alike: float = ALIKE
) -> PriorPrediction:
    """The prediction conditioned on other runs: corrected, with the remaining interval."""
    shift, variance = _conditioned(guess, seen, calibration, alike)
    predicted_ms, width = guess.predicted_ms * math.exp(shift), calibration.coverage_width * math.sqrt(variance)
    ends = (predicted_ms * math.exp(-width), predicted_ms * math.exp(width))
    return PriorPrediction(guess.log_ratios, predicted_ms, ends)


def half_width(guess: PriorPrediction) -> float:
    """Half of an interval as a share of the prediction; an asymmetric interval counts as a symmetric one."""
    low, high = guess.interval_ms
    return math.sqrt(high / low) - 1


def after_run(
    guess: PriorPrediction,
    seen: Sequence[Observation],
    candidate: PriorPrediction,
    calibration: Calibration = CALIBRATED,
    alike: float = ALIKE,
) -> float:
    """The half-width of a prediction after one more run, in the candidate's scenario, as a share.

    It does not depend on that run's runtime.
    """
    _, variance = _conditioned(guess, [*seen, Observation(candidate, candidate.predicted_ms)], calibration, alike)
    return math.exp(calibration.coverage_width * math.sqrt(variance)) - 1


def _conditioned(
    guess: PriorPrediction, seen: Sequence[Observation], calibration: Calibration, alike: float
) -> tuple[float, float]:
    """Mean and variance of log(actual / predicted), conditioned on the observed runs."""
    between = _between_runs(seen, calibration)
    known = [each.guess for each in seen]
    if not known:
        return 0.0, _own(guess, calibration) ** 2 + 2 * between
    among = _covariance(known, known, calibration, alike) + between * (1 + np.eye(len(known)))
    with_it = _covariance([guess], known, calibration, alike)[0] + between
    weights = np.linalg.solve(among, with_it)
    before = _own(guess, calibration) ** 2 + 2 * between
    errors = np.array([each.error for each in seen])
    return float(weights @ errors), max(float(before - weights @ with_it), between)


def _covariance(
    some: Sequence[PriorPrediction], others: Sequence[PriorPrediction], calibration: Calibration, alike: float
) -> Floats:
    """Covariance of the model's own error between predictions, (some, others)."""
    found = np.empty((len(some), len(others)))
    for row, one in enumerate(some):
        for column, other in enumerate(others):
            likeness = _likeness(one.log_ratios, other.log_ratios, alike)
            found[row, column] = _own(one, calibration) * _own(other, calibration) * likeness
    return found


def _likeness(one: Mapping[str, float], other: Mapping[str, float], alike: float) -> float:
    """c: the correlation of the model's errors in two scenarios, -1 to 1; 0 if one of them is the baseline."""

    def near(some: Mapping[str, float], others: Mapping[str, float]) -> float:
        apart = math.hypot(*(some.get(key, 0.0) - others.get(key, 0.0) for key in {*some, *others}), 0.0)
        return math.exp(-((apart / alike) ** 2) / 2)

    left = math.sqrt((1 - near(one, {}) ** 2) * (1 - near(other, {}) ** 2))
    return (near(one, other) - near(one, {}) * near(other, {})) / left if left > 0 else 0.0


def _own(guess: PriorPrediction, calibration: Calibration) -> float:
    """s: the standard deviation of the model's own error, from the interval without the variance of two runs."""
    if not any(guess.log_ratios.values()):
        return 0.0
    low, high = guess.interval_ms
    whole = (math.log(high / low) / (2 * calibration.coverage_width)) ** 2
    return math.sqrt(max(whole - 2 * calibration.repetition**2, 0.0))


def _between_runs(seen: Sequence[Observation], calibration: Calibration) -> float:
    """r²: the lab's variance between runs, updated by differences between runs of the same scenario."""
    scenarios: dict[tuple[tuple[str, float], ...], list[float]] = {}
    for each in seen:
        key = tuple(sorted((name, round(value, 6)) for name, value in each.guess.log_ratios.items() if value))
        scenarios.setdefault(key, []).append(math.log(each.actual_ms))
    free = sum(len(times) - 1 for times in scenarios.values())
    squares = sum(float(np.var(times) * len(times)) for times in scenarios.values())
    return (BELIEF * calibration.repetition**2 + squares) / (BELIEF + free)
