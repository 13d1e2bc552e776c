"""A scope of a profiled run as arrays: what the questions compute on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.resources import Resource
from crystalperf.query.execution.clock import Clock
from crystalperf.query.execution.critical_path import fill
from crystalperf.query.execution.dag import Barriers, Dag, GroupRun, Units
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.log_facts import LogFacts
from crystalperf.query.execution.scenario import UNITS, Configuration, World, called_by
from crystalperf.query.execution.scheduling import FIRST_COME, Policy
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.stream import Flow
from crystalperf.query.execution.volumes import Volumes
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.words import Words
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.plugins import entries
from crystalperf.query.trace.records import Floats

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class ScopeTime:
    """The stretch of a run that a question is about; times in ms since application start."""

    text: str
    start_ms: float
    end_ms: float


@dataclass(frozen=True)
class CoordinatorTime:
    """What the coordinator was seen doing, rows sorted by time; `parts_ms` is (rows, resources + 1)."""

    start_ms: Floats
    weight_ms: Floats
    parts_ms: Floats

    def between(self, start_ms: float, end_ms: float) -> Floats:
        """(resources + 1,) that sum to end − start; time in which it was not seen working is `other`.

        Several of its threads may work at a time: their mixture fills the wall-clock that any of them covers.
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


@dataclass(frozen=True)
class Lost:
    """Units of a group of which the log has no end: `lost` of `total`, `share` of its work; times by the clock.

    It was submitted at `start_ms`; its last known unit ended at `last_ms`, None where none is known.
    """

    group_id: str
    lost: int
    total: int
    start_ms: float
    end_ms: float
    last_ms: float | None
    share: float


@dataclass(frozen=True)
class MemoryRule:
    """What a worker's memory is to its units.

    usable      memory of a worker in bytes, the run's properties → what its units may hold together
    least_bytes a worker does not start with less
    """

    usable: Callable[[float, Mapping[str, str]], float]
    least_bytes: float = 0.0


@dataclass(frozen=True)
class Growth:
    """How much of each group's time grows with the data, by resource, (groups, resources + 1), and what that
    assumes."""

    shares: Floats
    assumption: Assumption


@dataclass(frozen=True)
class Steady:
    """A run that its recording shows before it has settled: a step once it has, as recorded and in a changed world, ms.

    `ends_ms` are the least and the most that one may take in the changed world however it settles; `assumptions` says
    what that assumes.
    """

    before_ms: float
    after_ms: float
    ends_ms: tuple[float, float]
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True)
class Planned:
    """A run as its framework would plan it in a changed world, and what that assumes.

    `lanes` is how many times its lanes there are taken to be beside what was asked.
    """

    execution: Execution
    assumptions: tuple[Assumption, ...] = ()
    lanes: float = 1.0


@dataclass(frozen=True)
class Planner:
    """What a framework itself would do in another scenario: schedule, cut work, use memory.  All of it is optional."""

    schedule: Callable[[str | None, Mapping[str, str], str | None], Policy] | None = None
    """(scheduler, settings, version that the run names) → how it assigns slots."""
    barriers: Callable[[Sequence[GroupRun]], Barriers] | None = None
    """The groups of a scope → what its coordinator waited for where the log does not say; without it only stated
    dependencies hold."""
    configured: Callable[[Mapping[str, str]], Mapping[str, float]] | None = None
    """Properties of a run → what it had by setting besides workers, cores and memory: `units`, into which it cuts
    exchanged data; and those three where its tables list other things than users count."""
    replan: Callable[[Execution, World, bool], Planned | Refusal] | None = None
    """(the run, a scenario, whether adaptive planning may change plans) → the run as it would be planned there."""
    growth: Callable[[Execution], Growth] | None = None
    """The run → how much of its time grows with the data; without it, all that is made of the data does."""
    steady: Callable[[Execution, World], Steady | None] = lambda _run, _world: None
    """The run, a scenario → its steps after warm-up, None where they are as recorded."""
    flow: Callable[[duckdb.DuckDBPyConnection, Execution], Flow | None] | None = None
    """The run file, a scope of it → it as a stream; None where it is none, or was not measured."""
    shown_lanes: Callable[[int | None, Mapping[str, str]], int | None] = lambda lanes, _properties: lanes
    """(most slots of a worker, properties) → slots as its user counts them, 0 where nothing says where units ran."""
    other_bound: Callable[[Execution, World], tuple[Refusal, World] | None] = lambda _run, _world: None
    """The run, a scenario → why its answer lies between two bounds, and the scenario of the other bound."""
    unbounded_reason: Callable[[Mapping[str, str]], Refusal | None] = lambda _properties: None
    """Properties of a run → why no runtime is predicted, None where it ends by itself."""
    memory: MemoryRule | None = None
    """What a worker's memory is to its units."""
    expand: Callable[[str], tuple[str, ...]] = lambda text: (text,)
    """KEY=VALUE of a what-if → the same in settings of resources, where one word stands for several."""
    excluded_settings: Callable[[Mapping[str, str]], Collection[str]] = lambda _properties: ()
    """Properties of a run → settings that the usual what-ifs leave out: no trace shows what they change, or the run
    cannot have more of them."""
    lanes_bring_cpu: bool = True
    """Whether a worker with more slots gets more CPU, as where its container is sized by its slots."""
    loads_code: bool = False
    """Whether its workers load and compile code as they meet it (JVM warm-up)."""
    checked_settings: Callable[[Execution], Collection[str]] = lambda _run: ()
    """The run → settings of the work, such as `units`, whose effect reruns have checked, so that answers have an
    interval."""


@dataclass(frozen=True)
class Execution:
    """Everything that happened in a scope, ready to be walked or replayed.

    The scope's times are recorded ones; those of the DAG, units, slots and coordinator are by `clock`.
    """

    words: Words
    """The terms in which answers about it are written: its framework's, and its resources."""
    measure: str
    scope: ScopeTime
    dag: Dag
    units: Units
    volumes: Volumes
    slots: Slots
    hosts: tuple[str, ...]
    coordinator: CoordinatorTime
    recorded: Configuration
    scheduler: str | None
    properties: Mapping[str, str]
    has_samples: bool
    tells_memory: bool
    """Whether the log has the most memory that each unit held, if it was none."""
    evidence: Evidence
    operators: Mapping[str, Floats] = field(default_factory=dict)
    """Unit time of each operator by its name, (groups, resources + 1)."""
    readers: Mapping[int, str] = field(default_factory=dict)
    """By a group's number, by which operators of its plan it reads what lies outside the run, in small letters."""
    delegating: frozenset[int] = frozenset()
    """Numbers of the groups whose units have other processes compute for them."""
    spilling_apart: frozenset[int] = frozenset()
    """Those of which these processes spill, and no worker."""
    clock: Clock = field(default_factory=Clock)
    lost: tuple[Lost, ...] = ()
    idle_cores: float = 0.0
    """CPU that a worker uses by the clock, whatever its units do, cores; 0 where nothing tells."""
    wire: float | None = None
    """Bytes that the networks of workers received over those that units logged as read from other machines, headers
    left out; None where nobody measured it."""
    version: str | None = None
    """The framework's, as the log states it."""
    repeated: NDArray[np.bool_] | None = None
    """Whether code of the same words had run before, (groups,); None where nothing tells."""
    starts: bool = False
    """Whether nothing had run before the scope."""
    flow: Flow | None = None
    """Where the scope's measure is what becomes of a record, its steady stretch."""
    title: str = ""
    """What people call its framework."""
    planner: Planner = field(default_factory=Planner)
    """What its framework would do in another scenario."""
    in_order: bool = False
    """Whether the units of a group ran one after the other, as operators of a thread do."""
    takes_recordings: bool = False
    """Whether recordings of stack samples can be given of its framework's processes."""
    log: LogFacts = field(default_factory=LogFacts)
    """Who submitted its work, and what the log lacks."""

    @property
    def runtime_ms(self) -> float:
        """What is made shorter: the scope's length, of a flow the time of a record."""
        if self.flow is not None:
            return self.flow.time_ms(self.names)
        return self.scope.end_ms - self.scope.start_ms - self.clock.left_out_ms

    @property
    def starved(self) -> Floats:
        """Of each unit's life, the share in which its container had used up its CPU quota, (units,)."""
        return np.minimum(over(self.volumes.starved_ms, self.units.duration_ms), 1.0)

    @property
    def worker_volumes(self) -> Volumes:
        """The volumes without what was spilled by processes that compute for units: no worker's memory is theirs."""
        own = ~np.isin(self.units.group, list(self.spilling_apart))
        volumes = self.volumes
        return replace(volumes, spill_memory=volumes.spill_memory * own, spill_disk=volumes.spill_disk * own)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """What its time is split by, in the order of a resource vector."""
        return self.words.resources

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the run's resources, in the order of a resource vector."""
        return tuple(each.name for each in self.resources)


def work_of(execution: Execution) -> dict[str, float | None]:
    """What the run had of the settings of its work that its framework does not configure: units, and a flow's rate."""
    if execution.flow is not None:
        counts = {(each.id, each.name): float(each.lanes) for each in execution.flow.stations}
    else:
        sizes = np.bincount(execution.units.group, minlength=len(execution.dag.groups))
        pairs = zip(execution.dag.groups, sizes.tolist(), strict=True)
        counts = {(each.group_id, each.name): float(size) for each, size in pairs}
    found: dict[str, float | None] = {
        f"{UNITS}{called}": count for (group, name), count in counts.items() for called in called_by(group, name)
    }
    if execution.recorded.get("units") is None and counts:
        found["units"] = max(counts.values())
    if execution.flow is not None:
        found["rate"] = execution.flow.rate_per_s
    return found


def policy_of(execution: Execution) -> Policy:
    """How the run's scheduler gives out slots: as a package of its own says, else as the framework does."""
    own = entries("schedulers").get(execution.scheduler or "")
    if own is not None:
        policy: Policy = own(execution.properties)
        return policy
    schedule = execution.planner.schedule
    return FIRST_COME if schedule is None else schedule(execution.scheduler, execution.properties, execution.version)


class PlanningFramework(ReadableFramework, Protocol):
    """A framework as those know it who read a scope of a run: with what it would do in another scenario."""

    @property
    def planner(self) -> Planner: ...
