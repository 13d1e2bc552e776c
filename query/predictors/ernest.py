"""Ernest: the runtime as a sum of four terms with nonnegative factors, fitted to several runs of a job.

    T(s, m) = θ₀ + θ₁ s / m + θ₂ log m + θ₃ m

m is the number of slots, and s the size of the input, here relative to the recorded run's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from crystalperf.plugin import Execution, Floats, Predictor, RefusedError, RunsAlike, Scenario, nonnegative_fit


def terms(machines: float, scale: float = 1.0) -> Floats:
    """The four terms of a run, without their factors."""
    return np.array([1.0, scale / machines, np.log(machines), machines])


def fit(runs: Iterable[tuple[float, float, float]]) -> Floats:
    """The factors of the terms for runs of (machines, scale, runtime); in the runtime's unit."""
    known = list(runs)
    return nonnegative_fit(np.array([terms(m, s) for m, s, _ in known]), np.array([t for _, _, t in known]))


def _slots(execution: Execution) -> float:
    workers, cores = execution.recorded.get("workers"), execution.recorded.get("cores")
    return float(workers * cores) if workers and cores else float(len(execution.slots))


def _predict(execution: Execution, scenario: Scenario, others: Sequence[Execution]) -> float:
    slots = scenario.ratio("workers") * scenario.ratio("cores")
    scale = scenario.ratio("input")
    input_bytes = float(execution.volumes.input.sum()) or 1.0
    known = [
        (_slots(each), (float(each.volumes.input.sum()) or input_bytes) / input_bytes, each.runtime_ms)
        for each in (execution, *others)
    ]
    for changed, column, what in ((slots, 0, "slots"), (scale, 1, "input")):
        if changed != 1 and len({round(each[column], 2) for each in known}) < 2:
            raise RefusedError(RunsAlike("ernest", what))
    return float(fit(known) @ terms(_slots(execution) * slots, scale))


ERNEST = Predictor(
    _predict,
    source="Venkataraman et al., Ernest, NSDI 2016, section 3",
    runs=frozenset(("batch",)),
    settings=lambda _run: ("workers", "cores", "input"),
    least_runs=1,
)
