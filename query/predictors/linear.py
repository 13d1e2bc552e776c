"""Everything in proportion: the time of a run shrinks by the factor of each changed resource."""

from __future__ import annotations

import math
from collections.abc import Iterable

from crystalperf.plugin import Execution, Predictor, Scenario


def in_proportion(time: float, factors: Iterable[float]) -> float:
    """A time, in any unit, with this factor of each resource."""
    return time / math.prod(factors)


def _settings(execution: Execution) -> tuple[str, ...]:
    devices = tuple(each.setting for each in execution.resources)
    if execution.stream is not None:
        return ("tasks", "rate", *devices)
    if execution.measure == "step time":  # each worker has a batch of its own
        return devices
    return ("workers", "cores", *devices)


def _predict(execution: Execution, scenario: Scenario) -> float:
    factors = [scenario.ratio(each) for each in _settings(execution) if each != "rate"]
    return in_proportion(execution.runtime_ms, factors) * scenario.ratio("rate" if execution.stream else "")


LINEAR = Predictor(_predict, source="proportion, as a floor", settings=_settings)
