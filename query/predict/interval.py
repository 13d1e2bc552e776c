"""How far a prediction may be off: a 90 % interval around it, and what makes it wide.

Relative errors multiply, so each source of error is a variance of log(actual / predicted), and they add up:

    replay       how far the unchanged replay is off the recorded runtime
    repetition   two runs of one job differ, and a prediction compares two
    samples      shares of time counted from few samples, and time in which nothing was seen
    labels       each function's class is drawn from its own probabilities
    model        the model's own error, which may grow with the distance that it bridges
    physics      replays in which a changed device brings the most and the least that it can (query.simulate.transfers)

All but repetition and the model's are worked out from the run.  `CALIBRATED` has the rest: measured on the even
configurations of the lab's suites by `python -m lab calibrate`, which never looks at odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crystalperf.indexes.resources import Resource
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.scenario import World

MOST_APART = 3.0
"""The most over the least up to which there is an answer between them: farther apart, only the two are told."""

SOURCES = ("replay", "repetition", "samples", "labels", "model", "physics")


@dataclass(frozen=True)
class Calibration:
    """What one run cannot tell of itself; standard deviations of log runtimes.

    `repetition` is between runs of one job, `model` is of the model's error where nothing changes much, and `slope`
    is what each unit of |log(predicted / recorded)| adds to it.  `width` is the standard deviations to either side
    that hold 90 % in each suite; a normal distribution's would be 1.645.
    """

    repetition: float
    model: float
    slope: float
    width: float


CALIBRATED = Calibration(repetition=0.075, model=0.1, slope=0.0, width=1.463)


def variances(  # noqa: PLR0913 - a prediction, what it rests on, and a calibration
    runtime_ms: float,
    replayed_ms: float,
    predicted_ms: float,
    world: World,
    evidence: Evidence,
    resources: Sequence[Resource],
    calibration: Calibration = CALIBRATED,
    *,
    bytes_known: bool = False,
) -> dict[str, float]:
    """The variance of log(actual / predicted) that each of `SOURCES` but physics brings.

    Where `bytes_known`, what was seen on a device is at most left out or counted once, however slow it gets.
    """
    # A share s of the recorded time under a ratio r makes s·(1/r − 1) of it more; so an error of s moves the log.
    effect = np.array([abs(1 / world.ratio(each.setting) - 1) for each in resources])
    if bytes_known:
        by_bytes = np.array([each.unit == "bytes per second" for each in resources])
        effect = np.where(by_bytes, np.minimum(effect, 1.0), effect)
    effect *= runtime_ms / predicted_ms
    distance = abs(math.log(predicted_ms / runtime_ms))
    return {
        "replay": math.log(replayed_ms / runtime_ms) ** 2 if replayed_ms > 0 else 0.0,
        "repetition": 2 * calibration.repetition**2,
        # Time that nobody saw may be on any device or none: uniform between no share and all of it.
        "samples": float(((evidence.sampling * effect) ** 2).sum()) + (evidence.unseen * effect.max()) ** 2 / 12,
        "labels": float(((evidence.labels * effect) ** 2).sum()),
        "model": calibration.model**2 + (calibration.slope * distance) ** 2,
    }


def interval(
    predicted_ms: float,
    variance: Mapping[str, float],
    width: float = CALIBRATED.width,
    ends_ms: tuple[float, float] | None = None,
) -> tuple[tuple[float, float], Mapping[str, float]]:
    """The 90 % interval, ms, and the share of each source in its `variances` (they sum to 1).

    `ends_ms` are the least and the most that other physics gives; to either side they add up with what is by chance.
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
