"""The constants of query.whatif.interval, from even configurations: ``python -m lab calibrate --out DIR``.

Repetition is what base runs of one sweep differ by.  The model's error is fitted by maximum likelihood to what is left
of log(actual / predicted) beside the variances that a run tells of itself; the width then holds nine tenths of the
even configurations (split conformal prediction's quantile, so a little more than nine tenths of few).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lab.score.pairs import SHIPPED, Measured, noise
from lab.score.predictors import answer, execution, world_of
from query.model.records import Floats
from query.whatif.interval import CALIBRATED, Calibration, variances

COVERED = 0.9
_MODELS = np.arange(0.005, 0.2001, 0.005)
_SLOPES = np.arange(0.0, 0.8001, 0.02)


def calibrate(known: Sequence[Measured]) -> tuple[Calibration, int]:
    """The constants, and the number of predictions that they rest on."""
    calibration = replace(CALIBRATED, repetition=_repetition(known), model=0.0, slope=0.0)
    errors, told, distances = [], [], []
    for each in known:
        for one in each.scored:
            if one.role != "even":
                continue
            for base in each.bases.get((one.sweep, SHIPPED[0]), ()):
                given, run = answer(base, one), execution(base)
                if given.predicted_ms is None:
                    continue
                variance = variances(
                    given.runtime_ms,
                    given.replayed_ms,
                    given.predicted_ms,
                    world_of(base, one),
                    run.evidence,
                    run.resources,
                    calibration,
                    bytes_known=run.volumes.tell_bytes,
                )
                errors.append(math.log(each.actual_ms[one.number] / given.predicted_ms))
                told.append(sum(variance.values()))
                distances.append(abs(math.log(given.predicted_ms / given.runtime_ms)))
    error, known_variance, distance = (np.array(values) for values in (errors, told, distances))
    model, slope = min(
        itertools.product(_MODELS, _SLOPES), key=lambda pair: _surprise(error, known_variance, distance, *pair)
    )
    deviation = np.sqrt(known_variance + model**2 + (slope * distance) ** 2)
    apart = np.sort(np.abs(error) / deviation)
    rank = min(math.ceil(COVERED * (len(apart) + 1)), len(apart))
    return replace(calibration, model=float(model), slope=float(slope), width=float(apart[rank - 1])), len(apart)


def _surprise(error: Floats, known: Floats, distance: Floats, model: float, slope: float) -> float:
    """Minus the log likelihood of normal errors, up to a constant."""
    variance = known + model**2 + (slope * distance) ** 2
    return float((np.log(variance) + error**2 / variance).sum())


def _repetition(known: Sequence[Measured]) -> float:
    apart = [math.log(1 + each) for one in known for each in noise(one)]
    return statistics.pstdev(apart)
