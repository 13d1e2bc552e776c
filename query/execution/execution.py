"""A scope of a profiled run as arrays: the input of all analyses and predictions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import Resource
from crystalperf.query.execution.clock import Clock
from crystalperf.query.execution.critical_path import fill
from crystalperf.query.execution.dag import Barriers, Dag, SlotDemand, StageRun, Tasks
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.log_facts import LogFacts
from crystalperf.query.execution.micro_batches import MicroBatches
from crystalperf.query.execution.scenario import TASKS, TRIGGER, Configuration, Scenario, Setting, called_by
from crystalperf.query.execution.scheduling import FIRST_COME, Policy
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.stream import Stream
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.words import Words
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.plugins import entries
from crystalperf.query.trace.records import Floats

if TYPE_CHECKING:
    import duckdb


@frozen
class ScopeTime:
    """The name of a scope and its time interval; times in ms since application start."""

    text: str
    start_ms: float
    end_ms: float


@frozen
class DriverTime:
    """Samples of the driver, rows sorted by time; `parts_ms` is (rows, resources + 1)."""

    start_ms: Floats
    weight_ms: Floats
    parts_ms: Floats

    def between(self, start_ms: float, end_ms: float) -> Floats:
        """Wall-clock time by resource, (resources + 1,), that sums to end − start; time without samples is `other`.

        Several of its threads may work at a time: the time that any of them covers is split in the proportions of all.
        """
        length = max(end_ms - start_ms, 0.0)
        first, last = np.searchsorted(self.start_ms, [start_ms, end_ms])
        weight, parts = self.weight_ms[first:last], self.parts_ms[first:last]
        if last == first or weight.sum() <= 0:
            return fill(np.zeros(self.parts_ms.shape[1]), length)
        begin = self.start_ms[first:last]
        end = np.minimum(begin + weight, end_ms)
        reached = np.concatenate([[start_ms], np.maximum.accumulate(end)[:-1]])
        covered = float(np.maximum(end - np.maximum(begin, reached), 0.0).sum())
        mixture = parts.sum(axis=0) / weight.sum()
        return fill(mixture * min(covered, length), length)


@frozen
class Lost:
    """Tasks of a stage without an end in the log: `lost` of `total`, `share` of its work; times by the clock.

    The stage was submitted at `start_ms`; its last known task ended at `last_ms`, None if none is known.
    """

    stage_id: str
    lost: int
    total: int
    start_ms: float
    end_ms: float
    last_ms: float | None
    share: float


@frozen
class MemoryUse:
    """The use of a run's workers of their memory, bytes.

    floor_bytes   with less memory, a worker would likely have run out
    safe_bytes    with this memory, all that was in use fits
    """

    floor_bytes: float
    safe_bytes: float


@frozen
class MemoryRule:
    """How much of a worker's memory its tasks can use.

    usable      memory of a worker in bytes, the run's properties → bytes that its tasks can hold together
    least_bytes minimum memory with which a worker starts
    use         the run file, the run's properties → the use of workers of their memory, None if it was not recorded
    """

    usable: Callable[[float, Mapping[str, str]], float]
    least_bytes: float = 0.0
    use: Callable[[duckdb.DuckDBPyConnection, Mapping[str, str]], MemoryUse | None] = lambda _run, _properties: None


@frozen
class Growth:
    """The share of each stage's time that grows with the data, by resource, (stages, resources + 1), and the
    assumption behind it."""

    shares: Floats
    assumption: Assumption


@frozen
class Steady:
    """Time of a step after warm-up, as recorded and in a scenario, ms, of a run whose recording shows its warm-up.

    `ends_ms` are the optimistic and the pessimistic bound of a step in the scenario; `assumptions` are those of the
    estimate.
    """

    before_ms: float
    after_ms: float
    ends_ms: tuple[float, float]
    assumptions: tuple[Assumption, ...] = ()


@frozen
class Exchange:
    """The exchange of a training's processes in a scope: the bytes that each of them gives to collectives."""

    sent_bytes: float
    processes: float


@frozen
class Ends:
    """A source of error of a framework's predictions: the scenarios of the two ends of its 90 % range."""

    name: str
    first: Scenario
    last: Scenario


@frozen
class Planned:
    """A run as its framework would plan it in a scenario, and the assumptions of the plan.

    `slots` is a factor on the number of slots, in addition to the scenario's.
    """

    execution: Execution
    assumptions: tuple[Assumption, ...] = ()
    slots: float = 1.0


@frozen
class Planner:
    """How a framework reacts to a scenario: scheduling, partitioning, use of memory.  All parts are optional."""

    schedule: Callable[[str | None, Mapping[str, str], str | None], Policy] | None = None
    """(scheduler, settings, version of the run) → how the framework assigns slots."""
    barriers: Callable[[Sequence[StageRun]], Barriers] | None = None
    """The stages of a scope → what its driver waited for, if the log does not state it; without this part the DAG
    has only stated dependencies."""
    configured: Callable[[Mapping[str, str]], Mapping[str, float]] | None = None
    """Properties of a run → its configuration besides workers, cores and memory: `tasks`, the number of partitions of
    exchanged data; and those three if the run's tables count other things than its users do."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Settings that only runs of the framework have, by key; `replan` applies them."""
    replan: Callable[[Execution, Scenario, bool], Planned | Refusal] | None = None
    """(the run, a scenario, whether adaptive planning may change plans) → the run with the plan of the scenario."""
    growth: Callable[[Execution], Growth] | None = None
    """The run → the share of its time that grows with the data; without it, all work on data grows."""
    steady: Callable[[Execution, Scenario], Steady | None] = lambda _run, _scenario: None
    """The run, a scenario → its steps after warm-up, None if the recorded steps are warmed up."""
    stream: Callable[[duckdb.DuckDBPyConnection, Execution], Stream | None] | None = None
    """The run file, a scope of it → the scope as a stream; None if it is not a stream, or was not measured."""
    micro_batches: Callable[[duckdb.DuckDBPyConnection, Execution], MicroBatches | None] | None = None
    """The run file, a scope of it → the batches of its stream; None if it has none, or does other work for the most
    part."""
    exchange: Callable[[duckdb.DuckDBPyConnection, Execution], Exchange | None] | None = None
    """The run file, a scope of it → the exchange of its processes in collectives; None if they do not, or if bytes were
    not recorded."""
    shown_slots: Callable[[int | None, Mapping[str, str]], int | None] = lambda slots, _properties: slots
    """(most slots of a worker, properties) → slots as the user counts them, 0 if the slots of tasks are unknown."""
    shown_workers: Callable[[int, Mapping[str, str]], int] = lambda workers, _properties: workers
    """(workers of a run, properties) → workers as the user counts them: not the hosts of accelerators."""
    other_bound: Callable[[Execution, Scenario], tuple[Refusal, Scenario] | None] = lambda _run, _scenario: None
    """The run, a scenario → why the prediction has two bounds, and the scenario of the other bound."""
    ends: Callable[[Execution, Scenario], Iterable[Ends] | None] = lambda _run, _scenario: None
    """The run, a scenario → the sources of error of its prediction, which then replace those of the calibration; None
    if that has been calibrated on such runs."""
    refused: Callable[[Execution, Scenario], Refusal | None] = lambda _run, _scenario: None
    """The run, a scenario → why the framework could not run it, or why its log does not show what changes; None if
    neither."""
    unbounded_reason: Callable[[Mapping[str, str]], Refusal | None] = lambda _properties: None
    """Properties of a run → why its runtime cannot be predicted, None if the run ends by itself."""
    memory: MemoryRule | None = None
    """How much of a worker's memory its tasks can use."""
    expand: Callable[[str, Collection[str], Mapping[str, str]], tuple[str, ...]] = lambda text, _names, _properties: (
        text,
    )
    """(KEY=VALUE of a what-if, names of resources, properties) → the same in settings of resources, if one word means
    several."""
    excluded_settings: Callable[[Mapping[str, str]], Collection[str]] = lambda _properties: ()
    """Properties of a run → settings that the default what-ifs exclude: no trace shows their effect, or the run cannot
    have more of the resource."""
    slots_bring_cpu: bool = True
    """Whether a worker with more slots gets more CPU, for example because its container is sized by its slots."""
    held: Callable[[duckdb.DuckDBPyConnection], Collection[str]] = lambda _run: ()
    """The run file → ids of the submitted stages that waited for slots although others were free."""
    demands: Callable[[duckdb.DuckDBPyConnection], Mapping[str, SlotDemand]] = lambda _run: {}
    """The run file → the slots that stages need, by id, for those that cannot use every slot, or need many at once."""
    sizes_workers: bool = False
    """Whether the log has the configured slots of each worker, so that workers may differ in them."""
    loads_code: bool = False
    """Whether its workers load and compile code at its first use (JVM warm-up)."""
    checked_settings: Callable[[Execution], Collection[str]] = lambda _run: ()
    """The run → settings of the work, such as `tasks`, whose effect reruns have verified, so that predictions have an
    interval."""


@frozen
class Execution:
    """All events of a scope: the input of the critical path and of the replay.

    The scope's times are recorded times; those of the DAG, tasks, slots and driver are by `clock`.
    """

    words: Words
    """The terms for answers about the run: the framework's vocabulary, and the resources."""
    measure: str
    scope: ScopeTime
    dag: Dag
    tasks: Tasks
    volumes: Volumes
    slots: Slots
    hosts: tuple[str, ...]
    driver: DriverTime
    recorded: Configuration
    scheduler: str | None
    properties: Mapping[str, str]
    has_samples: bool
    has_peak_memory: bool
    """Whether the log has the peak memory of each task, even if it was 0."""
    evidence: Evidence
    operators: Mapping[str, Floats] = field(default_factory=dict)
    """Task time of each operator by its name, (stages, resources + 1)."""
    readers: Mapping[int, str] = field(default_factory=dict)
    """By a stage's number, the operators of its plan that read data from outside the run, in lower case."""
    delegating: frozenset[int] = frozenset()
    """Numbers of the stages for whose tasks other processes compute."""
    spilling_in_helpers: frozenset[int] = frozenset()
    """Numbers of the stages for which these processes spill, not the workers."""
    clock: Clock = field(default_factory=Clock)
    lost: tuple[Lost, ...] = ()
    background_cores: float = 0.0
    """Background CPU use of a worker, whatever its tasks do, cores; 0 if unknown."""
    wire_bytes_ratio: float | None = None
    """Bytes that the networks of workers received, without headers, over those that tasks logged as read from other
    machines; None if not measured."""
    version: str | None = None
    """The framework's version, as the log states it."""
    repeated: NDArray[np.bool_] | None = None
    """Whether code of the same words had run before, (stages,); None if unknown."""
    is_first_scope: bool = False
    """Whether nothing had run before the scope."""
    stream: Stream | None = None
    """The steady interval of a stream, if the scope's measure is the latency of a record or the throughput."""
    micro_batches: MicroBatches | None = None
    """The batches of a stream, if the framework processes it in batches."""
    exchange: Exchange | None = None
    """The exchange of a training's processes, if it was recorded."""
    title: str = ""
    """The framework's name for readers."""
    planner: Planner = field(default_factory=Planner)
    """How the framework reacts to a scenario."""
    in_order: bool = False
    """Whether the tasks of a stage ran one after the other, as operators of a thread do."""
    takes_recordings: bool = False
    """Whether CrystalPerf can read stack samples of the framework's processes."""
    log: LogFacts = field(default_factory=LogFacts)
    """The submitter of the work, and the missing parts of the log."""
    memory_use: MemoryUse | None = None
    """The use of workers of their memory in the whole run; None if it was not recorded."""

    @property
    def runtime_ms(self) -> float:
        """The runtime to reduce, ms: the scope's length without pauses, or the latency of a stream's record."""
        if self.stream is not None:
            return self.stream.time_ms(self.names)
        return self.scope.end_ms - self.scope.start_ms - self.clock.left_out_ms

    @property
    def throttled_share(self) -> Floats:
        """The share of each task's duration in which its container had used up its CPU quota, (tasks,)."""
        return np.minimum(safe_divide(self.volumes.starved_ms, self.tasks.duration_ms), 1.0)

    @property
    def worker_volumes(self) -> Volumes:
        """The volumes without spills of processes that compute for tasks: those do not use a worker's memory."""
        own = ~np.isin(self.tasks.stage, list(self.spilling_in_helpers))
        volumes = self.volumes
        return replace(volumes, spill_memory=volumes.spill_memory * own, spill_disk=volumes.spill_disk * own)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The run's resources, in the order of a resource vector."""
        return self.words.resources

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the run's resources, in the order of a resource vector."""
        return tuple(each.name for each in self.resources)


def work_of(execution: Execution) -> dict[str, float | None]:
    """Recorded values of the settings of work that the framework does not configure: tasks, and a stream's rate."""
    if execution.stream is not None:
        counts = {(each.id, each.name): float(each.slots) for each in execution.stream.stations}
    else:
        sizes = np.bincount(execution.tasks.stage, minlength=len(execution.dag.stages))
        pairs = zip(execution.dag.stages, sizes.tolist(), strict=True)
        counts = {(each.stage_id, each.name): float(size) for each, size in pairs}
    found: dict[str, float | None] = {
        f"{TASKS}{called}": count for (stage, name), count in counts.items() for called in called_by(stage, name)
    }
    if execution.recorded.get("tasks") is None and counts:
        found["tasks"] = max(counts.values())
    if execution.stream is not None:
        found["rate"] = execution.stream.rate_per_s
    if (batches := execution.micro_batches) is not None and len(batches) > 1:
        found |= {"rate": batches.rate_per_s, TRIGGER: batches.interval_ms / 1e3}
    return found


def policy_of(execution: Execution) -> Policy:
    """How the run's scheduler assigns slots: the policy of a scheduler plug-in, else that of the framework."""
    own = entries("schedulers").get(execution.scheduler or "")
    if own is not None:
        policy: Policy = own(execution.properties)
        return policy
    schedule = execution.planner.schedule
    return FIRST_COME if schedule is None else schedule(execution.scheduler, execution.properties, execution.version)


class PlanningFramework(ReadableFramework, Protocol):
    """A framework with a planner: what reading a scope of a run needs."""

    @property
    def planner(self) -> Planner: ...
