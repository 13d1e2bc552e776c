"""Amdahl's law: the part of a run that is sequential does not get shorter, the rest does with the processors.

    T(n) = T − P + P / n

P is the time in which any task ran, and n the factor on the slots.
"""

from __future__ import annotations

import numpy as np

from crystalperf.plugin import Execution, Floats, Predictor, Scenario


def runtime_ms(total_ms: float, parallel_ms: float, processors: float) -> float:
    """The runtime, ms, with a factor on the processors; `parallel_ms` of `total_ms` is parallel."""
    return total_ms - parallel_ms + parallel_ms / processors


def covered_ms(launch_ms: Floats, finish_ms: Floats) -> float:
    """Wall-clock time in which any task ran, ms."""
    if not len(launch_ms):
        return 0.0
    order = np.argsort(launch_ms)
    launch, finish = launch_ms[order], finish_ms[order]
    reached = np.maximum.accumulate(np.concatenate([[-np.inf], finish[:-1]]))
    return float(np.maximum(finish - np.maximum(launch, reached), 0.0).sum())


def _predict(execution: Execution, scenario: Scenario) -> float:
    busy_ms = covered_ms(execution.tasks.launch_ms, execution.tasks.finish_ms)
    return runtime_ms(execution.runtime_ms, busy_ms, scenario.ratio("workers") * scenario.ratio("cores"))


AMDAHL = Predictor(
    _predict,
    source="G. M. Amdahl, Validity of the single processor approach, AFIPS 1967",
    runs=frozenset(("batch",)),
    settings=lambda _run: ("workers", "cores"),
)
