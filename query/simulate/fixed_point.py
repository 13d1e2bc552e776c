"""The fixed point of a scenario's schedule and of the contention for devices.

Units share devices: a host's disk and network, a worker's CPU.  How many want one at a time follows from the schedule,
and the schedule from how long each unit takes, so replays alternate with contention until both agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.dag import ANYWHERE, AT_HOME, ELSEWHERE, Units
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.execution.scheduling import Policy
from crystalperf.query.simulate.contention import Cpus, Crossings, Devices, crossings_before, explained, in_turns
from crystalperf.query.simulate.device_sharing import Beside
from crystalperf.query.simulate.effects import State
from crystalperf.query.simulate.list_schedule import followed
from crystalperf.query.simulate.replay import Replayed, prepared, replay
from crystalperf.query.simulate.transfers import MODEL, Physics
from crystalperf.query.simulate.warmup import Cold, cold, placed_before
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Floats

ITERATIONS = 12
"""Most replays until contention and schedule agree."""

TOLERANCE = 0.002
"""Relative change of the makespan and of all unit time below which they agree: one alone may stand still."""

SLOW, LONGEST_STEP = 0.5, 6.0
"""Share of the last iteration's change from which on the next step is extrapolated, and how many times as long it may
get."""


@dataclass(frozen=True)
class Baseline:
    """The recorded units replayed on the recorded slots."""

    replayed: Replayed
    limits: list[int | None]
    """Per group the units that it may run at a time."""
    policy: Policy
    """How the framework assigned slots."""
    beside: Beside
    """Which units ran at the same time."""
    first: Cold | None
    """What it costs units to be the first on their worker; None where none is (cold())."""


@dataclass(frozen=True)
class FixedPoint:
    """A replay, and what the time of each of its units goes to there, (units, resources + 1); rows sum to durations.

    `cold_share` is how much of that time came or went with which units are the first on their worker.
    """

    replayed: Replayed
    parts_ms: Floats
    cold_share: float


def solve_fixed_point(
    state: State, recorded: Execution, base: Baseline, world: World, policy: Policy, physics: Physics = MODEL
) -> FixedPoint:
    """The replay of a changed state by a policy; `recorded` is the run as it was, `base` its replay."""
    execution, slots = state.execution, state.slots
    units, least_ms = execution.units, execution.volumes.on_cpu_ms / world.ratio("cpu_speed")
    before = base.replayed
    if execution is not recorded:  # what the new units would share and when they would warm up on the recorded slots
        before = replay(execution.dag, units, units.duration_ms, recorded.slots, policy, base.limits)
    contention = _Contention(state, recorded, base, world, before, physics)
    first = _first_units(state, recorded, base, world, physics, contention.in_turns)
    were_first = None if first is None else placed_before(first, recorded, base.replayed, units, before)
    placed = units
    if world.ratio("workers") != 1 and not execution.in_order:
        placed = _without_places(units, len(execution.dag.groups))
    run_again = prepared(state.dag, placed, slots, policy, base.limits)
    now, work_ms, aitken = before, 0.0, _Aitken()
    for iteration in range(ITERATIONS):
        current = contention.apply()
        takes = length = np.maximum(current.sum(axis=1), least_ms)
        if first is not None and were_first is not None:
            are = first.firsts(units.group, now, recorded.slots if now is before else slots, recorded.starts)
            takes = were_first.moved(first, are, units.group, length)
        last, now, took_ms = now, run_again(takes), work_ms
        work_ms = float(takes.sum())
        agrees = abs(now.makespan_ms - last.makespan_ms) <= TOLERANCE * last.makespan_ms
        if last is not before and agrees and abs(work_ms - took_ms) <= TOLERANCE * took_ms:
            break
        contention.update(Beside(slots, now), current, length, aitken.step(work_ms - took_ms) if iteration else 1.0)
    lasting = _lasting(current * over(takes, current.sum(axis=1), 1.0)[:, None], now.finish_ms - now.launch_ms)
    return FixedPoint(now, lasting, float(np.abs(takes - length).sum()) / (float(takes.sum()) or 1.0))


class _Contention:
    """The parts of units, (units, resources + 1) in ms, as the devices that they share make them."""

    def __init__(
        self, state: State, recorded: Execution, base: Baseline, world: World, before: Replayed, physics: Physics
    ) -> None:
        """`before` is the replay of the state's units on the recorded slots."""
        execution = state.execution
        cpu = execution.names.index(CPU)
        beside_before = base.beside if before is base.replayed else Beside(recorded.slots, before)
        parts_before = state.parts_ms if state.before_ms is None else state.before_ms
        known = crossings_before(recorded, base.beside, execution, parts_before, world, physics)
        # One column after the other in memory, for that is how they are gone through.
        parts, parts_before = (np.asfortranarray(explained(each, known)) for each in (state.parts_ms, parts_before))
        by_bytes = [each.transfer.column for each in known]
        more_cpu = world.ratio("cores") if execution.planner.lanes_bring_cpu else 1.0
        self.in_turns = more_cpu != 1 and physics.turns and bool(np.isfinite(recorded.slots.cpu_limit()))
        """Whether units took turns on a full CPU of which slots bring more."""
        if self.in_turns:
            least_ms = execution.volumes.on_cpu_ms / world.ratio("cpu_speed")
            parts[:, cpu] = in_turns(execution.units.group, np.minimum(least_ms, parts[:, cpu]), parts[:, cpu])
        shared = {
            column: each.shared_by
            for column, each in enumerate(execution.resources)
            if column != cpu and column not in by_bytes and each.shared_by != "nobody"
        }
        self._parts, self._before = parts, parts_before
        self._rest = [column for column in range(parts.shape[1]) if column not in by_bytes]
        self._has_company = physics.company
        self._devices = Devices(recorded, base.beside, execution, shared)
        is_recut = execution.units is not recorded.units
        self._crossings = Crossings(known, None if is_recut else beside_before, parts_before.sum(axis=1))
        self._cpus = Cpus(recorded, execution, world, parts, parts_before, base.beside, beside_before)

    def apply(self) -> Floats:
        """The parts of units as the devices stand now."""
        current = self._parts.copy(order="F")
        self._devices.put(current)
        self._cpus.put(current)
        more_ms = sum((current[:, each] - self._before[:, each] for each in self._rest), np.zeros(len(current)))
        self._crossings.put(current, more_ms)
        return current

    def update(self, beside: Beside, current: Floats, length_ms: Floats, step: float) -> None:
        """Take contention from a schedule, and from the parts and lengths that made it."""
        self._devices.take(beside, current)
        if self._has_company:
            self._crossings.take(beside, length_ms, step)
        self._cpus.take(beside, current)


def _first_units(
    state: State, recorded: Execution, base: Baseline, world: World, physics: Physics, in_turns: bool
) -> Cold | None:
    """What it costs to be the first on a worker; None where the same units are the first."""
    same = state.execution.units is recorded.units and state.slots is recorded.slots
    first = None if same or not physics.cold else base.first
    if first is not None and in_turns:
        first = cold(recorded, base.replayed, recorded.volumes.on_cpu_ms)
    # Loading and compiling is computing.
    return first and replace(first, more_ms=first.more_ms / world.ratio("cpu_speed"))


@dataclass
class _Aitken:
    """Aitken's extrapolation: where each change is a share p of the last one, what is left is 1 / (1 - p) times the
    next."""

    last_ms: float = 0.0
    """The last change of all unit time; 0 where that was an extrapolated one."""

    def step(self, moved_ms: float) -> float:
        """How many times as far as usual the next step goes, after one that changed all unit time so far."""
        share = moved_ms / self.last_ms if self.last_ms else 0.0
        if not SLOW < share < 1.0:
            self.last_ms = moved_ms
            return 1.0
        self.last_ms = 0.0
        return min(1.0 / (1.0 - share), LONGEST_STEP)


def _without_places(units: Units, groups: int) -> Units:
    """Units on other workers: they go where there is room, but for those whose data are where others of them ran."""
    follows = followed(units) >= 0
    keeps = np.bincount(units.group, follows, groups) > 0
    stays = (follows & (units.placement == AT_HOME)) | (keeps[units.group] & (units.placement == ELSEWHERE))
    placement = np.where(stays, units.placement, ANYWHERE)
    return replace(units, worker=np.full(len(units), -1), placement=placement)


def _lasting(parts_ms: Floats, length_ms: Floats) -> Floats:
    """Parts that sum to the lengths: units of a pipeline also wait for each other, or no longer do."""
    whole_ms = parts_ms.sum(axis=1)
    found = parts_ms * np.minimum(over(length_ms, whole_ms, 1.0), 1.0)[:, None]
    found[:, -1] += np.maximum(length_ms - whole_ms, 0.0)
    return found
