"""Resource contention between tasks: each task's share of a disk, a link or a CPU among the concurrent tasks.

Each class models one kind of device, with its state between two iterations of query.simulate.fixed_point: `apply`
changes the tasks' times, and `update` takes the state from the schedule that follows from these times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crystalperf.indexes.resources import CPU
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.execution.slots import Slots
from crystalperf.query.simulate.device_sharing import Concurrency
from crystalperf.query.simulate.effects.device_speed import throttled_wait_ms
from crystalperf.query.simulate.transfers import Physics, RecordedTransfer, Transfer, as_recorded, share_of, transfers
from crystalperf.query.trace.arrays import blocks, safe_divide
from crystalperf.query.trace.records import Floats, Ints


class Devices:
    """Contention for devices without known bytes: all time on a device grows with its concurrency."""

    def __init__(
        self, recorded: Execution, concurrency: Concurrency, execution: Execution, shared: Mapping[int, str]
    ) -> None:
        """`shared` is the owner of each device, worker or host, by column; `concurrency` is the recorded one."""
        self._shared = shared
        self._before = {
            column: _concurrency_before(recorded, concurrency, execution, column, whose)
            for column, whose in shared.items()
        }
        self._factor = {column: np.ones(len(execution.tasks)) for column in shared}

    def apply(self, current: Floats) -> None:
        """Apply to the parts of tasks, (tasks, resources + 1) in ms."""
        for column, factor in self._factor.items():
            current[:, column] *= factor

    def update(self, concurrency: Concurrency, current: Floats) -> None:
        """Update from a schedule and the parts that led to it, by half a step, because both change."""
        for column, whose in self._shared.items():
            after = _concurrency(concurrency, whose, current, column)
            self._factor[column] = (self._factor[column] + after / self._before[column]) / 2


class TransferContention:
    """Contention for devices with known bytes: waits grow with the time of the bytes among concurrent transfers."""

    def __init__(self, known: Sequence[RecordedTransfer], concurrency: Concurrency | None, length_ms: Floats) -> None:
        """`concurrency` is that of these tasks on the recorded slots; None for repartitioned tasks, for which only that
        of the recorded tasks is known."""
        self._known = known
        self._among = [each.concurrency for each in known]
        self._before = list(self._among)
        if concurrency is not None:
            self._before = [_together(each, each.took_ms, length_ms, concurrency) for each in known]
        self._took = [each.took_ms for each in known]

    def apply(self, current: Floats, more_ms: Floats) -> None:
        """Apply to the parts of tasks; `more_ms` is the change of their other time, (tasks,) in ms."""
        for position, (each, others) in enumerate(zip(self._known, self._among, strict=True)):
            self._took[position], seen_ms = each.in_scenario(others, more_ms)
            device_ms = current[:, each.transfer.column]
            for rows in blocks(len(current)):
                device_ms[rows] = np.maximum(device_ms[rows] + (seen_ms[rows] - each.seen_ms[rows]), 0.0)

    def update(self, concurrency: Concurrency, length_ms: Floats, ahead: float) -> None:
        """Update from a schedule and the lengths of its tasks, by half a step, times `ahead`."""
        for position, each in enumerate(self._known):
            together = _together(each, self._took[position], length_ms, concurrency)
            among = np.empty(len(together))
            for rows in blocks(len(among)):
                after, was = together[rows] / self._before[position][rows], self._among[position][rows]
                step = (np.maximum(each.concurrency[rows] * after, 1.0) - was) / 2
                among[rows] = np.maximum(was + ahead * step, 1.0)
            self._among[position] = among


class Cpus:
    """Contention for the CPUs of workers: tasks get less of a full CPU, and wait less if there is more CPU."""

    def __init__(
        self,
        recorded: Execution,
        execution: Execution,
        scenario: Scenario,
        parts: Floats,
        parts_before: Floats,
        concurrency_recorded: Concurrency,
        concurrency_before: Concurrency,
    ) -> None:
        """`parts` and `parts_before` are those of the scenario's tasks, in the scenario and on the recorded devices;
        `concurrency_recorded` is that of the recorded tasks, `concurrency_before` that of the scenario's tasks, both
        on the recorded slots."""
        self._execution, self._scenario, self._parts = execution, scenario, parts
        self._column = execution.names.index(CPU)
        self._allowed = np.maximum(_pressure(execution, concurrency_before, Scenario(recorded=scenario.recorded)), 1.0)
        self._slowdown = np.ones(len(execution.tasks))
        least_ms = execution.volumes.total_cpu_ms / scenario.ratio("cpu_speed")
        self._on_cpu = np.minimum(least_ms, parts[:, self._column])
        self._waits, self._left = parts[:, self._column] - self._on_cpu, np.ones(len(execution.tasks))
        brings = execution.planner.slots_bring_cpu
        self._has_more = brings and scenario.ratio("cores") > 1
        # If slots add no CPU, repartitioned tasks share the recorded CPU, so each waits for more or fewer others.
        self._shares_cpu = execution.tasks is not recorded.tasks and not brings
        self._load_before = np.zeros(0)
        if self._shares_cpu:
            recorded_parts = recorded.tasks.parts_ms.copy()
            if scenario.ratio("cpu_speed") != 1:  # as effects.device_speed has moved it in the scenario's tasks
                recorded_parts[:, self._column] += throttled_wait_ms(recorded, recorded_parts)
            load = _cpu_load_per_core(concurrency_recorded, recorded_parts, self._column)
            limited = np.where(load > 0, recorded_parts[:, self._column], 0.0)
            self._load_before = _mean_of_stage(recorded, load, limited, execution)
        elif self._has_more:
            self._load_before = _cpu_load_per_core(concurrency_before, parts_before, self._column)

    def apply(self, current: Floats) -> None:
        """Apply to the parts of tasks, (tasks, resources + 1) in ms."""
        for rows in blocks(len(current)):
            slower = current[rows].sum(axis=1) * (self._slowdown[rows] - 1.0)
            current[rows, self._column] += slower - self._waits[rows] * (1.0 - self._left[rows])

    def update(self, concurrency: Concurrency, current: Floats) -> None:
        """Update from a schedule and the parts that led to it."""
        # A CPU that was not the limit, because of a slower device, becomes the limit once it is full.
        excess = _pressure(self._execution, concurrency, self._scenario) / self._allowed
        self._slowdown = np.maximum(self._slowdown * np.sqrt(excess), 1.0)
        if self._has_more or self._shares_cpu:
            load_now = _cpu_load_per_core(concurrency, current, self._column)
            load = safe_divide(load_now, self._load_before, 1.0)
            # Waits of repartitioned tasks grow or shrink, but do not change if no CPU limit is known.
            load = np.where(load_now > 0, load, 1.0) if self._shares_cpu else np.minimum(load, 1.0)
            eased = np.maximum(self._parts[:, self._column] * load, self._on_cpu) - self._on_cpu
            self._left = (self._left + safe_divide(eased, self._waits, 1.0)) / 2


def recorded_transfers(
    recorded: Execution, base: Concurrency, execution: Execution, parts_ms: Floats, scenario: Scenario, physics: Physics
) -> list[RecordedTransfer]:
    """The transfers of the scenario's tasks as they would have been in the recorded run.

    Repartitioned tasks consist of the work of their stage's recorded tasks, so they get the stage's concurrency.
    """

    found = transfers(recorded, scenario, physics)
    known = _in_recorded_run(recorded, base, found, physics)
    among = [
        concurrency if execution.tasks is recorded.tasks else _of_stage(recorded, concurrency, took_ms, execution)
        for concurrency, took_ms in known
    ]
    moved = transfers(execution, scenario, physics)
    if execution.tasks is not recorded.tasks:
        moved = tuple(
            _as_crossed(recorded, one, own, each, execution) for one, own, each in zip(found, known, moved, strict=True)
        )
    return as_recorded(moved, parts_ms, _unknown(execution, physics), among)


def _in_recorded_run(
    recorded: Execution, base: Concurrency, found: Sequence[Transfer], physics: Physics
) -> list[tuple[Floats, Floats]]:
    """The concurrency and the time of each transfer in the recorded run, (tasks,) each.

    Without `physics.end` they do not depend on the scenario, so all scenarios share them.
    """

    def concurrency_of(each: Transfer, share: Floats) -> Floats:
        return base.mean_concurrency(each.shared_by, share)

    rates = tuple(recorded.recorded.get(each.setting) for each in recorded.resources)
    key = (id(recorded.tasks), id(recorded.volumes), physics, rates)
    if base.kept is not None and base.kept[0] == key:
        return base.kept[1]
    alone = np.ones(len(recorded.tasks))
    known = [
        (each.concurrency, each.took_ms)
        for each in as_recorded(
            found, recorded.tasks.parts_ms, _unknown(recorded, physics), [alone] * len(found), concurrency_of
        )
    ]
    if not physics.end:
        base.kept = key, known, recorded  # which keeps the ids of its columns in use
    return known


def _as_crossed(
    recorded: Execution, one: Transfer, known: tuple[Floats, Floats], transfer: Transfer, execution: Execution
) -> Transfer:
    """The transfer of repartitioned tasks: as many of their stage's bytes cross the device as the recorded tasks had
    time for; the rest came from elsewhere, and still does."""
    (concurrency, took_ms), least = known, one.least_ms
    crossed = safe_divide(np.minimum(took_ms / concurrency, least), least, 1.0)
    return replace(transfer, least_ms=transfer.least_ms * _mean_of_stage(recorded, crossed, least, execution))


def _unknown(execution: Execution, physics: Physics) -> Floats:
    """Unknown time of tasks that may be transfers, (tasks,) in ms; 0 with samples, which would show a device."""
    is_sampled = execution.has_samples or not physics.unknown_time
    return np.zeros(len(execution.tasks)) if is_sampled else execution.tasks.parts_ms[:, -1]


def explained(parts_ms: Floats, known: Sequence[RecordedTransfer]) -> Floats:
    """The parts of tasks with unknown time attributed to devices, as far as bytes explain it.

    In column-major order, because the effects run over columns.
    """
    parts = parts_ms.copy(order="F")
    for each in known:
        column, unknown = parts[:, each.transfer.column], parts[:, -1]
        for rows in blocks(len(parts)):
            missing = np.clip(each.seen_ms[rows] - column[rows], 0.0, unknown[rows])
            column[rows] += missing
            unknown[rows] -= missing
    return parts


def _together(each: RecordedTransfer, took_ms: Floats, length_ms: Floats, concurrency: Concurrency) -> Floats:
    """The mean concurrency on a transfer's device while each task runs, itself counted as one, (tasks,)."""
    return concurrency.mean_concurrency(each.transfer.shared_by, share_of(took_ms, length_ms))


def _pressure(execution: Execution, concurrency: Concurrency, scenario: Scenario) -> Floats:
    """The demand for a worker's CPU while a task runs, over the CPU limit in a scenario; 0 if no limit is known.

    The demand is only that of tasks, because tasks do not wait for compilers and servers to finish: with less CPU, less
    of that work is done in the meantime.
    """
    replayed, cores = concurrency.replayed, _cores(concurrency.slots) * scenario.ratio("cpu_speed")
    if not np.isfinite(cores).any():
        return np.zeros(len(replayed.slot))
    wants = safe_divide(execution.volumes.total_cpu_ms, replayed.finish_ms - replayed.launch_ms)
    full: Floats = concurrency.level("worker", wants) / cores[concurrency.slots.worker[replayed.slot]]
    return full


def _cpu_load_per_core(concurrency: Concurrency, parts: Floats, cpu: int) -> Floats:
    """CPU load per core: the tasks of its worker that need a CPU while a task runs, itself counted as one, over the
    worker's CPU limit in cores; 0 if no limit is known.

    The higher the load, the longer each task waits for its turn.  A worker with more slots gets more CPU, and a task
    that runs alone there, as the last of its stage, waits less.  The speed of a core does not matter: the CPU time of
    tasks is already at that speed.
    """
    cores = _cores(concurrency.slots)[concurrency.slots.worker[concurrency.replayed.slot]]
    if not np.isfinite(cores).any():
        return np.zeros(len(cores))
    load: Floats = _concurrency(concurrency, "worker", parts, cpu) / cores
    return load


def in_turns(stage: Ints, total_cpu_ms: Floats, cpu_ms: Floats) -> Floats:
    """Time on the CPU, waits included, if each task waits as long per second of its work as its stage; (tasks,) in ms.

    A worker short of CPU gives its tasks turns of equal length.  Differences between the recorded waits of tasks, next
    to compilers and garbage collectors, are random with respect to other slots.
    """
    count = int(stage.max(initial=-1)) + 1
    has_work = total_cpu_ms > 0
    work: Floats = np.bincount(stage, total_cpu_ms, count).astype(np.float64)
    whole: Floats = np.bincount(stage, np.where(has_work, cpu_ms, 0.0), count).astype(np.float64)
    shared: Floats = np.where(has_work, total_cpu_ms * safe_divide(whole, work, 1.0)[stage], cpu_ms)
    return shared


def _cores(slots: Slots) -> Floats:
    """The CPU limit of each worker, cores; infinite if not known."""
    return np.asarray(np.bincount(slots.worker, weights=slots.cpu_cores), np.float64)


def _concurrency(concurrency: Concurrency, whose: str, parts: Floats, column: int) -> Floats:
    """The mean concurrency on a device while each task runs, itself counted as one, (tasks,)."""
    return concurrency.mean_concurrency(whose, safe_divide(parts[:, column], parts.sum(axis=1)))


def _concurrency_before(
    recorded: Execution, base: Concurrency, execution: Execution, column: int, whose: str
) -> Floats:
    """The mean concurrency on a device in the recorded run, for each of the scenario's tasks, itself counted as one.

    Repartitioned tasks consist of the work of their stage's recorded tasks, so they get the stage's mean.
    """
    parts = recorded.tasks.parts_ms
    found = _concurrency(base, whose, parts, column)
    if execution is recorded:
        return found
    return _of_stage(recorded, found, parts[:, column], execution)


def _of_stage(recorded: Execution, found: Floats, weight: Floats, execution: Execution) -> Floats:
    """The mean concurrency of each stage's recorded tasks, for each of the scenario's tasks, never below 1."""
    of_stage: Floats = np.maximum(_mean_of_stage(recorded, found, weight, execution), 1.0)
    return of_stage


def _mean_of_stage(recorded: Execution, found: Floats, weight: Floats, execution: Execution) -> Floats:
    """The weighted mean over each stage's recorded tasks, for each of the scenario's tasks."""
    count, stage = len(recorded.dag.stages), recorded.tasks.stage
    weight = weight + 1e-9
    mean = np.bincount(stage, found * weight, count) / np.maximum(np.bincount(stage, weight, count), 1e-9)
    of_stage: Floats = mean[execution.tasks.stage]
    return of_stage
