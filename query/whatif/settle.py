"""Replays until the sharing of devices and the schedule agree.

Units share devices: a host's disk and network, a worker's CPU.  How many want one at a time follows from the schedule,
and the schedule from how long each unit takes, so the two are worked out in turns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from indexes.resources import CPU, NET
from query.model.dag import ANYWHERE
from query.model.execution import Execution, Slots
from query.model.policy import Policy
from query.model.records import Floats, Ints
from query.model.world import World
from query.whatif.effects import State
from query.whatif.replay import Replayed, replay
from query.whatif.sharing import company, mean_level
from query.whatif.waves import first_wave, warm_up_factors

ROUNDS = 12
"""Most replays until sharing and schedule agree."""

SETTLED = 0.002
"""Change of the makespan, relative, below which they do."""


def settled(
    state: State,
    recorded: Execution,
    base: Replayed,
    world: World,
    policy: Policy,
    limits: list[int | None],
) -> Replayed:
    """The replay of a changed state.

    `recorded` is the run as it was and `base` its replay; `limits` are the units that each group may run at a time.
    """
    execution, slots, parts = state.execution, state.slots, state.parts_ms
    units, names = execution.units, execution.names
    cpu = names.index(CPU)
    before = base
    if execution is not recorded:  # what the new units would share and when they would warm up on the recorded slots
        before = replay(execution.dag, units, units.duration_ms, recorded.slots, policy, limits)
    shared = {
        column: each.shared_by
        for column, each in enumerate(execution.resources)
        if column != cpu and each.shared_by != "nobody"
    }
    company_before = {
        column: _company_before(recorded, base, execution, column, whose) for column, whose in shared.items()
    }
    as_recorded = World(recorded=world.recorded)
    allowed = np.maximum(_pressure(execution, recorded.slots, before, as_recorded), 1.0)
    wave_before, warm_up = first_wave(group=units.group, replayed=before), warm_up_factors(recorded, base)

    placed = units
    if world.ratio("workers") != 1:  # other workers: units go where there is room
        placed = replace(units, worker=np.full(len(units), -1), placement=np.full(len(units), ANYWHERE))
    now = before
    factor = {column: np.ones(len(units)) for column in shared}
    stretch = np.ones(len(units))
    on_cpu = np.minimum(execution.volumes.on_cpu_ms / world.ratio("cpu_speed"), parts[:, cpu])
    waits, left = parts[:, cpu] - on_cpu, np.ones(len(units))
    has_more_cpu = world.ratio("cores") > 1
    if has_more_cpu:
        crowd_before = _crowd(recorded.slots, before, units.parts_ms, as_recorded, cpu)
    for _ in range(ROUNDS):
        current = parts.copy()
        for column in shared:
            current[:, column] *= factor[column]
        wave = first_wave(group=units.group, replayed=now)
        warmth = np.where(wave & ~wave_before, warm_up[units.group], 1.0)
        warmth = np.where(~wave & wave_before, 1.0 / warm_up[units.group], warmth)
        current[:, cpu] += current.sum(axis=1) * (stretch - 1.0) - waits * (1.0 - left)
        last, now = now, replay(state.dag, placed, current.sum(axis=1) * warmth, slots, policy, limits)
        for column, whose in shared.items():
            after = _company(_owner(slots, whose), now, current, column)
            factor[column] = (factor[column] + after / company_before[column]) / 2
        # A device that was hidden behind a slower one becomes the limit once it is full.
        excess = _pressure(execution, slots, now, world) / allowed
        stretch = np.maximum(stretch * np.sqrt(excess), 1.0)
        if has_more_cpu:
            crowd = _over(_crowd(slots, now, current, world, cpu), crowd_before)
            eased = np.maximum(parts[:, cpu] * np.minimum(crowd, 1.0), on_cpu) - on_cpu
            left = (left + _over(eased, waits)) / 2
        if last is not before and abs(now.makespan_ms - last.makespan_ms) <= SETTLED * last.makespan_ms:
            break
    return now


def _owner(slots: Slots, whose: str) -> Ints:
    """Each slot's worker or host, by whose units share a device."""
    return slots.worker if whose == "worker" else slots.host


def _pressure(execution: Execution, slots: Slots, replayed: Replayed, world: World) -> Floats:
    """The demand on the fuller of CPU and network while a unit runs, divided by its capacity in a world.

    The demand on a worker's CPU is its units' work only, because units do not wait for its compilers and servers to
    finish: with less CPU, less of that gets done meanwhile.  A node's network has the
    bytes that its units fetched of each other, as far as the run tells how much it can do: they may have arrived ahead
    of their reader.  What it sends, and input from other nodes, is not among them.  Of a disk that is read as needed,
    time waited says all; what is logged beyond that came from memory.
    """
    worker = slots.worker[replayed.slot]
    pressure = _wanted(worker, replayed, execution.volumes.on_cpu_ms) / _cores(slots, world)[worker]
    network = execution.resources[execution.names.index(NET)]
    bandwidth_bps = world.recorded.get(network.setting)
    if bandwidth_bps is not None:
        its = execution.volumes.moved(network) / (bandwidth_bps * world.ratio(network.setting)) * 1e3
        pressure = np.maximum(pressure, _wanted(slots.host[replayed.slot], replayed, its))
    return pressure


def _crowd(slots: Slots, replayed: Replayed, parts: Floats, world: World, cpu: int) -> Floats:
    """How many units of its worker want a CPU while a unit runs, itself counted as one, over the cores that the
    worker can get; 0 where no limit is known.

    The more units want a CPU, the longer each waits for its turn.  A worker with more slots gets more CPU, and a unit
    that runs there alone, as the last of its group, waits less for it.
    """
    cores = _cores(slots, world)[slots.worker[replayed.slot]]
    crowd: Floats = _company(slots.worker, replayed, parts, cpu) / cores
    return crowd


def _cores(slots: Slots, world: World) -> Floats:
    """The CPU that each worker can get in a world, recorded cores; infinite where no limit is known."""
    return np.asarray(np.bincount(slots.worker, weights=slots.cpu_cores) * world.ratio("cpu_speed"), np.float64)


def _over(part: Floats, whole: Floats, otherwise: float = 1.0) -> Floats:
    """Quotients, `otherwise` where there is nothing to divide by."""
    quotient: Floats = np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0)
    return quotient


def _wanted(group: Ints, replayed: Replayed, work_ms: Floats) -> Floats:
    """The work per time that all units of its group bring while a unit runs."""
    length = replayed.finish_ms - replayed.launch_ms
    return mean_level(group, replayed.launch_ms, replayed.finish_ms, _over(work_ms, length, 0.0))


def _company(of_slot: Ints, replayed: Replayed, parts: Floats, column: int) -> Floats:
    """How many units share a resource with each unit on average; `of_slot` is each slot's host or worker."""
    share = _over(parts[:, column], parts.sum(axis=1), 0.0)
    return company(of_slot[replayed.slot], replayed.launch_ms, replayed.finish_ms, share)


def _company_before(recorded: Execution, base: Replayed, execution: Execution, column: int, whose: str) -> Floats:
    """With how many units each unit that is to run shared the device in the recorded run, itself counted as one.

    Units that are cut anew are made of what the recorded ones of their group did, so they get the group's mean.
    """
    parts, group = recorded.units.parts_ms, recorded.units.group
    found = _company(_owner(recorded.slots, whose), base, parts, column)
    if execution is recorded:
        return found
    count = len(recorded.dag.groups)
    weight = parts[:, column] + 1e-9
    mean = np.bincount(group, found * weight, count) / np.maximum(np.bincount(group, weight, count), 1e-9)
    of_group: Floats = np.maximum(mean, 1.0)[execution.units.group]
    return of_group
