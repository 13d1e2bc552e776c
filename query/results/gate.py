"""Budgets of a job and whether its runs keep them, as data."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.noise import Difference
from crystalperf.query.results.not_recorded import NotRecorded
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.words import Words

Unit = Literal["ms", "bytes", "share", "count"]

Outcome = Literal["within", "over", "undecided"]


@frozen
class Budget:
    """A limit that runs must not exceed.

    name      as the user states it: `runtime`, `predicted[cores=0.5x]`, `slowdown`
    metric    the key of a metric (query.compare.metrics), `predicted` or `slowdown`
    limit     in the metric's unit; of a slowdown, the share by which the job may take longer than its baseline
    stated    the limit as the user states it: `10m`
    settings  of `predicted`: the settings of the scenario
    """

    name: str
    metric: str
    unit: Unit
    limit: float
    stated: str
    settings: tuple[str, ...] = ()


@frozen
class MetricMissing(NotRecorded):
    """The runs do not record the metric."""

    kind: ClassVar[str] = "metric-missing"

    metric: str


@frozen
class LogsIncomplete(NotRecorded):
    """Logs of `runs` do not reach the end of the application, so their values are lower bounds."""

    kind: ClassVar[str] = "logs-incomplete"

    runs: tuple[str, ...]


@frozen
class RangeOnBothSides(NotRecorded):
    """The 90 % range of a prediction is on both sides of the budget."""

    kind: ClassVar[str] = "range-on-both-sides"


@frozen
class BaselineTooNoisy(NotRecorded):
    """The 90 % range of a slowdown is on both sides of the budget.

    `runs_needed` runs a side would decide, if the difference and the spread stay as they are; None if not even
    `runs_most` would.
    """

    kind: ClassVar[str] = "baseline-too-noisy"

    runs_needed: int | None
    runs_most: int


@frozen
class PredictionRefused(NotRecorded):
    """The scenario of a budget cannot be predicted."""

    kind: ClassVar[str] = "prediction-refused"

    refused: Refusal


@frozen
class Check:
    """A budget, and whether the runs keep it.

    name, stated  the metric and its limit as the user states them
    limit     in the metric's unit; of a slowdown a share
    value     the median of the runs; of a slowdown, the share by which they take longer; None if unknown
    low, high  its 90 % range; None for a measured value, which has none, and for an unknown one
    runs      runs that have the value
    undecided  the reason if the outcome is undecided
    difference  of a slowdown: both sides' durations, and the range of their ratio
    """

    name: str
    metric: str
    unit: Unit
    limit: float
    stated: str
    outcome: Outcome
    value: float | None
    low: float | None
    high: float | None
    runs: int
    undecided: NotRecorded | None = None
    difference: Difference | None = None


@frozen
class Unlike:
    """A median by which the runs differ from the baseline, other than their duration: `input`, bytes; `workers` or
    `slots` of a worker, a count."""

    what: Literal["input", "workers", "slots"]
    before: float
    after: float


@frozen
class Gate:
    """Whether runs of a job keep its budgets.

    outcome   over if one budget is exceeded, else undecided if one is, else within
    name      of the application
    measure   the duration that a slowdown compares: runtime, step, latency, or throughput as time per record
    runs, baseline  names of the runs, as given
    unlike    other differences between runs and baseline, which may explain a slowdown
    """

    outcome: Outcome
    name: str
    framework: str
    measure: str
    runs: tuple[str, ...]
    baseline: tuple[str, ...]
    checks: tuple[Check, ...]
    unlike: tuple[Unlike, ...] = ()
    words: Words = field(default_factory=Words)
