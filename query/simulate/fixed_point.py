"""Replays until the sharing of devices and the schedule agree.

Units share devices: a host's disk and network, a worker's CPU.  How many want one at a time follows from the schedule,
and the schedule from how long each unit takes, so the two are worked out in turns.
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

ROUNDS = 12
"""Most replays until sharing and schedule agree."""

SETTLED = 0.002
"""Change of the makespan, and of all unit time, relative, below which they do: the first may stand still by chance."""

SLOW, MOST_AHEAD = 0.5, 6.0
"""Share of the turn before from which on the next turn goes farther, and how many times as far at most."""


@dataclass(frozen=True)
class Settled:
    """A replay, and what the time of each of its units goes to there, (units, resources + 1); rows sum to durations.

    `cold_share` is how much of that time came or went with which units are the first on their worker.
    """

    replayed: Replayed
    parts_ms: Floats
    cold_share: float


def settled(
    state: State,
    recorded: Execution,
    base: Replayed,
    world: World,
    policy: Policy,
    limits: list[int | None],
    physics: Physics = MODEL,
    beside: Beside | None = None,
    first: Cold | None = None,
) -> Settled:
    """The replay of a changed state.

    `recorded` is the run as it was and `base` its replay; `limits` are the units that each group may run at a time.
    `beside` is who ran beside whom in `base`, and `first` what being first costs its units, where several questions
    share them.
    """
    execution, slots = state.execution, state.slots
    units, names = execution.units, execution.names
    cpu = names.index(CPU)
    before = base
    if execution is not recorded:  # what the new units would share and when they would warm up on the recorded slots
        before = replay(execution.dag, units, units.duration_ms, recorded.slots, policy, limits)
    beside_recorded = beside or Beside(recorded.slots, base)
    beside_before = beside_recorded if before is base else Beside(recorded.slots, before)
    parts_before = state.parts_ms if state.before_ms is None else state.before_ms
    known = crossings_before(recorded, beside_recorded, execution, parts_before, world, physics)
    # One column after the other in memory, for that is how they are gone through.
    parts, parts_before = (np.asfortranarray(explained(each, known)) for each in (state.parts_ms, parts_before))
    by_bytes = [each.transfer.column for each in known]
    rest = [column for column in range(parts.shape[1]) if column not in by_bytes]
    same = units is recorded.units and slots is recorded.slots  # then the same units are the first
    first = None if same or not physics.cold else first or cold(recorded, base)
    more_cpu = world.ratio("cores") if execution.planner.lanes_bring_cpu else 1.0
    least_ms = execution.volumes.on_cpu_ms / world.ratio("cpu_speed")
    if more_cpu != 1 and physics.turns and np.isfinite(recorded.slots.cpu_limit()):
        parts[:, cpu] = in_turns(units.group, np.minimum(least_ms, parts[:, cpu]), parts[:, cpu])
        first = first and cold(recorded, base, recorded.volumes.on_cpu_ms)

    shared = {
        column: each.shared_by
        for column, each in enumerate(execution.resources)
        if column != cpu and column not in by_bytes and each.shared_by != "nobody"
    }
    devices = Devices(recorded, beside_recorded, execution, shared)
    is_recut = units is not recorded.units
    crossings = Crossings(known, None if is_recut else beside_before, parts_before.sum(axis=1))
    cpus = Cpus(recorded, execution, world, parts, parts_before, beside_recorded, beside_before)
    placed = units
    if world.ratio("workers") != 1 and not execution.in_order:
        placed = _placed_anew(units, len(execution.dag.groups))
    again = prepared(state.dag, placed, slots, policy, limits)
    now = before
    if first is not None:  # loading and compiling is computing
        first = replace(first, more_ms=first.more_ms / world.ratio("cpu_speed"))
        were_first = placed_before(first, recorded, base, units, before)
    work_ms, pace = 0.0, _Pace()
    for turn in range(ROUNDS):
        current = parts.copy(order="F")
        devices.put(current)
        cpus.put(current)
        more_ms = sum((current[:, column] - parts_before[:, column] for column in rest), np.zeros(len(units)))
        crossings.put(current, more_ms)
        takes = length = np.maximum(current.sum(axis=1), least_ms)
        if first is not None:
            are = first.firsts(units.group, now, recorded.slots if now is before else slots, recorded.starts)
            takes = were_first.moved(first, are, units.group, length)
        last, now, took_ms = now, again(takes), work_ms
        work_ms = float(takes.sum())
        agrees = abs(now.makespan_ms - last.makespan_ms) <= SETTLED * last.makespan_ms
        if last is not before and agrees and abs(work_ms - took_ms) <= SETTLED * took_ms:
            break
        beside = Beside(slots, now)
        devices.take(beside, current)
        if physics.company:
            crossings.take(beside, length, pace.ahead(work_ms - took_ms) if turn else 1.0)
        cpus.take(beside, current)
    lasting = _lasting(current * over(takes, current.sum(axis=1), 1.0)[:, None], now.finish_ms - now.launch_ms)
    return Settled(now, lasting, float(np.abs(takes - length).sum()) / (float(takes.sum()) or 1.0))


@dataclass
class _Pace:
    """How fast turns come to rest: where each goes a share p of the way that the one before went, what is left is
    1 / (1 - p) times the next (Aitken)."""

    last_ms: float = 0.0
    """What the turn before moved all unit time by; 0 where that is no measure."""

    def ahead(self, moved_ms: float) -> float:
        """How many times as far as usual the next turn is to go, after one that has moved all unit time so far."""
        share = moved_ms / self.last_ms if self.last_ms else 0.0
        if not SLOW < share < 1.0:
            self.last_ms = moved_ms
            return 1.0
        self.last_ms = 0.0  # a turn that goes farther is no measure of the pace
        return min(1.0 / (1.0 - share), MOST_AHEAD)


def _placed_anew(units: Units, groups: int) -> Units:
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
