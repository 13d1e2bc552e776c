"""Replay of the execution DAG on slots (paper §5, Algorithm 1, and its footnote 8).

A replay takes task durations and the driver's intervals from the recorded run, and computes start times from
slots and edges.  A replay of the baseline should reproduce the run; every answer reports its error.

A stage in a pipeline starts after the stages it reads with the recorded delay.  Its tasks do their own work, and end
after those stages end, with the recorded delay.  Tasks that had to wait for the readers of their output end before the
readers do, by the recorded difference.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, Tasks
from crystalperf.query.execution.scheduling import FIRST_COME, LongestFirst, Policy, Waiting, by_rank
from crystalperf.query.execution.slots import Slots
from crystalperf.query.results.refusals import NoWorkerLeft, RefusedError, SlotsTooFew
from crystalperf.query.simulate.list_schedule import Schedule, ScheduleInput, can_list, followed, has_compiled
from crystalperf.query.trace.arrays import safe_divide
from crystalperf.query.trace.records import Floats, Ints


class NoWorkerLeftError(RefusedError):
    """Tasks are left, but every worker is lost."""

    def __init__(self) -> None:
        super().__init__(NoWorkerLeft())


@frozen
class Replayed:
    """The schedule of a replay: times of tasks and nodes, ms, and slots.  Task arrays are aligned with the tasks."""

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
    tasks: Tasks,
    durations_ms: Floats,
    slots: Slots,
    policy: Policy = FIRST_COME,
    limits: Sequence[int | None] | None = None,
) -> Replayed:
    """Replay the DAG on slots; `durations_ms` is aligned with `tasks`, `limits` caps the parallelism of each stage.

    Tasks of a stage launch in their recorded order (footnote 8).  Driver intervals keep their recorded length.
    """
    return prepared(dag, tasks, slots, policy, limits)(durations_ms)


def prepared(
    dag: Dag,
    tasks: Tasks,
    slots: Slots,
    policy: Policy = FIRST_COME,
    limits: Sequence[int | None] | None = None,
) -> Callable[[Floats], Replayed]:
    """A function from durations to their replay, for several replays that differ in durations only."""
    if limits is not None and limits and all(each == 1 for each in limits) and not _flows(dag):
        return lambda durations_ms: _in_order(dag, tasks, durations_ms, slots, policy)
    if not (has_compiled() and can_list(dag, policy)):
        return lambda durations_ms: _Simulation(dag, tasks, durations_ms, slots, policy, limits).run()
    schedule_input = ScheduleInput(dag, tasks, slots, policy, limits)
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


def _in_order(dag: Dag, tasks: Tasks, durations_ms: Floats, slots: Slots, policy: Policy) -> Replayed:
    """The replay of stages whose tasks run one after the other: each stage is replayed as one task, which is faster."""
    order = np.argsort(tasks.stage, kind="stable")
    stage, durations = tasks.stage[order], durations_ms[order]
    first = np.flatnonzero(np.concatenate([[True], stage[1:] != stage[:-1]]))
    which = np.cumsum(np.concatenate([[0], (stage[1:] != stage[:-1]).astype(np.int64)])) if len(stage) else stage
    whole: Floats = np.bincount(which, weights=durations, minlength=len(first)).astype(np.float64)
    by_launch = np.argsort(order[first], kind="stable")  # as recorded
    found = _Simulation(dag, tasks.select(order[first][by_launch]), whole[by_launch], slots, policy, None).run()
    back = np.empty(len(first), dtype=np.int64)
    back[by_launch] = np.arange(len(first))
    before = np.cumsum(durations) - durations
    launch, slot = np.empty(len(tasks)), np.empty(len(tasks), dtype=np.int64)
    launch[order] = found.launch_ms[back][which] + before - before[first][which]
    slot[order] = found.slot[back][which]
    return replace(found, launch_ms=launch, finish_ms=launch + durations_ms, slot=slot)


class _FreeSlots:
    """Free slots: a task takes one of its recorded worker, else of the least loaded one, which spreads tasks.

    The recorded worker shows where a task's data were, and which tasks shared a host's disk and network.  Schedulers
    choose idle workers at random (random placement).  New workers, which never ran a task, get the expected number of
    tasks here: each launch adds their share of the idle workers to `new_share`, and whenever that reaches 1, a new
    worker gets the task.  They get none while others can run it if workers come `on_demand`.
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
        # (running, worker) of workers that ran a task, and of new ones; outdated entries are skipped.  Then the number
        # of idle workers of each kind, with a free slot and no task, and the accumulated share of new ones.
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
        """Add `by` to the number of idle workers if a worker has a free slot and runs no task."""
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
        """The least loaded worker with a free slot, of new workers or of those that ran a task; None if there is none.
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
        """The worker for the next task; only after any_alive()."""
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

        A task with another recorded worker does not go to a worker that is lost before it would end, because it would
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
    """The tasks of a stage that wait for a slot, in recorded order; task numbers are that order.

    Each list holds its tasks last first, so that pop() launches in order.
    """

    def __init__(self, tasks: Sequence[int], placement: Sequence[int], host: Sequence[int]) -> None:
        self.anywhere: list[int] = []
        self.elsewhere: list[int] = []
        self.at_home: dict[int, list[int]] = {}
        for task in reversed(tasks):
            if placement[task] == AT_HOME:
                self.at_home.setdefault(host[task], []).append(task)
            else:
                (self.elsewhere if placement[task] == ELSEWHERE else self.anywhere).append(task)

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.elsewhere or self.at_home)

    def __len__(self) -> int:
        return len(self.anywhere) + len(self.elsewhere) + sum(map(len, self.at_home.values()))

    def home(self, free_on: Mapping[int, int]) -> int | None:
        """The first task whose host has a free slot."""
        few, many = sorted((self.at_home.keys(), free_on.keys()), key=len)
        return min((self.at_home[host][-1] for host in few if host in many), default=None)

    def impatient(self) -> int | None:
        """The first task that no longer waits for its host."""
        heads = [tasks[-1] for tasks in self.at_home.values()]
        return min(heads + self.elsewhere[-1:], default=None)

    def remove(self, task: int, host: int) -> None:
        """Remove a task that is first in its list."""
        for tasks in (self.anywhere, self.elsewhere):
            if tasks and tasks[-1] == task:
                tasks.pop()
                return
        self.at_home[host].pop()
        if not self.at_home[host]:
            del self.at_home[host]


class _Pipes:
    """Pipelines between stages that run concurrently.

    `own_ms` are the durations without waits of tasks for others of their pipeline.
    """

    def __init__(self, dag: Dag, tasks: Tasks, durations_ms: Floats) -> None:
        self.targets: dict[str, list[tuple[str, float]]] = {}  # by node: its readers, and their start delays
        self._sources_left: dict[str, int] = {}
        self._ended_ms: dict[str, float] = {}
        self._held: dict[str, list[int]] = {}  # by stage, its tasks that wait for the stages it reads
        self._parked: dict[str, list[int]] = {}  # by stage, tasks of others that wait for its launches
        self._target_of = dict.fromkeys(range(len(dag.stages)), "")
        self.own_ms = durations_ms
        pipes = [pair for pair, dependency in dag.edges.items() if dependency.kind == "pipelined"]
        if not pipes:
            return
        ends: dict[str, float] = {}
        gated = {target for (_, target), dependency in dag.edges.items() if dependency.kind != "pipelined"}
        for source, target in pipes:
            # If a stage has other dependencies, they decide when it starts; otherwise the pipeline does.
            lag_ms = 0.0 if target in gated else max(dag.nodes[target].start_ms - dag.nodes[source].start_ms, 0.0)
            self.targets.setdefault(source, []).append((target, lag_ms))
            self._sources_left[target] = self._sources_left.get(target, 0) + 1
            ends[target] = max(ends.get(target, dag.start_ms), dag.nodes[source].end_ms)
        for target in ends:
            stage = dag.nodes[target].stage
            assert stage is not None  # only stages are in pipelines
            self._target_of[stage] = target
        self.own_ms = np.maximum(durations_ms - tasks.pipeline_wait_ms, 0.0)
        recorded = tasks.duration_ms - tasks.pipeline_wait_ms
        faster = safe_divide(self.own_ms, recorded, 1.0)
        last = np.array([ends.get(self._target_of[stage], np.inf) for stage in tasks.stage.tolist()])
        self._drain_ms = np.maximum(tasks.finish_ms - last, 0.0) * faster
        self._waited = tasks.pipeline_wait_ms > 0
        self._taken_ms = dict.fromkeys(ends, 0.0)  # by stage, when it has read all of its input
        self._to_launch = {target: int((tasks.stage == dag.nodes[target].stage).sum()) for target in ends}
        self._node_of = {node.stage: node_id for node_id, node in dag.nodes.items() if node.stage is not None}

    def held_until(self, stage: int, task: int) -> float:
        """The earliest end of a task that has done its own work: when its readers have read all of its output.

        That is before the readers end by the recorded time; infinite while one of them has not been launched.
        """
        if not self.targets or not self._waited[task]:
            return 0.0
        readers = [target for target, _ in self.targets.get(self._node_of[stage], ())]
        if late := [target for target in readers if self._to_launch[target]]:
            self._parked.setdefault(late[0], []).append(task)
            return np.inf
        return max((self._taken_ms[target] for target in readers), default=0.0)

    def released(self, stage: int) -> list[int]:
        """Tasks of other stages that waited for the launch of this stage's tasks, if all of those are launched."""
        target = self._target_of[stage]
        return self._parked.pop(target, []) if target and not self._to_launch[target] else []

    @property
    def are_waiting(self) -> bool:
        """Whether tasks hold their slots for stages that have not ended."""
        return any(self._held.values()) or any(self._parked.values())

    def enter(self, stage: int, task: int, now: float) -> float | None:
        """Launch a task, and return its earliest end, or None while a stage that it reads still runs."""
        target = self._target_of[stage]
        if not target:
            return 0.0
        self._to_launch[target] -= 1
        taken = now + float(self.own_ms[task] - self._drain_ms[task])
        self._taken_ms[target] = max(self._taken_ms[target], taken)
        if self._sources_left[target]:
            self._held.setdefault(target, []).append(task)
            return None
        return self._ended_ms[target] + float(self._drain_ms[task])

    def drained(self, source: str, now: float) -> list[tuple[int, float]]:
        """End a stage, and return the tasks that waited for it only, with the further time of each."""
        found: list[tuple[int, float]] = []
        for target, _ in self.targets.get(source, ()):
            self._sources_left[target] -= 1
            self._ended_ms[target] = now
            if not self._sources_left[target]:
                found += [(task, float(self._drain_ms[task])) for task in self._held.pop(target, [])]
        return found


class _Ready:
    """Stages with waiting tasks, in the order in which the policy lets them launch.

    A scan of all of them at each launch would take the square of their number, and a trace may have a stage for each
    of thousands of threads.  If their order does not depend on running tasks, a heap has it.  Stages that are set aside
    wait for again().
    """

    def __init__(self, dag: Dag, policy: Policy) -> None:
        self._stages, self._order = dag.stages, policy.order
        self._entered: dict[int, int] = {}  # by stage that is ready, its place in the order of arrival
        self._aside: set[int] = set()
        self._heap: list[tuple[float, float, int, int]] = []
        self._count = 0

    def _key(self, stage: int) -> tuple[float, float] | None:
        """The order of a stage, None if it depends on running tasks."""
        each = self._stages[stage]
        if self._order is by_rank:
            return each.priority, 0.0
        if isinstance(self._order, LongestFirst):
            return -self._order.left_ms[each.stage_id], each.priority
        return None

    def add(self, stage: int) -> None:
        self._count += 1
        self._entered[stage] = self._count
        self._push(stage)

    def _push(self, stage: int) -> None:
        if (key := self._key(stage)) is not None:
            heapq.heappush(self._heap, (*key, self._entered[stage], stage))

    def remove(self, stage: int) -> None:
        """Forget a stage without waiting tasks."""
        del self._entered[stage]
        self._aside.discard(stage)

    def set_aside(self, stage: int) -> None:
        self._aside.add(stage)

    def again(self, stage: int) -> None:
        """Consider a stage that was set aside."""
        if stage in self._aside:
            self._aside.remove(stage)
            self._push(stage)

    def first(self, queues: Sequence[_Queue], running: Sequence[int]) -> int | None:
        """The stage that goes first, None if there is none."""
        while self._heap:
            _, _, entered, stage = self._heap[0]
            if self._entered.get(stage) == entered and stage not in self._aside:
                return stage
            heapq.heappop(self._heap)
        able = [each for each in self._entered if each not in self._aside]
        if not able or self._key(able[0]) is not None:
            return None
        offers = [Waiting(self._stages[each], len(queues[each]), running[each]) for each in able]
        return able[self._order(offers)]


_SLOT, _TASK, _NODE, _WAKE, _FLOW = range(5)


class _Simulation:
    """An event-driven simulation: a clock, a heap of events, and queues.

    It supports any order of stages, and pipelines; DAGs that need neither run in query.simulate.list_schedule, which is
    faster.
    """

    def __init__(
        self,
        dag: Dag,
        tasks: Tasks,
        durations_ms: Floats,
        slots: Slots,
        policy: Policy,
        limits: Sequence[int | None] | None,
    ) -> None:
        self.dag, self.slots, self.policy = dag, slots, policy
        self.free = _FreeSlots(slots, policy.on_demand)
        self.pipes = _Pipes(dag, tasks, durations_ms)
        if not (np.isfinite(self.pipes.own_ms).all() and np.isfinite(slots.available_ms).all()):
            raise ValueError("a duration or a slot has a time that is not finite")  # the loop would not end
        self.durations: list[float] = self.pipes.own_ms.tolist()
        self.stage_of: list[int] = tasks.stage.tolist()
        self.worker_of: list[int] = tasks.worker.tolist()
        self.limits = list(limits) if limits is not None else [None] * len(dag.stages)
        self.launch = [0.0] * len(tasks)
        self.finish = [0.0] * len(tasks)
        self.slot = [0] * len(tasks)
        self.host_of: list[int] = tasks.host.tolist()
        placement: list[int] = tasks.placement.tolist() if policy.patience_ms > 0 else [ANYWHERE] * len(tasks)
        self.placement = placement
        self.of_stage: list[list[int]] = [[] for _ in dag.stages]
        for task, stage in enumerate(self.stage_of):
            self.of_stage[stage].append(task)
        self.followed: list[int] = followed(tasks).tolist()
        self.queues = [_Queue(own, placement, self.host_of) for own in self.of_stage]
        self.left = [len(own) for own in self.of_stage]
        self.since = [0.0] * len(dag.stages)  # by stage, since when it waits for the hosts of its tasks
        self.wakes = [-1.0] * len(dag.stages)
        self.running = [0] * len(dag.stages)
        self.successors: dict[str, list[str]] = {node_id: [] for node_id in dag.nodes}
        self.missing: dict[str, int] = dict.fromkeys(dag.nodes, 0)
        for (source, target), dependency in dag.edges.items():
            if dependency.kind != "pipelined":
                self.successors[source].append(target)
            self.missing[target] += 1
        self.node_of_stage = {node.stage: node_id for node_id, node in dag.nodes.items() if node.stage is not None}
        self.node_start: dict[str, float] = {}
        self.node_end: dict[str, float] = {}
        self.ready = _Ready(dag, policy)
        self.no_slot_ms = 0.0  # when a stage that could launch a task found no free slot
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
                elif kind == _TASK:
                    self._finish_task(which, now)
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
        if node.stage is None:
            self._at(now + node.end_ms - node.start_ms, _NODE, self.number[node_id])
        elif self.left[node.stage] == 0:
            self._at(now, _NODE, self.number[node_id])
        else:
            self._find_homes(node.stage)
            self.ready.add(node.stage)
            self.since[node.stage] = now

    def _find_homes(self, stage: int) -> None:
        """Set the wanted worker of tasks whose data are where another task ran to that task's worker in this replay."""
        own, found = self.of_stage[stage], False
        for task in own:
            other = self.followed[task]
            if self.placement[task] == AT_HOME and other >= 0 and self.finish[other] > 0:
                self.worker_of[task] = self.free.worker[self.slot[other]]
                self.host_of[task] = self.free.host[self.worker_of[task]]
                found = True
        if found:
            self.queues[stage] = _Queue(own, self.placement, self.host_of)

    def _release(self, node_id: str, now: float) -> None:
        """Note that one dependency of a node is satisfied; start the node after the last one."""
        self.missing[node_id] -= 1
        if self.missing[node_id] == 0:
            self._start_node(node_id, now)

    def _finish_node(self, node_id: str, now: float) -> None:
        self.node_end[node_id] = now
        for task, drain_ms in self.pipes.drained(node_id, now):
            self._end_task(task, max(self.finish[task], now + drain_ms))
        for successor in self.successors[node_id]:
            self._release(successor, now)

    def _end_task(self, task: int, at: float) -> None:
        self.finish[task] = at
        self._at(at, _TASK, task)

    def _finish_task(self, task: int, now: float) -> None:
        stage = self.stage_of[task]
        held_until = self.pipes.held_until(stage, task)
        if held_until > now:
            if np.isfinite(held_until):
                self._end_task(task, held_until)
            return
        self.running[stage] -= 1
        self.left[stage] -= 1
        self.ready.again(stage)
        self.free.finished(self.slot[task])
        if self.left[stage] == 0:
            self._at(now, _NODE, self.number[self.node_of_stage[stage]])

    def _launch(self, now: float) -> None:
        blocked: list[int] = []
        while (stage := self._next_stage()) is not None:
            if not self.free.any_alive(now):
                if not self.policy.restarts:  # no slot is left idle
                    self.no_slot_ms = now
                break
            task, wanted = self._next(stage, now)
            slot = None if task is None else self.free.take(now, wanted, self.durations[task])
            if task is None or slot is None:
                blocked.append(stage)
                self.ready.set_aside(stage)
                continue
            self.queues[stage].remove(task, self.host_of[task])
            if not self.queues[stage]:
                self.ready.remove(stage)
            self.running[stage] += 1
            if self.policy.restarts and self.placement[task] == AT_HOME:
                self.since[stage] = now
            self.slot[task] = slot
            self.launch[task] = now
            self.finish[task] = now + self.durations[task]
            drained = self.pipes.enter(stage, task, now)
            if drained is not None:
                self._end_task(task, max(self.finish[task], drained))
            for other in self.pipes.released(stage):
                self._end_task(other, max(self.finish[other], now))

        for each in blocked:
            self.ready.again(each)

    def _next_stage(self) -> int | None:
        """The stage that launches the next task, None if there is none; those at their limit wait for a task to end."""
        while (stage := self.ready.first(self.queues, self.running)) is not None:
            limit = self.limits[stage]
            if limit is None or self.running[stage] < limit:
                return stage
            self.ready.set_aside(stage)
        return None

    def _next(self, stage: int, now: float) -> tuple[int | None, int]:
        """The task of a stage to launch now and the worker that it wants; no task if all wait for a host."""
        queue = self.queues[stage]
        first = queue.anywhere[-1] if queue.anywhere else None
        if queue.at_home:
            task = queue.home(self.free.free_on)
            if task is not None and (first is None or task < first):
                worker = self.free.at_home(self.host_of[task], self.worker_of[task], now)
                if worker is not None:
                    return task, worker
        if first is not None:
            return first, self.worker_of[first]
        patient_until = max(self.since[stage], self.no_slot_ms) + self.policy.patience_ms
        if now >= patient_until:
            task = queue.impatient()
            return task, -1 if task is None else self.worker_of[task]
        if self.wakes[stage] != patient_until:
            self.wakes[stage] = patient_until
            self._at(patient_until + self.policy.offers_ms / 2.0, _WAKE, stage)
        return None, -1
