"""Replays until the sharing of devices and the schedule agree.

Units share devices: a host's disk and network, a worker's CPU.  How many want one at a time follows from the schedule,
and the schedule from how long each unit takes, so the two are worked out in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexes.resources import CPU
from query.model.arrays import over
from query.model.dag import ANYWHERE, AT_HOME, ELSEWHERE, Units
from query.model.execution import Execution, Slots
from query.model.policy import Policy
from query.model.records import Floats, Ints
from query.model.world import World
from query.whatif.cold import Cold, cold, placed_before
from query.whatif.effects import State
from query.whatif.effects.speed import starving_ms
from query.whatif.listing import followed
from query.whatif.replay import Replayed, prepared, replay
from query.whatif.sharing import Beside
from query.whatif.transfers import MODEL, Known, Physics, Transfer, as_recorded, share_of, transfers

ROUNDS = 12
"""Most replays until sharing and schedule agree."""

SETTLED = 0.002
"""Change of the makespan, and of all unit time, relative, below which they do: the first may stand still by chance."""


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
    known = _transfers(recorded, beside_recorded, execution, parts_before, world, physics)
    # One column after the other in memory, for that is how they are gone through.
    parts, parts_before = (np.asfortranarray(_explained(each, known)) for each in (state.parts_ms, parts_before))
    by_bytes = [each.transfer.column for each in known]
    rest = [column for column in range(parts.shape[1]) if column not in by_bytes]
    shared = {
        column: each.shared_by
        for column, each in enumerate(execution.resources)
        if column != cpu and column not in by_bytes and each.shared_by != "nobody"
    }
    company_before = {
        column: _company_before(recorded, beside_recorded, execution, column, whose) for column, whose in shared.items()
    }
    as_before = World(recorded=world.recorded)
    allowed = np.maximum(_pressure(execution, beside_before, as_before), 1.0)
    same = units is recorded.units and slots is recorded.slots  # then the same units are the first
    first = None if same or not physics.cold else first or cold(recorded, base)

    placed = units
    if world.ratio("workers") != 1 and not execution.framework.in_order:
        placed = _placed_anew(units, len(execution.dag.groups))
    again = prepared(state.dag, placed, slots, policy, limits)
    now = before
    factor = {column: np.ones(len(units)) for column in shared}
    among = [each.company for each in known]
    length = parts_before.sum(axis=1)
    together = list(among)  # of units cut anew, the recorded ones' company is all that is known
    if units is recorded.units:
        together = [_together(each, each.took_ms, length, beside_before) for each in known]
    stretch = np.ones(len(units))
    least_ms = execution.volumes.on_cpu_ms / world.ratio("cpu_speed")
    on_cpu = np.minimum(least_ms, parts[:, cpu])
    more_cpu = world.ratio("cores") if execution.framework.lanes_bring_cpu else 1.0
    has_more_cpu = more_cpu > 1
    if more_cpu != 1 and physics.turns and np.isfinite(recorded.slots.cpu_limit()):
        parts[:, cpu] = in_turns(units.group, on_cpu, parts[:, cpu])
        first = first and cold(recorded, base, recorded.volumes.on_cpu_ms)
    waits, left = parts[:, cpu] - on_cpu, np.ones(len(units))
    # Of lanes that bring no CPU, units cut anew share what there is, so each waits for more or for fewer of them.
    is_recut = units is not recorded.units
    shares_anew, crowd_before = is_recut and not execution.framework.lanes_bring_cpu, np.zeros(0)
    if shares_anew:
        recorded_parts = recorded.units.parts_ms.copy()
        if world.ratio("cpu_speed") != 1:  # as the effect has moved it in those that are to run
            recorded_parts[:, cpu] += starving_ms(recorded, recorded_parts)
        crowd_before = _crowd(beside_recorded, recorded_parts, cpu)
        limited = np.where(crowd_before > 0, recorded_parts[:, cpu], 0.0)
        crowd_before = _mean_of_group(recorded, crowd_before, limited, execution)
    elif has_more_cpu:
        crowd_before = _crowd(beside_before, parts_before, cpu)
    if first is not None:  # loading and compiling is computing
        first = replace(first, more_ms=first.more_ms / world.ratio("cpu_speed"))
        were_first = placed_before(first, recorded, base, units, before)
    work_ms = 0.0
    for _ in range(ROUNDS):
        current = parts.copy(order="F")
        for column in shared:
            current[:, column] *= factor[column]
        current[:, cpu] += current.sum(axis=1) * (stretch - 1.0) - waits * (1.0 - left)
        more = sum((current[:, column] - parts_before[:, column] for column in rest), np.zeros(len(units)))
        took = []
        for each, others in zip(known, among, strict=True):
            transfer_ms, seen_ms = each.in_world(others, more)
            mine = current[:, each.transfer.column]
            current[:, each.transfer.column] = np.maximum(mine + (seen_ms - each.seen_ms), 0.0)
            took.append(transfer_ms)
        length = current.sum(axis=1)
        takes = length = np.maximum(length, least_ms)
        if first is not None:
            are = first.firsts(units.group, now, recorded.slots if now is before else slots, recorded.starts)
            takes = were_first.moved(first, are, units.group, length)
        last, now, took_ms = now, again(takes), work_ms
        work_ms = float(takes.sum())
        agrees = abs(now.makespan_ms - last.makespan_ms) <= SETTLED * last.makespan_ms
        if last is not before and agrees and abs(work_ms - took_ms) <= SETTLED * took_ms:
            break
        beside = Beside(slots, now)
        for column, whose in shared.items():
            after = _company(beside, whose, current, column)
            factor[column] = (factor[column] + after / company_before[column]) / 2
        for position, each in enumerate(known):
            after = _together(each, took[position], length, beside) / together[position]
            if physics.company:
                among[position] = (among[position] + np.maximum(each.company * after, 1.0)) / 2
        # A CPU that was hidden behind a slower device becomes the limit once it is full.
        excess = _pressure(execution, beside, world) / allowed
        stretch = np.maximum(stretch * np.sqrt(excess), 1.0)
        if has_more_cpu or shares_anew:
            now_crowd = _crowd(beside, current, cpu)
            crowd = over(now_crowd, crowd_before, 1.0)
            # Cut anew, units wait for more or for less, but as they did where no limit is known.
            crowd = np.where(now_crowd > 0, crowd, 1.0) if shares_anew else np.minimum(crowd, 1.0)
            eased = np.maximum(parts[:, cpu] * crowd, on_cpu) - on_cpu
            left = (left + over(eased, waits, 1.0)) / 2
    lasting = _lasting(current * over(takes, current.sum(axis=1), 1.0)[:, None], now.finish_ms - now.launch_ms)
    return Settled(now, lasting, float(np.abs(takes - length).sum()) / (float(takes.sum()) or 1.0))


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


def _together(each: Known, took_ms: Floats, length_ms: Floats, beside: Beside) -> Floats:
    """How many units use a transfer's device at a time while each unit runs, itself counted as one."""
    return beside.company(each.transfer.shared_by, share_of(took_ms, length_ms))


def _transfers(
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


def _explained(parts_ms: Floats, known: Sequence[Known]) -> Floats:
    """The parts of units with unseen time on the devices that it was spent on, as far as bytes explain it."""
    parts = parts_ms.copy()
    for each in known:
        missing = np.clip(each.seen_ms - parts[:, each.transfer.column], 0.0, parts[:, -1])
        parts[:, each.transfer.column] += missing
        parts[:, -1] -= missing
    return parts


def _pressure(execution: Execution, beside: Beside, world: World) -> Floats:
    """The demand on a worker's CPU while a unit runs, divided by what it can get in a world; 0 where no limit is known.

    It is its units' work only, because units do not wait for its compilers and servers to finish: with less CPU, less
    of that gets done meanwhile.
    """
    replayed, cores = beside.replayed, _cores(beside.slots) * world.ratio("cpu_speed")
    if not np.isfinite(cores).any():
        return np.zeros(len(replayed.slot))
    wants = over(execution.volumes.on_cpu_ms, replayed.finish_ms - replayed.launch_ms)
    pressure: Floats = beside.level("worker", wants) / cores[beside.slots.worker[replayed.slot]]
    return pressure


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
