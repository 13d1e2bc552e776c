"""What units make of each other's devices: what each gets of a disk, a link or a CPU beside the others of its schedule.

Each class is one kind of device with its state between two turns of query.simulate.fixed_point: `put` brings the state
into the units' times, and `take` takes it from the schedule that these make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.execution.slots import Slots
from crystalperf.query.simulate.device_sharing import Beside
from crystalperf.query.simulate.effects.device_speed import starving_ms
from crystalperf.query.simulate.transfers import Known, Physics, Transfer, as_recorded, share_of, transfers
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Floats, Ints


class Devices:
    """Devices of whose bytes nothing is known: all time on one grows with the company."""

    def __init__(self, recorded: Execution, beside: Beside, execution: Execution, shared: Mapping[int, str]) -> None:
        """`shared` is whose each device is, by its column; `beside` is who ran beside whom in the recorded run."""
        self._shared = shared
        self._before = {
            column: _company_before(recorded, beside, execution, column, whose) for column, whose in shared.items()
        }
        self._factor = {column: np.ones(len(execution.units)) for column in shared}

    def put(self, current: Floats) -> None:
        """Into the parts of units, (units, resources + 1) in ms."""
        for column, factor in self._factor.items():
            current[:, column] *= factor

    def take(self, beside: Beside, current: Floats) -> None:
        """From a schedule and the parts that made it: half of the way, for both move."""
        for column, whose in self._shared.items():
            after = _company(beside, whose, current, column)
            self._factor[column] = (self._factor[column] + after / self._before[column]) / 2


class Crossings:
    """Devices whose bytes are known: what is waited for grows with how long the bytes take among others."""

    def __init__(self, known: Sequence[Known], beside: Beside | None, length_ms: Floats) -> None:
        """`beside` is who ran beside whom in the recorded run; None for units cut anew, of which only the recorded
        ones' company is known."""
        self._known = known
        self._among = [each.company for each in known]
        self._before = list(self._among)
        if beside is not None:
            self._before = [_together(each, each.took_ms, length_ms, beside) for each in known]
        self._took = [each.took_ms for each in known]

    def put(self, current: Floats, more_ms: Floats) -> None:
        """Into the parts of units, beside so much more other time, (units,) in ms."""
        for position, (each, others) in enumerate(zip(self._known, self._among, strict=True)):
            self._took[position], seen_ms = each.in_world(others, more_ms)
            mine = current[:, each.transfer.column]
            current[:, each.transfer.column] = np.maximum(mine + (seen_ms - each.seen_ms), 0.0)

    def take(self, beside: Beside, length_ms: Floats, ahead: float) -> None:
        """From a schedule and how long its units were: half of the way, so many times."""
        for position, each in enumerate(self._known):
            after = _together(each, self._took[position], length_ms, beside) / self._before[position]
            step = (np.maximum(each.company * after, 1.0) - self._among[position]) / 2
            self._among[position] = np.maximum(self._among[position] + ahead * step, 1.0)


class Cpus:
    """The CPUs of workers: units get less of one that is full, and wait less for one where there are more."""

    def __init__(
        self,
        recorded: Execution,
        execution: Execution,
        world: World,
        parts: Floats,
        parts_before: Floats,
        beside_recorded: Beside,
        beside_before: Beside,
    ) -> None:
        """`parts` and `parts_before` are those of the units that are to run, in the changed and the recorded world;
        `beside_recorded` is who ran beside whom, and `beside_before` the same of the units that are to run."""
        self._execution, self._world, self._parts = execution, world, parts
        self._column = execution.names.index(CPU)
        self._allowed = np.maximum(_pressure(execution, beside_before, World(recorded=world.recorded)), 1.0)
        self._stretch = np.ones(len(execution.units))
        least_ms = execution.volumes.on_cpu_ms / world.ratio("cpu_speed")
        self._on_cpu = np.minimum(least_ms, parts[:, self._column])
        self._waits, self._left = parts[:, self._column] - self._on_cpu, np.ones(len(execution.units))
        brings = execution.planner.lanes_bring_cpu
        self._has_more = brings and world.ratio("cores") > 1
        # Of lanes that bring no CPU, units cut anew share what there is, so each waits for more or for fewer of them.
        self._shares_anew = execution.units is not recorded.units and not brings
        self._crowd_before = np.zeros(0)
        if self._shares_anew:
            recorded_parts = recorded.units.parts_ms.copy()
            if world.ratio("cpu_speed") != 1:  # as the effect has moved it in those that are to run
                recorded_parts[:, self._column] += starving_ms(recorded, recorded_parts)
            crowd = _crowd(beside_recorded, recorded_parts, self._column)
            limited = np.where(crowd > 0, recorded_parts[:, self._column], 0.0)
            self._crowd_before = _mean_of_group(recorded, crowd, limited, execution)
        elif self._has_more:
            self._crowd_before = _crowd(beside_before, parts_before, self._column)

    def put(self, current: Floats) -> None:
        """Into the parts of units."""
        current[:, self._column] += current.sum(axis=1) * (self._stretch - 1.0) - self._waits * (1.0 - self._left)

    def take(self, beside: Beside, current: Floats) -> None:
        """From a schedule and the parts that made it."""
        # A CPU that was hidden behind a slower device becomes the limit once it is full.
        excess = _pressure(self._execution, beside, self._world) / self._allowed
        self._stretch = np.maximum(self._stretch * np.sqrt(excess), 1.0)
        if self._has_more or self._shares_anew:
            now_crowd = _crowd(beside, current, self._column)
            crowd = over(now_crowd, self._crowd_before, 1.0)
            # Cut anew, units wait for more or for less, but as they did where no limit is known.
            crowd = np.where(now_crowd > 0, crowd, 1.0) if self._shares_anew else np.minimum(crowd, 1.0)
            eased = np.maximum(self._parts[:, self._column] * crowd, self._on_cpu) - self._on_cpu
            self._left = (self._left + over(eased, self._waits, 1.0)) / 2


def crossings_before(
    recorded: Execution, base: Beside, execution: Execution, parts_ms: Floats, world: World, physics: Physics
) -> list[Known]:
    """The transfers of the units that are to run as they would have been in the recorded run.

    Units that are cut anew are made of what the recorded ones of their group did, so they get the group's company.
    """

    def beside(each: Transfer, share: Floats) -> Floats:
        return base.company(each.shared_by, share)

    found = transfers(recorded, world, physics)
    alone = np.ones(len(recorded.units))
    known = as_recorded(found, recorded.units.parts_ms, _unknown(recorded, physics), [alone] * len(found), beside)
    among = [
        each.company
        if execution.units is recorded.units
        else _of_group(recorded, each.company, each.took_ms, execution)
        for each in known
    ]
    again = transfers(execution, world, physics)
    if execution.units is not recorded.units:
        again = tuple(_as_crossed(recorded, one, each, execution) for one, each in zip(known, again, strict=True))
    return as_recorded(again, parts_ms, _unknown(execution, physics), among)


def _as_crossed(recorded: Execution, known: Known, transfer: Transfer, execution: Execution) -> Transfer:
    """The transfer of units cut anew, whose group's bytes crossed the device as far as the recorded units had time
    for; the rest came from elsewhere, and will again."""
    least = known.transfer.least_ms
    crossed = over(np.minimum(known.took_ms / known.company, least), least, 1.0)
    return replace(transfer, least_ms=transfer.least_ms * _mean_of_group(recorded, crossed, least, execution))


def _unknown(execution: Execution, physics: Physics) -> Floats:
    """Time of units that nobody saw, and that may be a transfer's; what samples leave open is no device's."""
    told = execution.has_samples or not physics.unseen
    return np.zeros(len(execution.units)) if told else execution.units.parts_ms[:, -1]


def explained(parts_ms: Floats, known: Sequence[Known]) -> Floats:
    """The parts of units with unseen time on the devices that it was spent on, as far as bytes explain it."""
    parts = parts_ms.copy()
    for each in known:
        missing = np.clip(each.seen_ms - parts[:, each.transfer.column], 0.0, parts[:, -1])
        parts[:, each.transfer.column] += missing
        parts[:, -1] -= missing
    return parts


def _together(each: Known, took_ms: Floats, length_ms: Floats, beside: Beside) -> Floats:
    """How many units use a transfer's device at a time while each unit runs, itself counted as one."""
    return beside.company(each.transfer.shared_by, share_of(took_ms, length_ms))


def _pressure(execution: Execution, beside: Beside, world: World) -> Floats:
    """The demand on a worker's CPU while a unit runs, divided by what it can get in a world; 0 where no limit is known.

    It is its units' work only, because units do not wait for its compilers and servers to finish: with less CPU, less
    of that gets done meanwhile.
    """
    replayed, cores = beside.replayed, _cores(beside.slots) * world.ratio("cpu_speed")
    if not np.isfinite(cores).any():
        return np.zeros(len(replayed.slot))
    wants = over(execution.volumes.on_cpu_ms, replayed.finish_ms - replayed.launch_ms)
    full: Floats = beside.level("worker", wants) / cores[beside.slots.worker[replayed.slot]]
    return full


def _crowd(beside: Beside, parts: Floats, cpu: int) -> Floats:
    """How many units of its worker want a CPU while a unit runs, itself counted as one, over the cores that the
    worker can get; 0 where no limit is known.

    The more units want a CPU, the longer each waits for its turn.  A worker with more slots gets more CPU, and a unit
    that runs there alone, as the last of its group, waits less for it.  How fast a core is does not matter: the time
    that units want one for is in that speed's already.
    """
    cores = _cores(beside.slots)[beside.slots.worker[beside.replayed.slot]]
    if not np.isfinite(cores).any():
        return np.zeros(len(cores))
    crowd: Floats = _company(beside, "worker", parts, cpu) / cores
    return crowd


def in_turns(group: Ints, on_cpu_ms: Floats, cpu_ms: Floats) -> Floats:
    """Time on the CPU, waiting for it included, where each unit waits as long for a second of its work as its group;
    (units,) in ms.

    A worker short of CPU gives its units turns of equal length.  Which of them happened to wait longer in the recorded
    run, beside compilers and collectors, is no more than chance where the slots are others.
    """
    count = int(group.max(initial=-1)) + 1
    has_work = on_cpu_ms > 0
    work: Floats = np.bincount(group, on_cpu_ms, count).astype(np.float64)
    whole: Floats = np.bincount(group, np.where(has_work, cpu_ms, 0.0), count).astype(np.float64)
    shared: Floats = np.where(has_work, on_cpu_ms * over(whole, work, 1.0)[group], cpu_ms)
    return shared


def _cores(slots: Slots) -> Floats:
    """The CPU that each worker can get, cores; infinite where no limit is known."""
    return np.asarray(np.bincount(slots.worker, weights=slots.cpu_cores), np.float64)


def _company(beside: Beside, whose: str, parts: Floats, column: int) -> Floats:
    """How many units share a resource with each unit on average."""
    return beside.company(whose, over(parts[:, column], parts.sum(axis=1)))


def _company_before(recorded: Execution, base: Beside, execution: Execution, column: int, whose: str) -> Floats:
    """With how many units each unit that is to run shared the device in the recorded run, itself counted as one.

    Units that are cut anew are made of what the recorded ones of their group did, so they get the group's mean.
    """
    parts = recorded.units.parts_ms
    found = _company(base, whose, parts, column)
    if execution is recorded:
        return found
    return _of_group(recorded, found, parts[:, column], execution)


def _of_group(recorded: Execution, found: Floats, weight: Floats, execution: Execution) -> Floats:
    """The company that units which are to run get of their group's recorded ones, never below 1."""
    of_group: Floats = np.maximum(_mean_of_group(recorded, found, weight, execution), 1.0)
    return of_group


def _mean_of_group(recorded: Execution, found: Floats, weight: Floats, execution: Execution) -> Floats:
    """The weighted mean over each group's recorded units, for each unit that is to run."""
    count, group = len(recorded.dag.groups), recorded.units.group
    weight = weight + 1e-9
    mean = np.bincount(group, found * weight, count) / np.maximum(np.bincount(group, weight, count), 1e-9)
    of_group: Floats = mean[execution.units.group]
    return of_group
