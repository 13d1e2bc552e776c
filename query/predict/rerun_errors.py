"""What a job's own other runs say of a prediction: how far the model was off there, and so how far it is off here.

The model's error in a world is e = log(actual / predicted).  Before anything is known of the job, its variance is what
the interval says.  Errors of two worlds are alike as far as the worlds are: for log ratios x and x′ of the settings

    cov(e(x), e(x′)) = s(x) · s(x′) · c(x, x′) + r² + [one run] r²

s² is the variance of the model's own error, r² that between two runs of one job.  The first r² is the recorded run's,
which all predictions share; the second is that of the run which is compared.  c is the correlation that a Gaussian
kernel of length ℓ has between x and x′ once the error is known to be nothing where nothing changes: a rerun of the same
world tells how runs differ and nothing of the model, and a model that makes too much of twice the slots makes too much
of half of them the other way round.  Conditioned on the errors that were seen,
this is a Gaussian process (Rasmussen and Williams 2006, eq. 2.19): its mean corrects the prediction, its variance
narrows the interval.  The variance does not depend on what was measured, so it also says which run would tell most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crystalperf.query.predict.interval import CALIBRATED, Calibration
from crystalperf.query.trace.records import Floats

ALIKE = 2.8
"""ℓ, in log ratios.  On even configurations interval scores fall by less than 2 % beyond it, and by 7 % up to it
(research/2026-11-27-lab-commands-removed.md)."""

BELIEF = 5.0
"""How many pairs of runs the lab's variance between two runs weighs against those of the job's own."""


@dataclass(frozen=True)
class Guess:
    """A prediction as far as learning needs it.

    `log_ratios` are those of the world's settings, `predicted_ms` and `interval_ms` what is said without other runs.
    """

    log_ratios: Mapping[str, float]
    predicted_ms: float
    interval_ms: tuple[float, float]


@dataclass(frozen=True)
class Seen:
    """Another run of the job: what was predicted of its world from the recorded run, and how long it took."""

    guess: Guess
    actual_ms: float

    @property
    def error(self) -> float:
        """log(actual / predicted)."""
        return math.log(self.actual_ms / self.guess.predicted_ms)


def learned(guess: Guess, seen: Sequence[Seen], calibration: Calibration = CALIBRATED, alike: float = ALIKE) -> Guess:
    """The prediction in the light of other runs: corrected, and with the interval that is left."""
    shift, variance = _conditioned(guess, seen, calibration, alike)
    predicted_ms, width = guess.predicted_ms * math.exp(shift), calibration.width * math.sqrt(variance)
    ends = (predicted_ms * math.exp(-width), predicted_ms * math.exp(width))
    return Guess(guess.log_ratios, predicted_ms, ends)


def half_width(guess: Guess) -> float:
    """Half of an interval as a share of what is predicted; of one that is not even, as if it were."""
    low, high = guess.interval_ms
    return math.sqrt(high / low) - 1


def after_run(
    guess: Guess, seen: Sequence[Seen], candidate: Guess, calibration: Calibration = CALIBRATED, alike: float = ALIKE
) -> float:
    """The half-width that a prediction would have after one more run, in the candidate's world, as a share.

    What that run takes does not matter for it.
    """
    _, variance = _conditioned(guess, [*seen, Seen(candidate, candidate.predicted_ms)], calibration, alike)
    return math.exp(calibration.width * math.sqrt(variance)) - 1


def _conditioned(guess: Guess, seen: Sequence[Seen], calibration: Calibration, alike: float) -> tuple[float, float]:
    """Mean and variance of log(actual / predicted), given what was seen."""
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


def _covariance(some: Sequence[Guess], others: Sequence[Guess], calibration: Calibration, alike: float) -> Floats:
    """(some, others): covariance of the model's own error."""
    found = np.empty((len(some), len(others)))
    for row, one in enumerate(some):
        for column, other in enumerate(others):
            likeness = _likeness(one.log_ratios, other.log_ratios, alike)
            found[row, column] = _own(one, calibration) * _own(other, calibration) * likeness
    return found


def _likeness(one: Mapping[str, float], other: Mapping[str, float], alike: float) -> float:
    """c: how far the model's errors in two worlds go together, -1 to 1; 0 where one of them is the recorded one."""

    def near(some: Mapping[str, float], others: Mapping[str, float]) -> float:
        apart = math.hypot(*(some.get(key, 0.0) - others.get(key, 0.0) for key in {*some, *others}), 0.0)
        return math.exp(-((apart / alike) ** 2) / 2)

    left = math.sqrt((1 - near(one, {}) ** 2) * (1 - near(other, {}) ** 2))
    return (near(one, other) - near(one, {}) * near(other, {})) / left if left > 0 else 0.0


def _own(guess: Guess, calibration: Calibration) -> float:
    """s: the standard deviation of the model's own error, of what the interval says without the two runs'."""
    if not any(guess.log_ratios.values()):
        return 0.0
    low, high = guess.interval_ms
    whole = (math.log(high / low) / (2 * calibration.width)) ** 2
    return math.sqrt(max(whole - 2 * calibration.repetition**2, 0.0))


def _between_runs(seen: Sequence[Seen], calibration: Calibration) -> float:
    """r²: the lab's, and what runs of one and the same world differ by."""
    worlds: dict[tuple[tuple[str, float], ...], list[float]] = {}
    for each in seen:
        key = tuple(sorted((name, round(value, 6)) for name, value in each.guess.log_ratios.items() if value))
        worlds.setdefault(key, []).append(math.log(each.actual_ms))
    free = sum(len(times) - 1 for times in worlds.values())
    squares = sum(float(np.var(times) * len(times)) for times in worlds.values())
    return (BELIEF * calibration.repetition**2 + squares) / (BELIEF + free)
