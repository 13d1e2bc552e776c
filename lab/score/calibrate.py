"""Fit the constants of query.predict.interval to the tuning set: ``python -m lab calibrate --out DIR``.

The variance of repetitions comes from baseline runs of one sweep.  The error of a prediction is the excess of
log(actual / predicted) over the bounds by replays of other physics.  The model's variance is fitted to these errors by
maximum likelihood, in addition to the variances that a run estimates for itself.  The width then covers nine tenths of
the tuning set of each suite (split conformal prediction; the largest quantile of all suites): errors of one suite share
their baseline runs, so a common quantile would be too narrow for the worst jobs.  Baseline runs of all recorders count.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.query.predict.interval import CALIBRATED, Calibration, variances
from crystalperf.query.trace.records import Floats
from lab.score.pairs import Measured, noise
from lab.score.predictors import answer, execution, scenario_of

COVERED = 0.9
_MODELS = np.arange(0.005, 0.2001, 0.005)
_SLOPES = np.arange(0.0, 0.8001, 0.02)


@dataclass(frozen=True)
class _Seen:
    """One prediction of the tuning set: its log error beyond the bounds by other physics, the run's own variance, and
    |log(predicted / recorded)|."""

    left: float
    reported: float
    distance: float


def calibrate(known: Sequence[Measured], *, only_width: bool = False) -> tuple[Calibration, int]:
    """The constants, and the number of predictions that they are fitted to.

    With `only_width` the others stay unchanged, because few suites cannot separate the model's error from the variance
    of runs.
    """
    calibration = CALIBRATED
    if not only_width:
        calibration = replace(CALIBRATED, repetition=_repetition(known), model=0.0, slope=0.0)
    by_suite = [found for each in known if (found := _seen(each, calibration))]
    if not only_width:
        left, reported, distance = (
            np.array([getattr(one, name) for found in by_suite for one in found])
            for name in ("left", "reported", "distance")
        )
        model, slope = min(
            itertools.product(_MODELS, _SLOPES), key=lambda pair: _surprise(left, reported, distance, *pair)
        )
        calibration = replace(calibration, model=float(model), slope=float(slope))
    width = max(_width(found, calibration) for found in by_suite)
    return replace(calibration, coverage_width=width), sum(map(len, by_suite))


def _seen(known: Measured, calibration: Calibration) -> list[_Seen]:
    """A suite's predictions of the tuning set, without refusals."""
    found, itself = [], replace(calibration, model=0.0, slope=0.0)
    for one in known.scored:
        bases = [base for (sweep, _), several in known.bases.items() if sweep == one.sweep for base in several]
        for base in bases if one.role == "even" else ():
            given, run = answer(base, one), execution(base)
            if given.predicted_ms is None or given.interval_ms is None:
                continue
            facts = (given.runtime_ms, given.replayed_ms, given.predicted_ms, scenario_of(base, one))
            reported = [
                sum(variances(*facts, run.evidence, run.resources, each, bytes_known=run.volumes.record_bytes).values())
                for each in (itself, CALIBRATED)
            ]
            error = math.log(known.actual_ms[one.number] / given.predicted_ms)
            side = math.log(given.interval_ms[error > 0] / given.predicted_ms)
            physics = max(side**2 - CALIBRATED.coverage_width**2 * reported[1], 0.0)
            left = math.sqrt(max(error**2 - physics, 0.0))
            found.append(_Seen(left, reported[0], abs(math.log(given.predicted_ms / given.runtime_ms))))
    return found


def _width(found: Sequence[_Seen], calibration: Calibration) -> float:
    """The number of standard deviations that cover nine tenths of a suite's predictions."""
    apart = sorted(
        each.left / math.sqrt(each.reported + calibration.model**2 + (calibration.slope * each.distance) ** 2)
        for each in found
    )
    return apart[min(math.ceil(COVERED * (len(apart) + 1)), len(apart)) - 1]


def _surprise(error: Floats, known: Floats, distance: Floats, model: float, slope: float) -> float:
    """Minus the log likelihood of normal errors, up to a constant."""
    variance = known + model**2 + (slope * distance) ** 2
    return float((np.log(variance) + error**2 / variance).sum())


def _repetition(known: Sequence[Measured]) -> float:
    apart = [math.log(1 + each) for one in known for each in noise(one)]
    return statistics.pstdev(apart)
