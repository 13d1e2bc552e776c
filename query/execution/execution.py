"""A scope of a profiled run as arrays: what the questions compute on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.resources import NET, Resource
from crystalperf.query.execution.clock import Clock
from crystalperf.query.execution.critical_path import fill
from crystalperf.query.execution.dag import Dag, Units
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.scenario import UNITS, Configuration, called_by
from crystalperf.query.execution.slots import Slots
from crystalperf.query.execution.stream import Flow
from crystalperf.query.results.words import Words
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Floats, Ints

if TYPE_CHECKING:
    from crystalperf.query.frameworks import Framework


@dataclass(frozen=True)
class ScopeTime:
    """The stretch of a run that a question is about; times in ms since application start."""

    text: str
    start_ms: float
    end_ms: float


SPILL_BPS = 50e6
"""Bytes per second at which a unit at least writes or reads back what it spills, rows packed and unpacked."""

_READ = ("input_bytes", "remote_bytes")


def most_spilling_ms(disk_bytes: Ints | int, memory_bytes: Ints | int) -> Floats:
    """How long spilling so much and reading it back takes at most, ms; the larger of its two sizes counts."""
    longest: Floats = 2 * np.maximum(disk_bytes, memory_bytes) / SPILL_BPS * 1000
    return longest


@dataclass(frozen=True)
class Volumes:
    """What the framework logged per unit, aligned with the units; 0 where it logged nothing.  Bytes unless named ms."""

    input: Ints
    far: Ints
    """Of the input, what lies on other machines."""
    kept: Ints
    """Of the input, what workers kept in memory: it crosses no device, but for the network where it was far."""
    remote: Ints
    local: Ints
    handed: Ints
    output: Ints
    spill_memory: Ints
    spill_disk: Ints
    peak_memory: Ints
    gc_ms: Floats
    on_cpu_ms: Floats
    overhead_ms: Floats
    spill_ms: Floats
    """Time in which a unit was seen spilling or reading back what it had spilled."""
    peers_ms: Floats
    """Time measured waiting for data of other workers."""
    starved_ms: Floats
    """As much of its time as its container had used up its CPU quota in, by the quota's periods, where that was
    measured."""

    @property
    def tell_bytes(self) -> bool:
        """Whether the log has bytes of anything that moved."""
        return any(each.any() for each in (self.input, self.remote, self.local, self.handed, self.output))

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Whether the CPU time of each unit was measured; of a log without CPU times, `on_cpu_ms` is collections of
        garbage alone."""
        return self.on_cpu_ms > self.gc_ms

    def moved(self, resource: Resource) -> Ints:
        """Bytes that each unit logged of a resource's device; what the page cache took or gave is among a disk's."""
        return self._of(resource, resource.moves)

    def read(self, resource: Resource) -> Ints:
        """The same without what was written, which stays in memory as a rule."""
        return self._of(resource, [name for name in resource.moves if name in _READ])

    def _of(self, resource: Resource, names: Sequence[str]) -> Ints:
        found = np.zeros(len(self.input), dtype=np.int64)
        for name in names:
            found = found + getattr(self, name.removesuffix("_bytes"))
            if name == "input_bytes":
                found = found - np.maximum(self.far, self.kept)
        return found + self.far if resource.name == NET else found


def no_volumes(units: int) -> Volumes:
    """The volumes of so many units of which nothing is known."""
    columns: dict[str, Any] = {
        each.name: np.zeros(units, dtype=np.float64 if each.name.endswith("_ms") else np.int64)
        for each in fields(Volumes)
    }
    return Volumes(**columns)


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
class Execution:
    """Everything that happened in a scope, ready to be walked or replayed.

    The scope's times are recorded ones; those of the DAG, units, slots and coordinator are by `clock`.
    """

    framework: Framework
    measure: str
    resources: tuple[Resource, ...]
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
    def words(self) -> Words:
        """The terms in which answers about it are written."""
        return Words(self.framework.name, self.framework.vocabulary, self.resources)

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
