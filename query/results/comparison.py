"""The answer of a comparison: whether runs of a job differ beyond noise, and the parts that sum to the difference.

"Before" and "after" are the two sides, in the order in which the user named them; each has one run or several.  Times
are ms, and a part's `ms` is positive if it makes the runs after longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.answers import Cause, Parts
from crystalperf.query.results.flame_difference import FunctionChange
from crystalperf.query.results.kinds import Basis, Kind
from crystalperf.query.results.noise import Difference
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.step_comparison import StepComparison
from crystalperf.query.results.stream_comparison import StreamComparison
from crystalperf.query.results.words import Words
from crystalperf.query.sql.rows import Tabular

INCOMPLETE = ("failed", "unfinished")
"""The outcomes of a run whose time is not that of the whole job."""


@frozen
class ComparedRun:
    """One run of a side: its run file, the name by which the user gave it, the application's name, and how it ended."""

    run: str
    given: str
    name: str
    app_id: str
    runtime_ms: float
    status: str


@frozen
class Side:
    """The runs of a side; figures are medians over them.

    `slots` are those of all workers together, the most at a time; `memory_bytes` is of one worker.  `input_bytes` were
    read from storage or caches.  Unknown values are None.
    """

    runs: tuple[ComparedRun, ...]
    framework_version: str | None
    runtime_ms: float
    workers: float | None
    slots: float | None
    memory_bytes: float | None
    input_bytes: float


@frozen
class StageChange:
    """The contribution of one stage to a part; `before` and `after` are its ids, None if the side has no such stage."""

    before: str | None
    after: str | None
    name: str
    ms: float


@frozen
class SettingChange:
    """A setting with different values; None if a side has the default.  `matters` is whether it can change times."""

    key: str
    before: str | None
    after: str | None
    matters: bool


@frozen
class OperatorChange:
    """How many operators of a name the plans of a query have, on each side; `scope` is the query's name."""

    scope: str
    name: str
    before: int
    after: int


@frozen
class ComparedStage:
    """A stage of both sides, or of one: wall-clock time by resource, in which stages that run at a time share.

    `same_plan` is whether it runs the same operators.  `before` and `after` are ids, None without a counterpart.
    """

    before: str | None
    after: str | None
    name: str
    before_ms: float
    after_ms: float
    before_resource_ms: Parts
    after_resource_ms: Parts
    before_tasks: float
    after_tasks: float
    before_bytes: float
    after_bytes: float
    same_plan: bool


@frozen
class PredictedChange:
    """The prediction of the runs before for the resources of those after, to compare it with what came.

    `settings` are the differences in resources that logs record.  `refused` says why there is no prediction.  `made_at`
    is when it was made, UTC, if the user's ledger has it from before the runs after; None if it was computed now.
    """

    settings: tuple[str, ...]
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None
    actual_ms: float
    refused: tuple[Refusal, ...] = ()
    made_at: str | None = None

    @property
    def error_ratio(self) -> float | None:
        """(predicted − actual) / actual; None without a prediction."""
        return None if self.predicted_ms is None or not self.actual_ms else self.predicted_ms / self.actual_ms - 1.0


# Parts ----------------------------------------------------------------------------------------------------------------


@frozen
class Part(Kind):
    """A part of the difference: how much longer the runs after are by this cause, ms, and the stages it comes from."""

    ms: float
    basis: Basis
    stages: tuple[StageChange, ...]


@frozen
class ChangedInput(Part):
    """The runs read more or less input."""

    kind: ClassVar[str] = "input"

    before_bytes: float
    after_bytes: float


@frozen
class ChangedData(Part):
    """Stages read more or less from others, although the input is the same."""

    kind: ClassVar[str] = "data"

    before_bytes: float
    after_bytes: float


@frozen
class ChangedSlots(Part):
    """There were more or fewer slots."""

    kind: ClassVar[str] = "slots"

    before_workers: float | None
    after_workers: float | None
    before_slots: float
    after_slots: float


@frozen
class ChangedMemory(Part):
    """Workers had more or less memory, and spilled or collected garbage accordingly."""

    kind: ClassVar[str] = "memory"

    before_memory_bytes: float | None
    after_memory_bytes: float | None
    before_spill_bytes: float
    after_spill_bytes: float
    before_gc_ms: float
    after_gc_ms: float
    settings: tuple[SettingChange, ...] = ()


@frozen
class Spilled(Part):
    """Tasks spilled more or less, with the same memory."""

    kind: ClassVar[str] = "spill"

    before_bytes: float
    after_bytes: float


@frozen
class Collected(Part):
    """Garbage collection took more or less, with the same memory; times are of tasks."""

    kind: ClassVar[str] = "gc"

    before_ms: float
    after_ms: float


@frozen
class DeviceRate(Part):
    """A device took longer or shorter for the same data; times are of tasks, over the bytes that they read."""

    kind: ClassVar[str] = "device-rate"

    resource: str
    before_ms: float
    after_ms: float
    before_bytes: float
    after_bytes: float


@frozen
class ComputeTime(Part):
    """Tasks used more or less CPU time for the same data and plan; times and bytes read are of tasks."""

    kind: ClassVar[str] = "cpu-time"

    before_ms: float
    after_ms: float
    before_bytes: float = 0.0
    after_bytes: float = 0.0


@frozen
class ComputeWait(Part):
    """Tasks waited more or less for a CPU, because it was slower, limited, or shared with others.

    Times are of tasks.  `start_ratio` is how many times as long starting a task took, where that is the evidence for
    time that the log does not measure; None where CPU waits are measured.
    """

    kind: ClassVar[str] = "cpu-wait"

    before_ms: float
    after_ms: float
    start_ratio: float | None = None


@frozen
class Delegated(Part):
    """Processes that compute for tasks took longer or shorter for the same data; times are of tasks."""

    kind: ClassVar[str] = "delegate"

    before_ms: float
    after_ms: float


@frozen
class Reading(Part):
    """Stages that read input took longer or shorter for the same bytes, on no resource that the log measures."""

    kind: ClassVar[str] = "reading"

    before_ms: float
    after_ms: float
    before_bytes: float
    after_bytes: float


@frozen
class ChangedVersion(Part):
    """The framework's version differs, and tasks took more or less CPU time for the same data and plan."""

    kind: ClassVar[str] = "version"

    before: str
    after: str


@frozen
class ChangedSkew(Part):
    """The longest task of a stage read more or less than the others: bytes over the mean."""

    kind: ClassVar[str] = "skew"

    before_skew: float
    after_skew: float


@frozen
class ChangedBalance(Part):
    """Slots were idle for longer or shorter: too few tasks, the last wave, or one task that took longer."""

    kind: ClassVar[str] = "balance"

    before_use_share: float
    after_use_share: float


@frozen
class ChangedTasks(Part):
    """There were more or fewer tasks for the same data, each with its cost."""

    kind: ClassVar[str] = "tasks"

    before_tasks: float
    after_tasks: float
    settings: tuple[SettingChange, ...] = ()


@frozen
class TaskOverhead(Part):
    """Starting and ending a task took longer or shorter; times are the sums of all tasks."""

    kind: ClassVar[str] = "task-overhead"

    before_ms: float
    after_ms: float
    before_tasks: float = 0.0
    after_tasks: float = 0.0


@frozen
class LostWorkers(Part):
    """Workers were lost: their work ran again, on fewer slots."""

    kind: ClassVar[str] = "lost-workers"

    before_lost: int
    after_lost: int
    before_repeated_ms: float
    after_repeated_ms: float


@frozen
class Repeated(Part):
    """Tasks failed or were killed and ran again; times are of tasks."""

    kind: ClassVar[str] = "retries"

    before_ms: float
    after_ms: float


@frozen
class ChangedPlan(Part):
    """The plan differs: operators were added or are gone; `settings` changed and can change plans."""

    kind: ClassVar[str] = "plan"

    operators: tuple[OperatorChange, ...]
    settings: tuple[SettingChange, ...] = ()


@frozen
class ChangedWork(Part):
    """Queries or stages that only one side has, in number."""

    kind: ClassVar[str] = "work"

    before_only: int
    after_only: int


@frozen
class Waited(Part):
    """Time without a running task, by cause (see query.results.answers.Cause)."""

    kind: ClassVar[str] = "waiting"

    cause: Cause
    before_ms: float
    after_ms: float


@frozen
class Unexplained(Part):
    """The rest of the difference, of which the logs do not show the cause."""

    kind: ClassVar[str] = "unexplained"


@frozen
class NotCompared(Kind):
    """A part of the runs that the comparison leaves out, or compares with doubt, and why."""


@frozen
class DifferentJobs(NotCompared):
    """Few stages have a counterpart, so that the runs are probably of different jobs."""

    kind: ClassVar[str] = "different-jobs"

    matched_share: float


@frozen
class NotSucceeded(NotCompared):
    """A run failed, or its log has no end, so that its time is not that of the whole job."""

    kind: ClassVar[str] = "not-succeeded"

    run: str
    status: str


@frozen
class OneSideSampled(NotCompared):
    """Only one side has samples, so that times by resource are measured on it and not on the other."""

    kind: ClassVar[str] = "one-side-sampled"

    after: bool


@frozen
class PausesLeftOut(NotCompared):
    """The compared times lack pauses in which nothing was submitted; medians of each side, ms.

    The runtime of a budget (query.compare.gate) has them, because it is from the start of the application to its end.
    """

    kind: ClassVar[str] = "pauses-left-out"

    before_ms: float
    after_ms: float


@frozen
class Comparison(Tabular):
    """Whether the runs after took longer than those before, and where the difference comes from.

    `parts` are the largest first, the unexplained one last, and sum to `change_ms`.  `stages` are in the order of the
    largest change.  `settings` have those that matter first.  `predicted` is None if the resources that logs record are
    the same.  `scope` is the compared part of the runs.  `step` is the mean step of each side for runs of repeated
    steps; then all times are of one step, and the number of steps does not matter.  `stream` has the figures of
    streams; then times are of a record or a batch (StreamComparison.measure), and there are no `stages`.
    `functions` are those whose sampled time changed most, the largest change first; empty if a side has no samples.
    """

    __repr__ = Tabular.__repr__

    before: Side
    after: Side
    difference: Difference
    measure: str
    scope: str
    parts: tuple[Part, ...]
    stages: tuple[ComparedStage, ...]
    settings: tuple[SettingChange, ...] = ()
    operators: tuple[OperatorChange, ...] = ()
    predicted: PredictedChange | None = None
    not_compared: tuple[NotCompared, ...] = ()
    before_wait_ms: Mapping[Cause, float] = field(default_factory=dict)
    after_wait_ms: Mapping[Cause, float] = field(default_factory=dict)
    step: StepComparison | None = None
    stream: StreamComparison | None = None
    functions: tuple[FunctionChange, ...] = ()
    words: Words = field(default_factory=Words)

    @property
    def change_ms(self) -> float:
        """The difference of the medians, ms."""
        return self.after.runtime_ms - self.before.runtime_ms

    @property
    def decided(self) -> bool:
        """Whether the verdict holds for whole jobs.

        A run that failed, or whose log has no end, would have taken longer.  So "longer" holds if all runs before are
        complete, "shorter" if all runs after are, and no change only if all are.  Streams whose logs have no times are
        never decided.
        """
        if self.stream is not None:
            return self.stream.measure is not None
        incomplete = [any(each.status in INCOMPLETE for each in side.runs) for side in (self.before, self.after)]
        return not any(incomplete) or (self.difference.verdict == "longer" and not incomplete[0]) or (
            self.difference.verdict == "shorter" and not incomplete[1]
        )  # fmt: skip

    @property
    def explained_share(self) -> float | None:
        """The share of the difference that parts with a cause explain; None without a difference."""
        if not self.change_ms:
            return None
        rest = sum(each.ms for each in self.parts if isinstance(each, Unexplained))
        return 1.0 - min(abs(rest / self.change_ms), 1.0)
