"""The fixed point of a scenario's schedule and of the contention for devices.

Tasks share devices: a host's disk and network, a worker's CPU.  Contention follows from the schedule, and the schedule
from the durations of tasks, which contention changes.  So replays alternate with contention until both agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.dag import ANYWHERE, AT_HOME, ELSEWHERE, Tasks
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.scheduling import Policy
from crystalperf.query.simulate.contention import (
    Cpus,
    Devices,
    TransferContention,
    explained,
    in_turns,
    recorded_transfers,
)
from crystalperf.query.simulate.device_sharing import Concurrency
from crystalperf.query.simulate.effects import State
from crystalperf.query.simulate.list_schedule import followed
from crystalperf.query.simulate.replay import Replayed, prepared, replay
from crystalperf.query.simulate.transfers import MODEL, Physics
from crystalperf.query.simulate.warmup import WarmupCost, placed_before, warmup_cost
from crystalperf.query.simulate.waves import scaled_limits
from crystalperf.query.trace.arrays import blocks, safe_divide
from crystalperf.query.trace.records import Floats

ITERATIONS = 12
"""Maximum replays until contention and schedule agree."""

TOLERANCE = 0.002
"""Relative change of both the makespan and the total task time, below which the iteration has converged."""

SLOW, LONGEST_STEP = 0.5, 6.0
"""Ratio of an iteration's change to the last one from which the next step is extrapolated, and the maximum factor on
that step."""


@frozen
class Baseline:
    """The baseline: the recorded tasks replayed on the recorded slots."""

    replayed: Replayed
    limits: list[int | None]
    """Maximum concurrent tasks per stage; None without a limit."""
    policy: Policy
    """How the framework assigned slots."""
    concurrency: Concurrency
    """Which tasks ran at the same time."""
    first: WarmupCost | None
    """The warm-up cost of the first tasks on a worker; None without warm-up (cold())."""


@frozen
class FixedPoint:
    """A replay, and the parts of its tasks' time by resource, (tasks, resources + 1); rows sum to durations.

    `cold_share` is the share of that time that changed because other tasks are the first on their worker.
    """

    replayed: Replayed
    parts_ms: Floats
    cold_share: float


def solve_fixed_point(
    state: State, recorded: Execution, base: Baseline, scenario: Scenario, policy: Policy, physics: Physics = MODEL
) -> FixedPoint:
    """The replay of a scenario's state by a policy; `recorded` is the recorded run, `base` its replay."""
    execution, slots = state.execution, state.slots
    tasks, least_ms = execution.tasks, execution.volumes.total_cpu_ms / scenario.ratio("cpu_speed")
    before = base.replayed
    if execution is not recorded:  # the contention and the warm-up of the new tasks on the recorded slots
        before = replay(execution.dag, tasks, tasks.duration_ms, recorded.slots, policy, base.limits)
    contention = _Contention(state, recorded, base, scenario, before, physics)
    first = _first_tasks(state, recorded, base, scenario, physics, contention.in_turns)
    were_first = None if first is None else placed_before(first, recorded, base.replayed, tasks, before)
    placed = tasks
    if scenario.ratio("workers") != 1 and not execution.in_order:
        placed = _without_places(tasks, len(execution.dag.stages))
    replay_with = prepared(state.dag, placed, slots, policy, scaled_limits(recorded, base.limits, scenario))
    now, work_ms, aitken, replayed_ms = before, 0.0, _Aitken(), np.zeros(0)
    for iteration in range(ITERATIONS):
        current = contention.apply()
        takes = length = np.maximum(current.sum(axis=1), least_ms)
        if first is not None and were_first is not None:
            are = first.firsts(tasks.stage, now, recorded.slots if now is before else slots, recorded.is_first_scope)
            takes = were_first.moved(first, are, tasks.stage, length)
        last, took_ms = now, work_ms
        if not np.array_equal(takes, replayed_ms):  # the same durations have the same replay
            now, replayed_ms = replay_with(takes), takes
        work_ms = float(takes.sum())
        agrees = abs(now.makespan_ms - last.makespan_ms) <= TOLERANCE * last.makespan_ms
        if last is not before and agrees and abs(work_ms - took_ms) <= TOLERANCE * took_ms:
            break
        contention.update(
            Concurrency(slots, now), current, length, aitken.step(work_ms - took_ms) if iteration else 1.0
        )
    lasting = _lasting(current * safe_divide(takes, current.sum(axis=1), 1.0)[:, None], now.finish_ms - now.launch_ms)
    return FixedPoint(now, lasting, float(np.abs(takes - length).sum()) / (float(takes.sum()) or 1.0))


class _Contention:
    """Applies contention for shared devices to the parts of tasks, (tasks, resources + 1) in ms."""

    def __init__(
        self, state: State, recorded: Execution, base: Baseline, scenario: Scenario, before: Replayed, physics: Physics
    ) -> None:
        """`before` is the replay of the state's tasks on the recorded slots."""
        execution = state.execution
        cpu = execution.names.index(CPU)
        concurrency_before = base.concurrency if before is base.replayed else Concurrency(recorded.slots, before)
        parts_before = state.parts_ms if state.before_ms is None else state.before_ms
        known = recorded_transfers(recorded, base.concurrency, execution, parts_before, scenario, physics)
        is_same, parts_before = state.parts_ms is parts_before, explained(parts_before, known)
        parts = parts_before if is_same else explained(state.parts_ms, known)
        by_bytes = [each.transfer.column for each in known]
        more_cpu = scenario.ratio("cores") if execution.planner.slots_bring_cpu else 1.0
        self.in_turns = more_cpu != 1 and physics.equal_cpu_waits and bool(np.isfinite(recorded.slots.cpu_limit()))
        """Whether tasks took turns on a full CPU, and the scenario's slots bring more CPU."""
        if self.in_turns:
            least_ms = execution.volumes.total_cpu_ms / scenario.ratio("cpu_speed")
            parts = parts.copy(order="F")
            parts[:, cpu] = in_turns(execution.tasks.stage, np.minimum(least_ms, parts[:, cpu]), parts[:, cpu])
        shared = {
            column: each.shared_by
            for column, each in enumerate(execution.resources)
            if column != cpu and column not in by_bytes and each.shared_by != "nobody"
        }
        self._parts, self._before = parts, parts_before
        self._rest = [column for column in range(parts.shape[1]) if column not in by_bytes]
        self._has_transfer_contention = physics.transfer_contention
        self._devices = Devices(recorded, base.concurrency, execution, shared)
        is_recut = execution.tasks is not recorded.tasks
        self._transfers = TransferContention(known, None if is_recut else concurrency_before, parts_before.sum(axis=1))
        self._cpus = Cpus(recorded, execution, scenario, parts, parts_before, base.concurrency, concurrency_before)

    def apply(self) -> Floats:
        """The parts of tasks under the current contention."""
        current = self._parts.copy(order="F")
        self._devices.apply(current)
        self._cpus.apply(current)
        more_ms = sum((current[:, each] - self._before[:, each] for each in self._rest), np.zeros(len(current)))
        self._transfers.apply(current, more_ms)
        return current

    def update(self, concurrency: Concurrency, current: Floats, length_ms: Floats, step: float) -> None:
        """Compute contention from a schedule, and from the parts and lengths that led to it."""
        self._devices.update(concurrency, current)
        if self._has_transfer_contention:
            self._transfers.update(concurrency, length_ms, step)
        self._cpus.update(concurrency, current)


def _first_tasks(
    state: State, recorded: Execution, base: Baseline, scenario: Scenario, physics: Physics, in_turns: bool
) -> WarmupCost | None:
    """The warm-up cost of the first tasks on a worker; None if the same tasks are the first."""
    same = state.execution.tasks is recorded.tasks and state.slots is recorded.slots
    first = None if same or not physics.warmup else base.first
    if first is not None and in_turns:
        first = warmup_cost(recorded, base.replayed, recorded.volumes.total_cpu_ms)
    # Loading and compiling code uses the CPU.
    return first and replace(first, more_ms=first.more_ms / scenario.ratio("cpu_speed"))


@dataclass
class _Aitken:
    """Aitken's extrapolation: if each change is a share p of the last one, the remaining change is 1 / (1 - p) times
    the next."""

    last_ms: float = 0.0
    """The last change of total task time; 0 after an extrapolated step."""

    def step(self, moved_ms: float) -> float:
        """The factor on the next step, after a step that changed total task time by `moved_ms`."""
        share = moved_ms / self.last_ms if self.last_ms else 0.0
        if not SLOW < share < 1.0:
            self.last_ms = moved_ms
            return 1.0
        self.last_ms = 0.0
        return min(1.0 / (1.0 - share), LONGEST_STEP)


def _without_places(tasks: Tasks, stages: int) -> Tasks:
    """Tasks without recorded workers, which take any free slot, except those whose data are where other tasks ran."""
    follows = followed(tasks) >= 0
    keeps = np.bincount(tasks.stage, follows, stages) > 0
    stays = (follows & (tasks.placement == AT_HOME)) | (keeps[tasks.stage] & (tasks.placement == ELSEWHERE))
    placement = np.where(stays, tasks.placement, ANYWHERE)
    return replace(tasks, worker=np.full(len(tasks), -1), placement=placement)


def _lasting(parts_ms: Floats, length_ms: Floats) -> Floats:
    """Parts that sum to the lengths: tasks of a pipeline also wait for each other, or no longer wait."""
    found = np.empty_like(parts_ms)
    for rows in blocks(len(found)):
        whole_ms = parts_ms[rows].sum(axis=1)
        longer = np.minimum(safe_divide(length_ms[rows], whole_ms, 1.0), 1.0)
        np.multiply(parts_ms[rows], longer[:, None], out=found[rows])
        found[rows, -1] += np.maximum(length_ms[rows] - whole_ms, 0.0)
    return found
