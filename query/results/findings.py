"""The kinds of findings that runs of any framework may have: what cost time on the critical path, with the evidence.

A kind has numbers and names only; query.text.findings writes the text.  Findings of one kind about several stages are
one finding, whose `stages` are the contributions.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.kinds import Basis, Kind


@frozen
class Finding(Kind):
    """A cause of lost time, with its evidence: it cost at most `cost_ms`, which is no more than the scope's runtime.

    `advice` is what can be done about it, None if nothing is known.  `is_untimed` is whether nothing times it, so that
    it may explain time of unknown cause.
    """

    is_untimed: ClassVar[bool] = False

    cost_ms: float
    basis: Basis
    advice: Advice | None

    @property
    def is_note(self) -> bool:
        """Whether it is worth knowing without a cost, for example because it saved time."""
        return False


@frozen
class StageRef:
    """A stage by its id and its name."""

    id: str
    name: str


# Findings of several stages -------------------------------------------------------------------------------------------


@frozen
class StageCost(Kind):
    """The contribution of one stage to a finding.

    Contributions of the same type, `variant` and basis are one finding.
    """

    id: str
    name: str
    cost_ms: float
    basis: Basis
    advice: Advice

    @property
    def variant(self) -> str:
        """The variant of its kind."""
        return ""


@frozen
class StageFinding(Finding):
    """A finding with contributions of stages, the largest cost first.

    `advice` addresses the largest part of the cost; `other_advice` is a stage with different advice, if that addresses
    a good part of the cost.
    """

    stages: tuple[StageCost, ...]
    other_advice: StageCost | None = None


IdleCause = Literal["few-tasks", "empty-tasks", "last-wave", "bound-to-data", "free-slots"]
"""Why slots were idle.

few-tasks      fewer tasks than slots
empty-tasks    fewer tasks with input than slots
last-wave      the last wave of tasks left slots idle
bound-to-data  tasks waited for the workers that have their data
free-slots     slots were idle while tasks waited, for longer than the longest task
"""


@frozen
class IdleStage(StageCost):
    """A stage that left slots idle.

    `with_data` of its tasks had something to read.  `skew_bytes` is the data skew: the most that a task read over the
    median, None if that is not clearly more.  `on_busiest` tasks ran on the worker with the most tasks.
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


@frozen
class IdleSlots(StageFinding):
    """Slots without a task while stages were on the critical path.

    `unmodelled` is a device without a model that computed for tasks, so that more slots save less than the cost.
    """

    kind: ClassVar[str] = "idle-slots"

    stages: tuple[IdleStage, ...]
    unmodelled: str | None = None


@frozen
class StragglerCause(Kind):
    """Why a task takes much longer than those like it."""


@frozen
class MoreData(StragglerCause):
    """Data skew: it read more than the median task, or than the mean of the others of `few` tasks (`median_bytes`)."""

    kind: ClassVar[str] = "more-data"

    read_bytes: float
    median_bytes: float
    few: bool = False


@frozen
class CollectedGarbage(StragglerCause):
    """Its worker collected garbage meanwhile."""

    kind: ClassVar[str] = "collected-garbage"

    gc_ms: float


@frozen
class SlowHost(StragglerCause):
    """Tasks on its host spend more time on a resource; the times are medians of tasks there and on other hosts."""

    kind: ClassVar[str] = "slow-host"

    host: str
    resource: str
    median_ms: float
    others_ms: float


@frozen
class FirstOnWorker(StragglerCause):
    """Warm-up: it was the first on its worker, a new process.

    `confirmed` is whether its CPU time and other first tasks confirm that.
    """

    kind: ClassVar[str] = "first-on-worker"

    worker: str
    confirmed: bool


@frozen
class MoreOfResource(StragglerCause):
    """It spent `extra_ms` more on a resource than the median task."""

    kind: ClassVar[str] = "more-of-resource"

    resource: str
    extra_ms: float


@frozen
class Waited(StragglerCause):
    """It waited: its CPU time is only a part of its duration."""

    kind: ClassVar[str] = "waited"

    cpu_ms: float
    duration_ms: float


@frozen
class Unexplained(StragglerCause):
    """The log does not show the cause."""

    kind: ClassVar[str] = "unexplained"


@frozen
class StragglerStage(StageCost):
    """A stage whose longest task takes much longer than a usual one.

    `alone_ms` is for how long that ran on the critical path after all others of its stage.  `usual_ms` is the mean of
    the others if a stage has few tasks (`few`), because one large task moves the median of those; else the median.
    """

    kind: ClassVar[str] = "straggler"

    task_id: int
    duration_ms: float
    usual_ms: float
    cause: StragglerCause
    alone_ms: float = 0.0
    few: bool = False

    @property
    def variant(self) -> str:
        return self.cause.resource if isinstance(self.cause, MoreOfResource) else self.cause.kind


@frozen
class Straggler(StageFinding):
    """Stages with a straggler, a task that takes much longer than usual."""

    kind: ClassVar[str] = "straggler"

    stages: tuple[StragglerStage, ...]


@frozen
class StartingStage(StageCost):
    """A stage with tasks so short that starting them takes `share` of their time; `scheduler_delay_ms` is the part of
    that for which they were queued."""

    kind: ClassVar[str] = "starting-tasks"

    tasks: int
    share: float
    scheduler_delay_ms: float


@frozen
class StartingTasks(StageFinding):
    """Scheduling overhead: tasks so short that starting them takes a good part of their time."""

    kind: ClassVar[str] = "starting-tasks"

    stages: tuple[StartingStage, ...]


@frozen
class OddUseStage(StageCost):
    """A stage whose tasks spent `resource_ms` on a device and moved few bytes across it."""

    kind: ClassVar[str] = "odd-use"

    resource: str
    resource_ms: float
    moved_bytes: int

    @property
    def variant(self) -> str:
        return self.resource


@frozen
class OddUse(StageFinding):
    """A device that tasks use and that hardly moves data."""

    kind: ClassVar[str] = "odd-use"

    stages: tuple[OddUseStage, ...]


# CPUs and hosts -------------------------------------------------------------------------------------------------------


@frozen
class ShortOfCpus(Finding):
    """CPU wait: tasks were ready to run without a CPU for `waited_ms` of the `cpu_ms` that they ran or waited.

    Each of these is None if it is not a cause: `throttled_share` is the share of CPU quota periods in which containers
    were throttled, `cores_per_slot` the most that workers got, and `others_cores` the cores that other programs used,
    of the `host_cores` of their machines.
    """

    kind: ClassVar[str] = "short-of-cpus"

    waited_ms: float
    cpu_ms: float
    throttled_share: float | None = None
    cores_per_slot: float | None = None
    others_cores: float | None = None
    host_cores: float | None = None


@frozen
class SlowHosts(Finding):
    """A host whose tasks spend more time on a resource than others, in `stages` stages; times are sums of medians."""

    kind: ClassVar[str] = "slow-hosts"

    host: str
    resource: str
    median_ms: float
    others_ms: float
    stages: int


# Memory ---------------------------------------------------------------------------------------------------------------


@frozen
class Spilling(Finding):
    """Rows that were spilled to disk because memory was short, most in `stage`, and by `operator` if it is known."""

    kind: ClassVar[str] = "spilling"

    spilled_bytes: int
    stage: StageRef
    operator: str | None


@frozen
class GarbageCollection(Finding):
    """Garbage collection took `share` of the task time of `stage`, and a good part in `other_stages` others."""

    kind: ClassVar[str] = "garbage-collection"

    stage: StageRef
    share: float
    other_stages: int


@frozen
class CacheMissTime(Finding):
    """Cache misses: cached data was not in memory, so that tasks read and computed it again.

    `missed` of the `tasks` of `stage` had one, and `other_missed` tasks of `other_stages` others.
    """

    kind: ClassVar[str] = "cache-misses"

    stage: StageRef
    missed: int
    tasks: int
    other_missed: int
    other_stages: int


# While no task ran ----------------------------------------------------------------------------------------------------


@frozen
class NoScope(Finding):
    """Time between two scopes in which none was active, although workers were available."""

    kind: ClassVar[str] = "no-scope"


@frozen
class AtStart(Finding):
    """Time before the first scope, in which the framework and the program started."""

    kind: ClassVar[str] = "at-start"


@frozen
class AtEnd(Finding):
    """Time after the last scope."""

    kind: ClassVar[str] = "at-end"


@frozen
class Driver(Finding):
    """Time in which only the driver worked; `unknown_ms` of it waited or is unknown, None if that is almost
    nothing or nearly all."""

    kind: ClassVar[str] = "driver"

    unknown_ms: float | None


@frozen
class Committing(Finding):
    """Time in which the driver alone committed what tasks wrote: `scope` for `longest_ms`, and `others` more
    scopes.  It is part of the driver's time."""

    kind: ClassVar[str] = "committing"

    scope: str
    longest_ms: float
    others: int


@frozen
class Loss:
    """Lost workers: their median lifetime, and the framework's reason for the first loss, None if there is none."""

    workers: tuple[str, ...]
    lived_ms: float
    reason: str | None


@frozen
class NoWorker(Finding):
    """Time without a worker.

    The first worker started after `first_worker_ms`, None if at once; `ever_came` is whether any did.  `since_lost_ms`
    is the part after all workers had been lost (`lost`).
    """

    kind: ClassVar[str] = "no-worker"

    ever_came: bool
    first_worker_ms: float | None = None
    since_lost_ms: float = 0.0
    lost: Loss | None = None


# Losses ---------------------------------------------------------------------------------------------------------------


@frozen
class LostWorkers(Finding):
    """Lost workers, of `workers` in total.

    `redone_tasks` ran again, after they had run for `recomputed_ms`; the lost slots cost at most `short_ms`.
    """

    kind: ClassVar[str] = "lost-workers"

    lost: Loss
    workers: int
    redone_tasks: int
    recomputed_ms: float
    short_ms: float


@frozen
class EndReason:
    """A reason why tasks ended, from the log, and their number."""

    reason: str
    tasks: int


@frozen
class Wasted(Finding):
    """Wasted work: tasks that ran for `task_ms` and failed or were killed, with the most common reasons."""

    kind: ClassVar[str] = "wasted"

    status: Literal["failed", "killed"]
    tasks: int
    task_ms: float
    reasons: tuple[EndReason, ...]
