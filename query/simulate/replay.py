"""Replay of the execution DAG on slots (paper §5, Algorithm 1, and its footnote 8).

A replay takes unit durations and the coordinator's intervals from the recorded run, and computes start times from
slots and edges.  A replay of the baseline should reproduce the run; every answer reports its error.

A group in a pipeline starts after the groups it reads with the recorded delay.  Its units do their own work, and end
after those groups end, with the recorded delay.  Units that had to wait for their readers end before these are done,
by the recorded time.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.query.execution.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, Units
from crystalperf.query.execution.scheduling import FIRST_COME, Policy, Waiting
from crystalperf.query.execution.slots import Slots
from crystalperf.query.results.refusals import NoWorkerLeft, RefusedError, SlotsTooFew
from crystalperf.query.simulate.list_schedule import Schedule, ScheduleInput, can_list, followed, has_compiled
from crystalperf.query.trace.arrays import over
from crystalperf.query.trace.records import Floats, Ints


class NoWorkerLeftError(RefusedError):
    """Units are left, but every worker is lost."""

    def __init__(self) -> None:
        super().__init__(NoWorkerLeft())


@dataclass(frozen=True)
class Replayed:
    """The schedule of a replay: times of units and nodes, ms, and slots.  Unit arrays are aligned with the units."""

    start_ms: float
    end_ms: float
    launch_ms: Floats
    finish_ms: Floats
    slot: Ints
    node_start_ms: dict[str, float]
    node_end_ms: dict[str, float]

    @property
    def makespan_ms(self) -> float:
        return self.end_ms - self.start_ms


def replay(
    dag: Dag,
    units: Units,
    durations_ms: Floats,
    slots: Slots,
    policy: Policy = FIRST_COME,
    limits: Sequence[int | None] | None = None,
) -> Replayed:
    """Replay the DAG on slots; `durations_ms` is aligned with `units`, `limits` caps the parallelism of each group.

    Units of a group launch in their recorded order (footnote 8).  Coordinator intervals keep their recorded length.
    """
    return prepared(dag, units, slots, policy, limits)(durations_ms)


def prepared(
    dag: Dag,
    units: Units,
    slots: Slots,
    policy: Policy = FIRST_COME,
    limits: Sequence[int | None] | None = None,
) -> Callable[[Floats], Replayed]:
    """A function from durations to their replay, for several replays that differ in durations only."""
    if limits is not None and limits and all(each == 1 for each in limits) and not _flows(dag):
        return lambda durations_ms: _in_order(dag, units, durations_ms, slots, policy)
    if not (has_compiled() and can_list(dag, policy)):
        return lambda durations_ms: _Replay(dag, units, durations_ms, slots, policy, limits).run()
    schedule_input = ScheduleInput(dag, units, slots, policy, limits)
    return lambda durations_ms: _replayed(dag, schedule_input.run(durations_ms))


def _replayed(dag: Dag, schedule: Schedule) -> Replayed:
    """The schedule of compiled code as a replay.  Raises NoWorkerLeftError if a node never ran."""
    if np.isnan(schedule.node_end_ms).any():
        raise NoWorkerLeftError
    return Replayed(
        start_ms=dag.start_ms,
        end_ms=float(schedule.node_end_ms.max(initial=dag.start_ms)),
        launch_ms=schedule.launch_ms,
        finish_ms=schedule.finish_ms,
        slot=schedule.slot,
        node_start_ms=dict(zip(dag.nodes, schedule.node_start_ms.tolist(), strict=True)),
        node_end_ms=dict(zip(dag.nodes, schedule.node_end_ms.tolist(), strict=True)),
    )


def _flows(dag: Dag) -> bool:
    return any(each.kind == "pipelined" for each in dag.edges.values())


def _in_order(dag: Dag, units: Units, durations_ms: Floats, slots: Slots, policy: Policy) -> Replayed:
    """The replay of groups whose units run one after the other: each group is replayed as one unit, which is faster."""
    order = np.argsort(units.group, kind="stable")
    group, durations = units.group[order], durations_ms[order]
    first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    which = np.cumsum(np.concatenate([[0], (group[1:] != group[:-1]).astype(np.int64)])) if len(group) else group
    whole: Floats = np.bincount(which, weights=durations, minlength=len(first)).astype(np.float64)
    by_launch = np.argsort(order[first], kind="stable")  # as recorded
    found = _Replay(dag, units.select(order[first][by_launch]), whole[by_launch], slots, policy, None).run()
    back = np.empty(len(first), dtype=np.int64)
    back[by_launch] = np.arange(len(first))
    before = np.cumsum(durations) - durations
    launch, slot = np.empty(len(units)), np.empty(len(units), dtype=np.int64)
    launch[order] = found.launch_ms[back][which] + before - before[first][which]
    slot[order] = found.slot[back][which]
    return replace(found, launch_ms=launch, finish_ms=launch + durations_ms, slot=slot)


class _FreeSlots:
    """Free slots: a unit takes one of its recorded worker, else of the least loaded one, which spreads units.

    The recorded worker shows where a unit's data were, and which units shared a host's disk and network.  Schedulers
    choose idle workers at random (random placement).  New workers, which never ran a unit, get the expected number of
    units here: each launch adds their share of the idle workers to `new_share`, and whenever that reaches 1, a new
    worker gets the unit.  They get none while others can run it if workers come `on_demand`.
    """

    def __init__(self, slots: Slots, on_demand: bool = False) -> None:
        self.on_demand = on_demand
        self.worker = slots.worker.tolist()
        self.until = slots.until_ms.tolist()
        self.last_until = max(self.until, default=0.0)
        count = int(slots.worker.max(initial=-1)) + 1
        self.free: list[list[int]] = [[] for _ in range(count)]
        self.running = [0] * count
        self.used = [False] * count
        # (running, worker) of workers that ran a unit, and of new ones; outdated entries are skipped.  Then the number
        # of idle workers of each kind, with a free slot and no unit, and the accumulated share of new ones.
        self.heaps: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self.idle = [0, 0]
        self.new_share = 0.0
        self.workers_of: dict[int, set[int]] = {}
        self.free_on: dict[int, int] = {}  # by host with free slots, their number
        for worker, host in zip(self.worker, slots.host.tolist(), strict=True):
            self.workers_of.setdefault(host, set()).add(worker)
        self.host = {worker: host for host, workers in self.workers_of.items() for worker in workers}

    def release(self, slot: int) -> None:
        worker = self.worker[slot]
        self._tally(worker, -1)
        self.free[worker].append(slot)
        self._tally(worker, 1)
        self.free_on[self.host[worker]] = self.free_on.get(self.host[worker], 0) + 1
        self._push(worker)

    def _tally(self, worker: int, by: int) -> None:
        """Add `by` to the number of idle workers if a worker has a free slot and runs no unit."""
        if self.free[worker] and not self.running[worker]:
            self.idle[not self.used[worker]] += by

    def _pop(self, worker: int) -> int:
        """Take a free slot of a worker."""
        self._tally(worker, -1)
        slot = self.free[worker].pop()
        self._tally(worker, 1)
        host = self.host[worker]
        self.free_on[host] -= 1
        if not self.free_on[host]:
            del self.free_on[host]
        return slot

    def _push(self, worker: int) -> None:
        heapq.heappush(self.heaps[not self.used[worker]], (self.running[worker], worker))

    def any_alive(self, now: float) -> bool:
        """Whether a slot is free."""
        return self._first(True, now) is not None or self._first(False, now) is not None

    def _first(self, new: bool, now: float) -> int | None:
        """The least loaded worker with a free slot, of new workers or of those that ran a unit; None if there is none.
        Drops the slots of lost workers."""
        heap = self.heaps[new]
        while heap:
            running, worker = heap[0]
            free = self.free[worker]
            while free and now >= self.until[free[-1]]:
                self._pop(worker)
            if free and running == self.running[worker] and new != self.used[worker]:
                return worker
            heapq.heappop(heap)
        return None

    def _least_loaded(self, now: float) -> int:
        """The worker for the next unit; only after any_alive()."""
        new, other = self._first(True, now), self._first(False, now)
        if new is None or other is None:
            found = new if other is None else other
            assert found is not None
            return found
        if self.running[other]:
            return new
        if self.on_demand:
            return other
        self.new_share += self.idle[True] / (self.idle[True] + self.idle[False])
        if self.new_share < 1.0:
            return other
        self.new_share -= 1.0
        return new

    def take(self, now: float, wanted: int, length: float) -> int | None:
        """A slot of the wanted worker, or of the least loaded one; only after any_alive().

        A unit with another recorded worker does not go to a worker that is lost before it would end, because it would
        fail there.  None if all workers with free slots are lost too early, and others will stay for longer.
        """
        free = self.free[wanted] if 0 <= wanted < len(self.free) else []
        if not free or now >= self.until[free[-1]]:
            wanted = self._least_loaded(now)
            if self.until[self.free[wanted][-1]] < now + length <= self.last_until:
                staying = [
                    (self.running[worker], worker)
                    for worker, slots in enumerate(self.free)
                    if slots and self.until[slots[-1]] >= now + length
                ]
                if not staying:
                    return None
                _, wanted = min(staying)
        slot = self._pop(wanted)
        self._tally(wanted, -1)
        self.running[wanted] += 1
        self.used[wanted] = True
        if self.free[wanted]:
            self._push(wanted)
        return slot

    def at_home(self, host: int, wanted: int, now: float) -> int | None:
        """A worker of a host with a free slot, the wanted one if possible; None if there is none."""
        for worker in (wanted, *sorted(self.workers_of.get(host, ()))):
            if 0 <= worker < len(self.free) and self.free[worker] and now < self.until[self.free[worker][-1]]:
                return worker
        return None

    def finished(self, slot: int) -> None:
        worker = self.worker[slot]
        self.running[worker] -= 1
        self._tally(worker, 1)
        self.release(slot)


class _Queue:
    """The units of a group that wait for a slot, in recorded order; unit numbers are that order.

    Each list holds its units last first, so that pop() launches in order.
    """

    def __init__(self, units: Sequence[int], placement: Sequence[int], host: Sequence[int]) -> None:
        self.anywhere: list[int] = []
        self.elsewhere: list[int] = []
        self.at_home: dict[int, list[int]] = {}
        for unit in reversed(units):
            if placement[unit] == AT_HOME:
                self.at_home.setdefault(host[unit], []).append(unit)
            else:
                (self.elsewhere if placement[unit] == ELSEWHERE else self.anywhere).append(unit)

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.elsewhere or self.at_home)

    def __len__(self) -> int:
        return len(self.anywhere) + len(self.elsewhere) + sum(map(len, self.at_home.values()))

    def home(self, free_on: Mapping[int, int]) -> int | None:
        """The first unit whose host has a free slot."""
        few, many = sorted((self.at_home.keys(), free_on.keys()), key=len)
        return min((self.at_home[host][-1] for host in few if host in many), default=None)

    def impatient(self) -> int | None:
        """The first unit that no longer waits for its host."""
        heads = [units[-1] for units in self.at_home.values()]
        return min(heads + self.elsewhere[-1:], default=None)

    def remove(self, unit: int, host: int) -> None:
        """Remove a unit that is first in its list."""
        for units in (self.anywhere, self.elsewhere):
            if units and units[-1] == unit:
                units.pop()
                return
        self.at_home[host].pop()
        if not self.at_home[host]:
            del self.at_home[host]


class _Pipes:
    """Pipelines between groups that run concurrently.

    `own_ms` are the durations without waits of units for others of their pipeline.
    """

    def __init__(self, dag: Dag, units: Units, durations_ms: Floats) -> None:
        self.targets: dict[str, list[tuple[str, float]]] = {}  # by node: its readers, and their start delays
        self._sources_left: dict[str, int] = {}
        self._ended_ms: dict[str, float] = {}
        self._held: dict[str, list[int]] = {}  # by group, its units that wait for the groups it reads
        self._parked: dict[str, list[int]] = {}  # by group, units of others that wait for its launches
        self._target_of = dict.fromkeys(range(len(dag.groups)), "")
        self.own_ms = durations_ms
        pipes = [pair for pair, dependency in dag.edges.items() if dependency.kind == "pipelined"]
        if not pipes:
            return
        ends: dict[str, float] = {}
        gated = {target for (_, target), dependency in dag.edges.items() if dependency.kind != "pipelined"}
        for source, target in pipes:
            # If a group has other dependencies, they decide when it starts; otherwise the pipeline does.
            lag_ms = 0.0 if target in gated else max(dag.nodes[target].start_ms - dag.nodes[source].start_ms, 0.0)
            self.targets.setdefault(source, []).append((target, lag_ms))
            self._sources_left[target] = self._sources_left.get(target, 0) + 1
            ends[target] = max(ends.get(target, dag.start_ms), dag.nodes[source].end_ms)
        for target in ends:
            group = dag.nodes[target].group
            assert group is not None  # only groups are in pipelines
            self._target_of[group] = target
        self.own_ms = np.maximum(durations_ms - units.upstream_ms, 0.0)
        recorded = units.duration_ms - units.upstream_ms
        faster = over(self.own_ms, recorded, 1.0)
        last = np.array([ends.get(self._target_of[group], np.inf) for group in units.group.tolist()])
        self._drain_ms = np.maximum(units.finish_ms - last, 0.0) * faster
        self._waited = units.upstream_ms > 0
        self._taken_ms = dict.fromkeys(ends, 0.0)  # by group, when it has read all of its input
        self._to_launch = {target: int((units.group == dag.nodes[target].group).sum()) for target in ends}
        self._node_of = {node.group: node_id for node_id, node in dag.nodes.items() if node.group is not None}

    def held_until(self, group: int, unit: int) -> float:
        """The earliest end of a unit that has done its own work: when its readers have read all of its output.

        That is before the readers end by the recorded time; infinite while one of them has not been launched.
        """
        if not self.targets or not self._waited[unit]:
            return 0.0
        readers = [target for target, _ in self.targets.get(self._node_of[group], ())]
        if late := [target for target in readers if self._to_launch[target]]:
            self._parked.setdefault(late[0], []).append(unit)
            return np.inf
        return max((self._taken_ms[target] for target in readers), default=0.0)

    def released(self, group: int) -> list[int]:
        """Units of other groups that waited for the launch of this group's units, if all of those are launched."""
        target = self._target_of[group]
        return self._parked.pop(target, []) if target and not self._to_launch[target] else []

    @property
    def are_waiting(self) -> bool:
        """Whether units hold their slots for groups that have not ended."""
        return any(self._held.values()) or any(self._parked.values())

    def enter(self, group: int, unit: int, now: float) -> float | None:
        """Launch a unit, and return its earliest end, or None while a group that it reads still runs."""
        target = self._target_of[group]
        if not target:
            return 0.0
        self._to_launch[target] -= 1
        taken = now + float(self.own_ms[unit] - self._drain_ms[unit])
        self._taken_ms[target] = max(self._taken_ms[target], taken)
        if self._sources_left[target]:
            self._held.setdefault(target, []).append(unit)
            return None
        return self._ended_ms[target] + float(self._drain_ms[unit])

    def drained(self, source: str, now: float) -> list[tuple[int, float]]:
        """End a group, and return the units that waited for it only, with the further time of each."""
        found: list[tuple[int, float]] = []
        for target, _ in self.targets.get(source, ()):
            self._sources_left[target] -= 1
            self._ended_ms[target] = now
            if not self._sources_left[target]:
                found += [(unit, float(self._drain_ms[unit])) for unit in self._held.pop(target, [])]
        return found


_SLOT, _UNIT, _NODE, _WAKE, _FLOW = range(5)


class _Replay:
    """An event-driven simulation: a clock, a heap of events, and queues.

    It supports any order of groups, and pipelines; DAGs that need neither run in query.simulate.list_schedule, which is
    faster.
    """

    def __init__(
        self,
        dag: Dag,
        units: Units,
        durations_ms: Floats,
        slots: Slots,
        policy: Policy,
        limits: Sequence[int | None] | None,
    ) -> None:
        self.dag, self.slots, self.policy = dag, slots, policy
        self.free = _FreeSlots(slots, policy.on_demand)
        self.pipes = _Pipes(dag, units, durations_ms)
        self.durations: list[float] = self.pipes.own_ms.tolist()
        self.group_of: list[int] = units.group.tolist()
        self.worker_of: list[int] = units.worker.tolist()
        self.limits = list(limits) if limits is not None else [None] * len(dag.groups)
        self.launch = [0.0] * len(units)
        self.finish = [0.0] * len(units)
        self.slot = [0] * len(units)
        self.host_of: list[int] = units.host.tolist()
        placement: list[int] = units.placement.tolist() if policy.patience_ms > 0 else [ANYWHERE] * len(units)
        self.placement = placement
        self.of_group: list[list[int]] = [[] for _ in dag.groups]
        for unit, group in enumerate(self.group_of):
            self.of_group[group].append(unit)
        self.followed: list[int] = followed(units).tolist()
        self.queues = [_Queue(own, placement, self.host_of) for own in self.of_group]
        self.left = [len(own) for own in self.of_group]
        self.since = [0.0] * len(dag.groups)  # by group, since when it waits for the hosts of its units
        self.wakes = [-1.0] * len(dag.groups)
        self.running = [0] * len(dag.groups)
        self.successors: dict[str, list[str]] = {node_id: [] for node_id in dag.nodes}
        self.missing: dict[str, int] = dict.fromkeys(dag.nodes, 0)
        for (source, target), dependency in dag.edges.items():
            if dependency.kind != "pipelined":
                self.successors[source].append(target)
            self.missing[target] += 1
        self.node_of_group = {node.group: node_id for node_id, node in dag.nodes.items() if node.group is not None}
        self.node_start: dict[str, float] = {}
        self.node_end: dict[str, float] = {}
        self.ready: list[int] = []
        self.events: list[tuple[float, int, int, int]] = []  # (time, order of entry, kind, which)
        self.names = list(dag.nodes)
        self.number = {node_id: number for number, node_id in enumerate(self.names)}
        self.entered = 0

    def run(self) -> Replayed:
        start = self.dag.start_ms
        for slot, available in enumerate(self.slots.available_ms.tolist()):
            self._at(max(start, available), _SLOT, slot)
        for node_id, missing in self.missing.items():
            if missing == 0:
                self._start_node(node_id, start)
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] <= now:
                _, _, kind, which = heapq.heappop(self.events)
                if kind == _SLOT:
                    self.free.release(which)
                elif kind == _UNIT:
                    self._finish_unit(which, now)
                elif kind == _NODE:
                    self._finish_node(self.names[which], now)
                elif kind == _FLOW:
                    self._release(self.names[which], now)
            self._launch(now)
        if len(self.node_end) < len(self.dag.nodes):
            if self.pipes.are_waiting:
                raise RefusedError(SlotsTooFew())
            raise NoWorkerLeftError
        return Replayed(
            start_ms=start,
            end_ms=max(self.node_end.values(), default=start),
            launch_ms=np.array(self.launch),
            finish_ms=np.array(self.finish),
            slot=np.array(self.slot, dtype=np.int64),
            node_start_ms=self.node_start,
            node_end_ms=self.node_end,
        )

    def _at(self, time: float, kind: int, which: int) -> None:
        self.entered += 1
        heapq.heappush(self.events, (time, self.entered, kind, which))

    def _start_node(self, node_id: str, now: float) -> None:
        node = self.dag.nodes[node_id]
        self.node_start[node_id] = now
        for target, lag_ms in self.pipes.targets.get(node_id, ()):
            self._at(now + lag_ms, _FLOW, self.number[target])
        if node.group is None:
            self._at(now + node.end_ms - node.start_ms, _NODE, self.number[node_id])
        elif self.left[node.group] == 0:
            self._at(now, _NODE, self.number[node_id])
        else:
            self._find_homes(node.group)
            self.ready.append(node.group)
            self.since[node.group] = now

    def _find_homes(self, group: int) -> None:
        """Set the wanted worker of units whose data are where another unit ran to that unit's worker in this replay."""
        own, found = self.of_group[group], False
        for unit in own:
            other = self.followed[unit]
            if self.placement[unit] == AT_HOME and other >= 0 and self.finish[other] > 0:
                self.worker_of[unit] = self.free.worker[self.slot[other]]
                self.host_of[unit] = self.free.host[self.worker_of[unit]]
                found = True
        if found:
            self.queues[group] = _Queue(own, self.placement, self.host_of)

    def _release(self, node_id: str, now: float) -> None:
        """Note that one dependency of a node is satisfied; start the node after the last one."""
        self.missing[node_id] -= 1
        if self.missing[node_id] == 0:
            self._start_node(node_id, now)

    def _finish_node(self, node_id: str, now: float) -> None:
        self.node_end[node_id] = now
        for unit, drain_ms in self.pipes.drained(node_id, now):
            self._end_unit(unit, max(self.finish[unit], now + drain_ms))
        for successor in self.successors[node_id]:
            self._release(successor, now)

    def _end_unit(self, unit: int, at: float) -> None:
        self.finish[unit] = at
        self._at(at, _UNIT, unit)

    def _finish_unit(self, unit: int, now: float) -> None:
        group = self.group_of[unit]
        held_until = self.pipes.held_until(group, unit)
        if held_until > now:
            if np.isfinite(held_until):
                self._end_unit(unit, held_until)
            return
        self.running[group] -= 1
        self.left[group] -= 1
        self.free.finished(self.slot[unit])
        if self.left[group] == 0:
            self._at(now, _NODE, self.number[self.node_of_group[group]])

    def _launch(self, now: float) -> None:
        blocked: set[int] = set()
        while able := [s for s in self.ready if s not in blocked and self._is_below_limit(s)]:
            if not self.free.any_alive(now):
                if not self.policy.restarts:  # no slot is left idle
                    for each in self.ready:
                        self.since[each] = now
                return
            group = able[0]
            if len(able) > 1:
                offers = [Waiting(self.dag.groups[s], len(self.queues[s]), self.running[s]) for s in able]
                group = able[self.policy.order(offers)]
            unit, wanted = self._next(group, now)
            slot = None if unit is None else self.free.take(now, wanted, self.durations[unit])
            if unit is None or slot is None:
                blocked.add(group)
                continue
            self.queues[group].remove(unit, self.host_of[unit])
            if not self.queues[group]:
                self.ready.remove(group)
            self.running[group] += 1
            if self.policy.restarts and self.placement[unit] == AT_HOME:
                self.since[group] = now
            self.slot[unit] = slot
            self.launch[unit] = now
            self.finish[unit] = now + self.durations[unit]
            drained = self.pipes.enter(group, unit, now)
            if drained is not None:
                self._end_unit(unit, max(self.finish[unit], drained))
            for other in self.pipes.released(group):
                self._end_unit(other, max(self.finish[other], now))

    def _is_below_limit(self, group: int) -> bool:
        limit = self.limits[group]
        return limit is None or self.running[group] < limit

    def _next(self, group: int, now: float) -> tuple[int | None, int]:
        """The unit of a group to launch now and the worker that it wants; no unit if all wait for a host."""
        queue = self.queues[group]
        first = queue.anywhere[-1] if queue.anywhere else None
        if queue.at_home:
            unit = queue.home(self.free.free_on)
            if unit is not None and (first is None or unit < first):
                worker = self.free.at_home(self.host_of[unit], self.worker_of[unit], now)
                if worker is not None:
                    return unit, worker
        if first is not None:
            return first, self.worker_of[first]
        patient_until = self.since[group] + self.policy.patience_ms
        if now >= patient_until:
            unit = queue.impatient()
            return unit, -1 if unit is None else self.worker_of[unit]
        if self.wakes[group] != patient_until:
            self.wakes[group] = patient_until
            self._at(patient_until + self.policy.offers_ms / 2.0, _WAKE, group)
        return None, -1
