"""Replaying the execution DAG on task slots (paper §5, Algorithm 1, and its footnote 8).

A replay reads task durations and the driver's intervals, nothing else of the recorded clock: starts come from
slots and edges.  Replayed unchanged it should give the run back; how far it is off is printed with every answer.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from indexes.errors import NoAnswerError
from query.model.dag import ANYWHERE, AT_HOME, ELSEWHERE, Dag, Floats, Ints, Stage, Tasks


class NoExecutorLeftError(NoAnswerError):
    """Tasks are left and every executor is gone."""


@dataclass(frozen=True)
class Slots:
    """Where tasks can run.  Arrays of one length, a row per slot.

    `available_ms` is when its executor registered, `until_ms` when it was lost; `cpu_cores` is the CPU that the slot
    brings to its executor, infinite where the run knows no limit.
    """

    executor: Ints
    host: Ints
    available_ms: Floats
    until_ms: Floats
    cpu_cores: Floats

    def __len__(self) -> int:
        return len(self.executor)

    def cpu_limit(self) -> float:
        """The CPU, cores, of a slot whose executor is known to be at its limit (the median); infinite where none is."""
        known = self.cpu_cores[np.isfinite(self.cpu_cores)]
        return float(np.median(known)) if len(known) else np.inf


@dataclass(frozen=True)
class Waiting:
    """A stage with tasks to launch, as a scheduler sees it."""

    stage: Stage
    waiting: int
    running: int


Order = Callable[[Sequence[Waiting]], int]
"""Which of the stages with waiting tasks launches next: a position in the sequence."""


@dataclass(frozen=True)
class Policy:
    """How a framework gives out slots: which stage goes first, and how long its tasks wait for the host of their data.

    A task that is AT_HOME on a busy host lets others go first, and goes elsewhere once slots have been left idle for
    its sake for `patience_ms`; one that ran ELSEWHERE had waited for that.  That is Spark's rule since 3.1; before,
    each launch at home began the time anew.
    """

    order: Order
    patience_ms: float = 0.0


def fifo(ready: Sequence[Waiting]) -> int:
    """Spark's default: the earliest job first, within it the earliest stage."""
    return min(range(len(ready)), key=lambda i: (_none_last(ready[i].stage.job_id), ready[i].stage.stage_id))


def fair(ready: Sequence[Waiting]) -> int:
    """Equal shares: the stage with the fewest running tasks first (pools of equal weight, no minimum share)."""
    return min(
        range(len(ready)),
        key=lambda i: (ready[i].running, _none_last(ready[i].stage.job_id), ready[i].stage.stage_id),
    )


FIFO = Policy(fifo)


@dataclass(frozen=True)
class Replayed:
    """When everything happened in a replay.  Task arrays are aligned with the tasks given."""

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
    policy: Policy = FIFO,
    limits: Sequence[int | None] | None = None,
) -> Replayed:
    """Run the DAG on slots; `durations_ms` is aligned with `tasks`, `limits` caps the parallelism of each stage.

    Tasks of a stage launch in their recorded order (footnote 8).  Driver intervals keep their recorded length.
    """
    return _Replay(dag, tasks, durations_ms, slots, policy, limits).run()


def _none_last(job_id: int | None) -> float:
    return float("inf") if job_id is None else job_id


class _FreeSlots:
    """Free slots: a task's recorded executor first, else the least loaded, as Spark spreads tasks that may go anywhere.

    Where a task ran says where its data lay, and which tasks shared a node's disk and network.
    """

    def __init__(self, slots: Slots) -> None:
        self.executor = slots.executor.tolist()
        self.until = slots.until_ms.tolist()
        self.last_until = max(self.until, default=0.0)
        count = int(slots.executor.max(initial=-1)) + 1
        self.free: list[list[int]] = [[] for _ in range(count)]
        self.running = [0] * count
        self.heap: list[tuple[int, int]] = []  # (running, executor); entries no longer true are skipped
        self.executors_of: dict[int, set[int]] = {}
        self.free_on: dict[int, int] = {}  # hosts that have any
        for executor, host in zip(self.executor, slots.host.tolist(), strict=True):
            self.executors_of.setdefault(host, set()).add(executor)
        self.host = {executor: host for host, executors in self.executors_of.items() for executor in executors}

    def release(self, slot: int) -> None:
        executor = self.executor[slot]
        self.free[executor].append(slot)
        self.free_on[self.host[executor]] = self.free_on.get(self.host[executor], 0) + 1
        heapq.heappush(self.heap, (self.running[executor], executor))

    def any_alive(self, now: float) -> bool:
        """Whether a slot is free; those of executors that are gone are dropped on the way."""
        while self.heap:
            running, executor = self.heap[0]
            free = self.free[executor]
            while free and now >= self.until[free[-1]]:
                self._taken(free.pop())
            if free and running == self.running[executor]:
                return True
            heapq.heappop(self.heap)
        return False

    def take(self, now: float, wanted: int, length: float) -> int | None:
        """A slot of the wanted executor, or of the least loaded one; only after any_alive().

        A task that the recorded run had elsewhere does not go to an executor that is lost before it would end: there
        it would have failed.  None where such executors are all there are now, and others are yet to come.
        """
        free = self.free[wanted] if 0 <= wanted < len(self.free) else []
        if not free or now >= self.until[free[-1]]:
            self.any_alive(now)
            wanted = self.heap[0][1]
            if self.until[self.free[wanted][-1]] < now + length <= self.last_until:
                staying = [
                    (self.running[executor], executor)
                    for executor, slots in enumerate(self.free)
                    if slots and self.until[slots[-1]] >= now + length
                ]
                if not staying:
                    return None
                _, wanted = min(staying)
            free = self.free[wanted]
        slot = free.pop()
        self._taken(slot)
        self.running[wanted] += 1
        if free:
            heapq.heappush(self.heap, (self.running[wanted], wanted))
        return slot

    def _taken(self, slot: int) -> None:
        host = self.host[self.executor[slot]]
        self.free_on[host] -= 1
        if not self.free_on[host]:
            del self.free_on[host]

    def at_home(self, host: int, wanted: int, now: float) -> int | None:
        """An executor of a host with a slot free, the wanted one if it can be; None where there is none."""
        for executor in (wanted, *sorted(self.executors_of.get(host, ()))):
            if 0 <= executor < len(self.free) and self.free[executor] and now < self.until[self.free[executor][-1]]:
                return executor
        return None

    def finished(self, slot: int) -> None:
        self.running[self.executor[slot]] -= 1
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
        """The first task whose host has a slot free."""
        few, many = sorted((self.at_home.keys(), free_on.keys()), key=len)
        return min((self.at_home[host][-1] for host in few if host in many), default=None)

    def impatient(self) -> int | None:
        """The first task that would go elsewhere by now."""
        heads = [tasks[-1] for tasks in self.at_home.values()]
        return min(heads + self.elsewhere[-1:], default=None)

    def remove(self, task: int, host: int) -> None:
        """Take out a task that is the first of its list."""
        for tasks in (self.anywhere, self.elsewhere):
            if tasks and tasks[-1] == task:
                tasks.pop()
                return
        self.at_home[host].pop()
        if not self.at_home[host]:
            del self.at_home[host]


_SLOT, _TASK, _NODE, _WAKE = range(4)


class _Replay:
    """A clock, a heap of ends, and queues: nothing else moves time."""

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
        self.free = _FreeSlots(slots)
        self.durations: list[float] = durations_ms.tolist()
        self.stage_of: list[int] = tasks.stage.tolist()
        self.executor_of: list[int] = tasks.executor.tolist()
        self.limits = list(limits) if limits is not None else [None] * len(dag.stages)
        self.launch = [0.0] * len(tasks)
        self.finish = [0.0] * len(tasks)
        self.slot = [0] * len(tasks)
        self.host_of: list[int] = tasks.host.tolist()
        placement: list[int] = tasks.placement.tolist() if policy.patience_ms > 0 else [ANYWHERE] * len(tasks)
        of_stage: list[list[int]] = [[] for _ in dag.stages]
        for task, stage in enumerate(self.stage_of):
            of_stage[stage].append(task)
        self.queues = [_Queue(mine, placement, self.host_of) for mine in of_stage]
        self.left = [len(mine) for mine in of_stage]
        self.since = [0.0] * len(dag.stages)  # when slots were last all in use, or a stage began
        self.wakes = [-1.0] * len(dag.stages)
        self.running = [0] * len(dag.stages)
        self.successors: dict[str, list[str]] = {node_id: [] for node_id in dag.nodes}
        self.missing: dict[str, int] = dict.fromkeys(dag.nodes, 0)
        for source, target in dag.edges:
            self.successors[source].append(target)
            self.missing[target] += 1
        self.node_of_stage = {node.stage: node_id for node_id, node in dag.nodes.items() if node.stage is not None}
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
                elif kind == _TASK:
                    self._finish_task(which, now)
                elif kind == _NODE:
                    self._finish_node(self.names[which], now)
            self._launch(now)
        if len(self.node_end) < len(self.dag.nodes):
            raise NoExecutorLeftError("the replay cannot finish: tasks are left for which no executor was alive")
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
        if node.stage is None:
            self._at(now + node.end_ms - node.start_ms, _NODE, self.number[node_id])
        elif self.left[node.stage] == 0:
            self._at(now, _NODE, self.number[node_id])
        else:
            self.ready.append(node.stage)
            self.since[node.stage] = now

    def _finish_node(self, node_id: str, now: float) -> None:
        self.node_end[node_id] = now
        for successor in self.successors[node_id]:
            self.missing[successor] -= 1
            if self.missing[successor] == 0:
                self._start_node(successor, now)

    def _finish_task(self, task: int, now: float) -> None:
        stage = self.stage_of[task]
        self.running[stage] -= 1
        self.left[stage] -= 1
        self.free.finished(self.slot[task])
        if self.left[stage] == 0:
            self._at(now, _NODE, self.number[self.node_of_stage[stage]])

    def _launch(self, now: float) -> None:
        blocked: set[int] = set()
        while able := [s for s in self.ready if s not in blocked and self._is_below_limit(s)]:
            if not self.free.any_alive(now):
                for each in self.ready:  # no slot is left idle
                    self.since[each] = now
                return
            stage = able[0]
            if len(able) > 1:
                offers = [Waiting(self.dag.stages[s], len(self.queues[s]), self.running[s]) for s in able]
                stage = able[self.policy.order(offers)]
            task, wanted = self._next(stage, now)
            slot = None if task is None else self.free.take(now, wanted, self.durations[task])
            if task is None or slot is None:
                blocked.add(stage)
                continue
            self.queues[stage].remove(task, self.host_of[task])
            if not self.queues[stage]:
                self.ready.remove(stage)
            self.running[stage] += 1
            self.slot[task] = slot
            self.launch[task] = now
            self.finish[task] = now + self.durations[task]
            self._at(self.finish[task], _TASK, task)

    def _is_below_limit(self, stage: int) -> bool:
        limit = self.limits[stage]
        return limit is None or self.running[stage] < limit

    def _next(self, stage: int, now: float) -> tuple[int | None, int]:
        """The task of a stage to launch now and the executor that it wants; no task where all wait for a host."""
        queue = self.queues[stage]
        first = queue.anywhere[-1] if queue.anywhere else None
        if queue.at_home:
            task = queue.home(self.free.free_on)
            if task is not None and (first is None or task < first):
                executor = self.free.at_home(self.host_of[task], self.executor_of[task], now)
                if executor is not None:
                    return task, executor
        if first is not None:
            return first, self.executor_of[first]
        patient_until = self.since[stage] + self.policy.patience_ms
        if now >= patient_until:
            task = queue.impatient()
            return task, -1 if task is None else self.executor_of[task]
        if self.wakes[stage] != patient_until:
            self.wakes[stage] = patient_until
            self._at(patient_until, _WAKE, stage)
        return None, -1
