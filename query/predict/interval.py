"""Prediction intervals: the 90 % interval of a prediction, and the sources of its width.

Relative errors multiply, so each source of error is a variance of log(actual / predicted), and the variances add up:

    replay       the error of the baseline's replay against the recorded runtime
    repetition   two runs of one job differ, and a prediction compares two
    samples      shares of time from few samples, and time without samples
    labels       each function's class is drawn from its own probabilities
    model        the model's own error, which may grow with the distance from the recorded run
    physics      replays with the optimistic and the pessimistic effect of a changed device (query.simulate.transfers)

All but repetition and model are computed from the run.  `CALIBRATED` has the others: measured on the tuning set (even
configurations) of the lab's suites by `python -m lab calibrate`, which never reads the test set (odd configurations).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import Resource
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.scenario import Scenario

MAX_APART = 3.0
"""Maximum ratio of two bounds for a prediction between them; above it, only the bounds are reported."""

SOURCES = ("replay", "repetition", "samples", "labels", "model", "physics")


@frozen
class Calibration:
    """Errors that cannot be computed from one run; standard deviations of log runtimes.

    `repetition` is between runs of one job, `model` is of the model's error for small changes, and `slope` is added to
    it per unit of |log(predicted / recorded)|.  `coverage_width` is the number of standard deviations to either side
    that covers 90 % in each suite; for a normal distribution it would be 1.645.
    """

    repetition: float
    model: float
    slope: float
    coverage_width: float


CALIBRATED = Calibration(repetition=0.075, model=0.1, slope=0.0, coverage_width=1.463)


def variances(  # noqa: PLR0913 - a prediction, its evidence, and a calibration
    runtime_ms: float,
    replayed_ms: float,
    predicted_ms: float,
    scenario: Scenario,
    evidence: Evidence,
    resources: Sequence[Resource],
    calibration: Calibration = CALIBRATED,
    *,
    bytes_known: bool = False,
) -> dict[str, float]:
    """The variance of log(actual / predicted) of each of `SOURCES` except physics.

    If `bytes_known`, recorded time on a device is at most left out or counted once, however slow the device gets.
    """
    # With ratio r, a share s of the recorded time adds s·(1/r − 1); so an error of s changes the log.
    effect = np.array([abs(1 / scenario.ratio(each.setting) - 1) for each in resources])
    if bytes_known:
        by_bytes = np.array([each.unit == "bytes per second" for each in resources])
        effect = np.where(by_bytes, np.minimum(effect, 1.0), effect)
    effect *= runtime_ms / predicted_ms
    distance = abs(math.log(predicted_ms / runtime_ms))
    return {
        "replay": math.log(replayed_ms / runtime_ms) ** 2 if replayed_ms > 0 else 0.0,
        "repetition": 2 * calibration.repetition**2,
        # Unknown time may be on any device or none: its share is uniform between 0 and all of it.
        "samples": float(((evidence.sampling * effect) ** 2).sum())
        + (evidence.unseen_resources * effect.max()) ** 2 / 12,
        "labels": float(((evidence.labels * effect) ** 2).sum()),
        "model": calibration.model**2 + (calibration.slope * distance) ** 2,
    }


def interval(
    predicted_ms: float,
    variance: Mapping[str, float],
    width: float = CALIBRATED.coverage_width,
    ends_ms: tuple[float, float] | None = None,
) -> tuple[tuple[float, float], Mapping[str, float]]:
    """The 90 % interval, ms, and the share of each source in its variance (they sum to 1).

    `ends_ms` are the bounds from other physics; on either side they add up with the random errors.
    """
    total = sum(variance.values())
    low, high = (abs(math.log(end / predicted_ms)) / width for end in ends_ms or (predicted_ms, predicted_ms))
    sources = {**variance, "physics": (low**2 + high**2) / 2}
    whole = sum(sources.values())
    ends = (
        predicted_ms * math.exp(-width * math.sqrt(total + low**2)),
        predicted_ms * math.exp(width * math.sqrt(total + high**2)),
    )
    return ends, {name: each / whole for name, each in sources.items()}


def of_ends(
    predicted_ms: float, ends_ms: Mapping[str, Sequence[float]]
) -> tuple[tuple[float, float], Mapping[str, float]]:
    """The same from predictions at both ends of the 90 % range of each source, ms."""
    low, high = ({name: _square(predicted_ms, each, pick) for name, each in ends_ms.items()} for pick in (min, max))
    both = {name: low[name] + high[name] for name in ends_ms}
    whole = sum(both.values())
    ends = (
        predicted_ms * math.exp(-math.sqrt(sum(low.values()))),
        predicted_ms * math.exp(math.sqrt(sum(high.values()))),
    )
    return ends, {name: each / whole for name, each in both.items()} if whole > 0 else {}


def _square(predicted_ms: float, ends_ms: Sequence[float], pick: Callable[..., float]) -> float:
    """The square of how far the lowest or the highest of the ends is below or above the prediction, in logarithms."""
    return math.log(pick(predicted_ms, *(each for each in ends_ms if each > 0)) / predicted_ms) ** 2
