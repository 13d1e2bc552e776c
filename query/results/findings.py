"""What cost time on the critical path: the kinds of findings that any framework's runs may have, with their evidence.

A kind has numbers and names only; query.text.findings words it.  Findings of one kind about several stages are one
finding whose `stages` say what each contributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crystalperf.query.results.advice import Advice
from crystalperf.query.results.kinds import Basis, Kind


@dataclass(frozen=True)
class Finding(Kind):
    """Something that cost time: at most `cost_ms`, and no more than the scope's runtime.

    `advice` is what can be done about it, None where nothing is known.  `is_untimed` is whether nothing times it, so
    that it may be what time of unknown cause is.
    """

    is_untimed: ClassVar[bool] = False

    cost_ms: float
    basis: Basis
    advice: Advice | None


@dataclass(frozen=True)
class StageRef:
    """A stage by its id and its name."""

    id: str
    name: str


# Findings of several stages -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageCost(Kind):
    """What one stage contributes to a finding.

    Stages of the same type, `variant` and basis make one finding.
    """

    id: str
    name: str
    cost_ms: float
    basis: Basis
    advice: Advice

    @property
    def variant(self) -> str:
        """Which variant of its kind it is."""
        return ""


@dataclass(frozen=True)
class StageFinding(Finding):
    """A finding that stages contribute to, that of the largest cost first.

    `advice` is what helps those that cost most together; `other_advice` names a stage that other advice is for, where
    that is about a good part of the cost.
    """

    stages: tuple[StageCost, ...]
    other_advice: StageCost | None = None


IdleCause = Literal["few-tasks", "empty-tasks", "last-wave", "bound-to-data", "free-slots"]
"""Why slots were idle.

few-tasks      there were fewer tasks than slots
empty-tasks    so were those with anything to read
last-wave      the last wave of tasks left slots idle
bound-to-data  tasks waited for the workers that have their data
free-slots     slots were idle while tasks waited, for longer than the longest task
"""


@dataclass(frozen=True)
class IdleStage(StageCost):
    """A stage that left slots idle.

    `with_data` of its tasks had something to read.  `skew_bytes` is what the task that read most read, in medians,
    where that is clearly more than the others read.  `on_busiest` tasks ran on the worker that had the most.
    """

    kind: ClassVar[str] = "idle-slots"

    cause: IdleCause
    tasks: int
    with_data: int
    slots: int
    waves: float
    idle_share: float
    skew_bytes: float | None
    on_busiest: int

    @property
    def variant(self) -> str:
        return self.cause


@dataclass(frozen=True)
class IdleSlots(StageFinding):
    """Slots without a task while stages were on the critical path.

    `unmodelled` is a device without a model that computed for tasks, so that more slots bring less than the cost.
    """

    kind: ClassVar[str] = "idle-slots"

    stages: tuple[IdleStage, ...]
    unmodelled: str | None = None


@dataclass(frozen=True)
class StragglerCause(Kind):
    """Why a task takes much longer than those like it."""


@dataclass(frozen=True)
class MoreData(StragglerCause):
    """It read more."""

    kind: ClassVar[str] = "more-data"

    read_bytes: float
    median_bytes: float


@dataclass(frozen=True)
class CollectedGarbage(StragglerCause):
    """Its worker collected garbage meanwhile."""

    kind: ClassVar[str] = "collected-garbage"

    gc_ms: float


@dataclass(frozen=True)
class SlowHost(StragglerCause):
    """Tasks on its host spend more time on a resource; medians of the host's tasks and of the others'."""

    kind: ClassVar[str] = "slow-host"

    host: str
    resource: str
    median_ms: float
    others_ms: float


@dataclass(frozen=True)
class FirstOnWorker(StragglerCause):
    """It was the first on its worker, a new process.

    `confirmed` is whether its CPU time and other first tasks say so.
    """

    kind: ClassVar[str] = "first-on-worker"

    worker: str
    confirmed: bool


@dataclass(frozen=True)
class MoreOfResource(StragglerCause):
    """It spent `extra_ms` more on a resource than the median task."""

    kind: ClassVar[str] = "more-of-resource"

    resource: str
    extra_ms: float


@dataclass(frozen=True)
class Waited(StragglerCause):
    """It waited, for its CPU time is only a part of its duration."""

    kind: ClassVar[str] = "waited"

    cpu_ms: float
    duration_ms: float


@dataclass(frozen=True)
class Unexplained(StragglerCause):
    """The log does not say."""

    kind: ClassVar[str] = "unexplained"


@dataclass(frozen=True)
class StragglerStage(StageCost):
    """A stage whose longest task takes much longer than a usual one."""

    kind: ClassVar[str] = "straggler"

    task_id: int
    duration_ms: float
    usual_ms: float
    cause: StragglerCause

    @property
    def variant(self) -> str:
        return self.cause.resource if isinstance(self.cause, MoreOfResource) else self.cause.kind


@dataclass(frozen=True)
class Straggler(StageFinding):
    """Stages that wait for one task that takes much longer than those like it."""

    kind: ClassVar[str] = "straggler"

    stages: tuple[StragglerStage, ...]


@dataclass(frozen=True)
class StartingStage(StageCost):
    """A stage whose tasks are so short that starting them takes `share` of their time, `queued_ms` of it queued."""

    kind: ClassVar[str] = "starting-units"

    tasks: int
    share: float
    queued_ms: float


@dataclass(frozen=True)
class StartingUnits(StageFinding):
    """Tasks so short that starting them takes a good part of their time."""

    kind: ClassVar[str] = "starting-units"

    stages: tuple[StartingStage, ...]


@dataclass(frozen=True)
class OddUseStage(StageCost):
    """A stage whose tasks spent `resource_ms` on a device and moved few bytes across it."""

    kind: ClassVar[str] = "odd-use"

    resource: str
    resource_ms: float
    moved_bytes: int

    @property
    def variant(self) -> str:
        return self.resource


@dataclass(frozen=True)
class OddUse(StageFinding):
    """A device that tasks use and that hardly moves data."""

    kind: ClassVar[str] = "odd-use"

    stages: tuple[OddUseStage, ...]


# CPUs and hosts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShortOfCpus(Finding):
    """Tasks that could have run and had no CPU for `waited_ms` of the `cpu_ms` that they had or wanted one.

    Each of these is None where it is no cause: `throttled_share` of their quota's periods containers had used it up,
    workers got at most `cores_per_slot`, and other programs used `others_cores` of the `host_cores` of their machines.
    """

    kind: ClassVar[str] = "short-of-cpus"

    waited_ms: float
    cpu_ms: float
    throttled_share: float | None = None
    cores_per_slot: float | None = None
    others_cores: float | None = None
    host_cores: float | None = None


@dataclass(frozen=True)
class SlowHosts(Finding):
    """A host whose tasks spend more time on a resource than others, in `stages` stages; sums of the medians of each."""

    kind: ClassVar[str] = "slow-hosts"

    host: str
    resource: str
    median_ms: float
    others_ms: float
    stages: int


# Memory ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spilling(Finding):
    """Rows that were written to disk for want of memory, most in `stage` and by `operator`, where that is known."""

    kind: ClassVar[str] = "spilling"

    spilled_bytes: int
    stage: StageRef
    operator: str | None


@dataclass(frozen=True)
class Garbage(Finding):
    """Collecting garbage took `share` of the task time of `stage`, and a good part in `other_stages` others."""

    kind: ClassVar[str] = "garbage"

    stage: StageRef
    share: float
    other_stages: int


@dataclass(frozen=True)
class Kept(Finding):
    """Cached data that was not in memory, so that tasks read and computed it again: `missed` of the `tasks` of `stage`,
    and `other_missed` of `other_stages` others."""

    kind: ClassVar[str] = "kept"

    stage: StageRef
    missed: int
    tasks: int
    other_missed: int
    other_stages: int


# While no task ran ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoScope(Finding):
    """Time in which no scope was under way, though workers were there."""

    kind: ClassVar[str] = "no-scope"


@dataclass(frozen=True)
class Coordinator(Finding):
    """Time in which the coordinator alone worked; `unknown_ms` of it waiting or unknown, None where that is next to
    nothing or nearly all."""

    kind: ClassVar[str] = "coordinator"

    unknown_ms: float | None


@dataclass(frozen=True)
class Committing(Finding):
    """Time in which the coordinator alone put in place what tasks wrote: `scope` for `longest_ms`, and `others` more
    scopes.  It is part of the coordinator's time."""

    kind: ClassVar[str] = "committing"

    scope: str
    longest_ms: float
    others: int


@dataclass(frozen=True)
class Loss:
    """Workers that were lost: how long they lived in the median, and what the framework says of the first, None for
    nothing."""

    workers: tuple[str, ...]
    lived_ms: float
    reason: str | None


@dataclass(frozen=True)
class NoWorker(Finding):
    """Time in which no worker was there.

    The first came after `first_worker_ms`, None where it was there at once; with `ever_came` false none ever did.  For
    `since_lost_ms` of it the last had been lost (`lost`).
    """

    kind: ClassVar[str] = "no-worker"

    ever_came: bool
    first_worker_ms: float | None = None
    since_lost_ms: float = 0.0
    lost: Loss | None = None


# What was lost --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LostWorkers(Finding):
    """Workers that were lost, of `workers` in all.

    `redone_tasks` ran again, which had run for `redone_ms`; what ran on fewer slots took at most `short_ms` longer.
    """

    kind: ClassVar[str] = "lost-workers"

    lost: Loss
    workers: int
    redone_tasks: int
    redone_ms: float
    short_ms: float


@dataclass(frozen=True)
class EndReason:
    """Why tasks ended, as the log has it, and how many did for that."""

    reason: str
    tasks: int


@dataclass(frozen=True)
class Wasted(Finding):
    """Tasks that ran for `task_ms` and failed or were killed, with the commonest reasons."""

    kind: ClassVar[str] = "wasted"

    status: Literal["failed", "killed"]
    tasks: int
    task_ms: float
    reasons: tuple[EndReason, ...]
