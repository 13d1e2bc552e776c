"""Predictors: models of a runtime by name, in addition to CrystalPerf's own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.execution import Execution

RunKind = Literal["batch", "training", "stream"]


@frozen
class SustainedRate:
    """The highest rate of a stream that a predictor gives, records per second of all sources, and the id of the
    station that limits it."""

    records_per_s: float
    limit: str


@frozen
class Predictor:
    """A model by name.

    Attributes:
        predict: (run, scenario) → the runtime in ms; for a stream the latency of a record, or its SustainedRate.  With
            `least_runs` it also gets the other runs of the job: (run, scenario, other runs).  Raises RefusedError.
        source: the publication that the model is from, for readers.
        runs: the kinds of runs that it has terms for.
        settings: the run → the settings that it has terms for, or their beginnings if they end in a dot; any other
            setting leaves its prediction as it is.
        least_runs: minimum number of other runs of the job that it needs.
    """

    predict: Callable[..., float | SustainedRate]
    source: str = ""
    runs: frozenset[RunKind] = frozenset(("batch", "training", "stream"))
    settings: Callable[[Execution], Collection[str]] | None = None
    least_runs: int = 0


def kind_of(execution: Execution) -> RunKind:
    """The kind of a run: a stream, a training with steps, or a job that ends."""
    if execution.stream is not None:
        return "stream"
    return "training" if execution.measure == "step time" else "batch"
