"""A tuned configuration of a job: the best of many predicted ones, as data; crystalperf.query.text writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.answers import Advice
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.recommendations import ChangeSetting
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.words import Words

Goal = Literal["time", "cost"]
"""time  the shortest runtime within the limits; of a stream, the highest rate
cost  the lowest cost that takes no longer than the recorded run or a deadline; of a stream, with no more latency and at
      least twice the recorded rate
"""


@frozen
class NotTuned(Kind):
    """A setting of the framework that keeps its value, because no prediction covers it; subclasses say why."""

    setting: str


@frozen
class Unmodelled(NotTuned):
    """CrystalPerf has no model of the setting's effect."""

    kind: ClassVar[str] = "unmodelled"


@frozen
class ValueNotRecorded(NotTuned):
    """The log does not record the value that the run had."""

    kind: ClassVar[str] = "value-not-recorded"


@frozen
class WithoutEffect(NotTuned):
    """Nothing in the run depends on the setting."""

    kind: ClassVar[str] = "without-effect"


@frozen
class ChangesResult(NotTuned):
    """It changes the result of the job, and the user set no limit for it."""

    kind: ClassVar[str] = "changes-result"


@frozen
class NotPredicted(NotTuned):
    """No other value has a prediction, for `refusal`."""

    kind: ClassVar[str] = "not-predicted"

    refusal: Refusal


@frozen(kw_only=True)
class TunedSetting(ChangeSetting):
    """A line of a tuned configuration: settings that change together.

    `saving` is how much longer the tuned run takes with their recorded values, for several runs the one that gains
    least; below 0 if it takes less, but costs more.  `cost_ratio` is its cost with the recorded values over that of
    the tuned configuration; None if the framework cannot run with these alone.  `rate_ratio` is the same of the highest
    rate of a stream, which has no saving.
    """

    kind: ClassVar[str] = "tuned-setting"

    cost_ratio: float | None = None
    rate_ratio: float | None = None


@frozen
class TunedRun:
    """A recorded run, and the prediction of the tuned configuration for it; costs in Tuning.cost_unit.

    `rate_per_s` is the highest rate of a stream, as recorded and tuned; None for other runs, and if unknown.
    """

    name: str
    runtime_ms: float
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None
    cost: float | None
    predicted_cost: float | None
    work_ratio: float = 1.0
    rate_per_s: tuple[float, float] | None = None


@frozen
class Tuning:
    """A configuration for the next run of a job.

    limits      the most that it may ask for, by setting: cores and memory (bytes) of all workers, workers, and input (a
                ratio) of jobs whose data a setting changes
    stated      the limits that the user gave; the others are what the recorded runs had
    deadline_ms the longest runtime, for the goal cost; None if that is the recorded one
    cost_unit   slot-hours, worker-hours where slots share the CPU of their worker, or the unit of a price list; of a
                stream for an hour
    machine     for a price list, the machines, one for each worker: `4 × large`; empty otherwise
    runs        the recorded runs; of several, the tuned configuration is the best for the one that gains least from it
    setting     the tuned configuration as settings of a what-if, `cores=4, tasks=8`; empty if none is noticeably better
    settings    its lines, the largest saving first
    unverified  the settings of these whose effect no rerun has verified; ranges include that they have none
    not_tuned   settings that keep their values, and why
    tried       the number of configurations that were predicted, of `possible`
    complete    whether the search ended by itself; otherwise it reached its maximum of predictions
    advice      the next run to record for a narrower range; None if no range can be narrowed
    """

    goal: Goal
    measure: str
    limits: Mapping[str, float]
    stated: tuple[str, ...]
    deadline_ms: float | None
    cost_unit: Literal["slot-hours", "worker-hours", "price"]
    machine: str
    runs: tuple[TunedRun, ...]
    setting: str
    settings: tuple[TunedSetting, ...]
    unverified: tuple[str, ...]
    not_tuned: tuple[NotTuned, ...]
    tried: int
    possible: int
    complete: bool
    assumptions: tuple[Assumption, ...] = ()
    advice: Advice | None = None
    words: Words = field(default_factory=Words)
