"""JVM warm-up: the first tasks on a worker take longer, because it loads and compiles code at its first use.

A task is a first task of its stage on a worker if it was launched before any task of that stage had ended there, and a
starting task of the worker if no task at all had ended there.  Other slots make other tasks first.  If a stage has both
first and later tasks, their times give the cost; otherwise it is that of recorded runs (docs/model.md, "Cold code").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.dag import Tasks
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.slots import Slots
from crystalperf.query.simulate.replay import Replayed
from crystalperf.query.trace.arrays import before_any, blocks, median, members, safe_divide
from crystalperf.query.trace.records import Floats, Ints

LATER, FIRST, STARTING = 0, 1, 2
"""Levels of tasks: later ones, the first of their stage on their worker, and the first of all tasks there."""

NEW_MS, NEW_MOST = 250.0, 6.0
"""Extra time of first tasks if their code had not run before, and its maximum as a multiple of a later task's time."""

REPEATED_MS, REPEATED_MOST = 50.0, 2.0
"""The same if a stage of the same words had run before."""

STARTING_MS, STARTING_MOST = 2000.0, 10.0
"""Extra time of a worker's starting tasks, besides deserialization.  If that is known and they read no files, the extra
time is that of other new code."""

UNPACKS_MOST = 0.9
"""Maximum share of deserialization in a task's time."""

SHARED = 0.05
"""Relative increase of deserialization time for each other worker that starts at the same time, because all of them
fetch the code from one driver."""

MEASURED_TASKS = 4
"""Minimum first tasks, and minimum later tasks, of a stage to measure its warm-up cost."""

MEASURED_MOST = 1.0
"""Maximum measured extra time, as a multiple of a later task's time.  First tasks that take longer, and longer than in
recorded runs, had other data, or their workers were still starting."""

ALIKE = 1.5
"""Maximum ratio of the bytes that two tasks read, so that their times show their warm-up."""

NOTICED = 0.01
"""Minimum share of task time that moved warm-up changes, from which its uncertainty counts."""


@frozen
class FirstTasks:
    """The level of each task, and how many other workers start at about the same time as its own; (tasks,) each.
    `others` is 0 for tasks that are not starting tasks."""

    level: Ints
    others: Ints

    def of(self, rows: slice) -> FirstTasks:
        """The same for some of the tasks."""
        return FirstTasks(self.level[rows], self.others[rows])


@frozen
class WarmupCost:
    """Warm-up cost by level and stage, (3, stages): `more_ms` of extra time, at most `most` times a later task's time.

    By level, (3,), `unpacks_ms` is the extra time to deserialize a task with its code, however short the task is, if
    its worker starts alone; workers that start within `together_ms` of each other share the way from the driver.
    """

    more_ms: Floats
    most: Floats
    unpacks_ms: Floats
    together_ms: float

    def firsts(self, stage: Ints, replayed: Replayed, slots: Slots, starts: bool) -> FirstTasks:
        """The first tasks in a replay."""
        level = levels_of(stage, replayed, slots, starts)
        return FirstTasks(level, others(level, slots.worker[replayed.slot], replayed.launch_ms, self.together_ms))

    def unpacking_ms(self, firsts: FirstTasks) -> Floats:
        """The extra deserialization time of tasks, (tasks,) in ms."""
        found: Floats = self.unpacks_ms[firsts.level] * (1.0 + SHARED * firsts.others)
        return found

    def of(self, firsts: FirstTasks, stage: Ints, length_ms: Floats) -> Floats:
        """The warm-up part of tasks' durations `length_ms`, ms."""
        most = self.most[firsts.level, stage]
        unpacks_ms = np.minimum(self.unpacking_ms(firsts), length_ms * UNPACKS_MOST)
        compiles_ms = np.minimum(self.more_ms[firsts.level, stage], (length_ms - unpacks_ms) * most / (most + 1.0))
        found: Floats = unpacks_ms + compiles_ms
        return found

    def at(self, firsts: FirstTasks, stage: Ints, later_ms: Floats) -> Floats:
        """Durations of tasks with warm-up, from their durations `later_ms` without, ms."""
        compiles_ms = np.minimum(self.more_ms[firsts.level, stage], later_ms * self.most[firsts.level, stage])
        found: Floats = later_ms + compiles_ms + self.unpacking_ms(firsts)
        return found


@frozen
class RecordedWarmup:
    """Warm-up of a scenario's tasks on the recorded slots.

    `firsts` are the levels of the tasks there, and `is_cut` is whether they are repartitioned, (tasks,).  Repartitioned
    tasks share the warm-up cost of the recorded tasks of their stage equally: `each_ms`, (stages,).
    """

    firsts: FirstTasks
    is_cut: NDArray[np.bool_]
    each_ms: Floats

    def moved(self, costs: WarmupCost, firsts: FirstTasks, stage: Ints, length_ms: Floats) -> Floats:
        """Durations of tasks, ms, when `firsts` are the first tasks."""
        found = np.empty(len(length_ms))
        for rows in blocks(len(length_ms)):
            was, are, of_stage, lasting_ms = self.firsts.of(rows), firsts.of(rows), stage[rows], length_ms[rows]
            first, starting = costs.of(was, of_stage, lasting_ms), np.full_like(are.level, STARTING)
            most_ms = costs.of(FirstTasks(starting, np.zeros_like(starting)), of_stage, lasting_ms)
            is_cut, share = self.is_cut[rows], np.minimum(self.each_ms[of_stage], most_ms)
            moved = costs.at(are, of_stage, lasting_ms - np.where(is_cut, share, first))
            same = (are.level == was.level) & (are.others == was.others) & ~is_cut
            found[rows] = np.where(same, lasting_ms, moved)
        return found


def placed_before(
    costs: WarmupCost, recorded: Execution, base: Replayed, tasks: Tasks, replayed: Replayed
) -> RecordedWarmup:
    """The warm-up of a scenario's tasks on the recorded slots, by their replay there, `replayed`."""
    old, count = recorded.tasks, len(recorded.dag.stages)
    firsts = costs.firsts(tasks.stage, replayed, recorded.slots, recorded.is_first_scope)
    had, has = (np.bincount(each.stage, minlength=count) for each in (old, tasks))
    was = firsts if tasks is old else costs.firsts(old.stage, base, recorded.slots, recorded.is_first_scope)
    first_ms = np.bincount(old.stage, costs.of(was, old.stage, old.duration_ms), count).astype(np.float64)
    return RecordedWarmup(firsts, (had != has)[tasks.stage], safe_divide(first_ms, has.astype(np.float64)))


def levels(stage: Ints, worker: Ints, launch_ms: Floats, finish_ms: Floats, starts: bool) -> Ints:
    """The level of each task, (tasks,); `starts` is whether workers had run nothing before the scope."""
    place = stage * (int(worker.max(initial=-1)) + 2) + worker + 1
    found = np.where(before_any(place, launch_ms, finish_ms), FIRST, LATER)
    return np.where(before_any(worker + 1, launch_ms, finish_ms), STARTING, found) if starts else found


def others(level: Ints, worker: Ints, launch_ms: Floats, together_ms: float) -> Ints:
    """The number of other workers that start within `together_ms` of each task's worker, (tasks,)."""
    found, starting = np.zeros(len(level), dtype=np.int64), np.flatnonzero(level == STARTING)
    if len(starting):
        workers, place = np.unique(worker[starting], return_inverse=True)
        began = np.full(len(workers), np.inf)
        np.minimum.at(began, place, launch_ms[starting])
        ordered = np.sort(began)
        until = np.searchsorted(ordered, began + together_ms, side="right")
        since = np.searchsorted(ordered, began - together_ms, side="left")
        found[starting] = (until - since - 1)[place]
    return found


def levels_of(stage: Ints, replayed: Replayed, slots: Slots, starts: bool) -> Ints:
    """The level of each task in a replay, (tasks,)."""
    return levels(stage, slots.worker[replayed.slot], replayed.launch_ms, replayed.finish_ms, starts)


def warmup_cost(execution: Execution, base: Replayed, lasting_ms: Floats | None = None) -> WarmupCost | None:
    """The warm-up cost of the stages of a scope; None if tasks run in order, each a different operator, or if the
    framework's workers do not load code at its first use.

    `lasting_ms` are the times to compare, by default the tasks' durations: on a worker short of CPU these include waits
    of different lengths, and only the CPU time shows the work.
    """
    tasks, count = execution.tasks, len(execution.dag.stages)
    if not execution.planner.loads_code or execution.in_order or not len(tasks):
        return None
    took_ms = tasks.duration_ms if lasting_ms is None else lasting_ms
    level = levels_of(tasks.stage, base, execution.slots, execution.is_first_scope)
    more, most = _usual(execution)
    starts, overhead_ms = level == STARTING, execution.volumes.overhead_ms
    unpacks_ms, together_ms, longer_ms = np.zeros(3), 0.0, np.zeros(len(tasks))
    if starts.any() and not starts.all():
        together_ms = median(overhead_ms[starts])
        longer_ms[starts] = np.maximum(overhead_ms[starts] - median(overhead_ms[~starts]), 0.0)
        also_starting = others(level, execution.slots.worker[base.slot], base.launch_ms, together_ms)
        unpacks_ms[STARTING] = median(longer_ms[starts] / (1.0 + SHARED * also_starting[starts]))
    reads = np.bincount(tasks.stage, reads_files(execution), count) > 0
    if unpacks_ms[STARTING] > 0:
        more[STARTING], most[STARTING] = (np.where(reads, each[STARTING], each[FIRST]) for each in (more, most))
    unpacked_ms = tasks.duration_ms - longer_ms
    started = []
    for number, own in enumerate(members(tasks.stage, count)):
        starting, first, later = (own[level[own] == each] for each in (STARTING, FIRST, LATER))
        rest = later if len(later) > 1 else first
        if len(starting) and len(rest) > 1:
            started.append((number, median(unpacked_ms[starting]) - median(unpacked_ms[rest])))
            if min(len(starting), len(later)) >= MEASURED_TASKS and _same(tasks.duration_ms, starting, later):
                more[FIRST, number] = 0.0  # starting tasks are first ones, too
        if min(len(first), len(later)) >= MEASURED_TASKS and (one := median(took_ms[later])) > 0:
            usual_ms = median(tasks.duration_ms[later])
            most[FIRST, number] = max(MEASURED_MOST, more[FIRST, number] / usual_ms)
            times = median(took_ms[first]) / one - 1.0
            more[FIRST, number] = min(max(times, 0.0), most[FIRST, number]) * usual_ms
    for kind in (reads, ~reads):
        if measured := [more_ms for number, more_ms in started if kind[number]]:
            more[STARTING, kind] = median(measured)
        elif _starts_like_repeats(execution, level, np.flatnonzero(kind)):
            more[STARTING, kind] = more[FIRST, kind] = 0.0
    more[STARTING] = np.maximum(more[STARTING], more[FIRST])
    return WarmupCost(more, np.maximum(most, most[FIRST]), unpacks_ms, together_ms)


def _same(length_ms: Floats, some: Ints, others: Ints) -> bool:
    """Whether some tasks took no longer than others, so that nothing shows a warm-up."""
    return median(length_ms[some]) <= (1.0 + NOTICED) * median(length_ms[others])


def _starts_like_repeats(execution: Execution, level: Ints, stages: Ints) -> bool:
    """Whether starting tasks took no longer than tasks of later stages of the same words that read about as much.

    Runs of short stages, such as the batches of a stream, have no later tasks in the stage of their starting tasks.
    """
    tasks, found = execution.tasks, []
    named: dict[str, list[int]] = {}
    for number in stages.tolist():
        named.setdefault(execution.dag.stages[number].name, []).append(number)
    read = execution.volumes.input + execution.volumes.local_read + execution.volumes.remote_read
    for numbers in named.values():
        alike = np.isin(tasks.stage, numbers)
        starting, others = alike & (level == STARTING), alike & (level != STARTING)
        if not starting.any():
            continue
        usual = median(read[starting])
        others &= (read * ALIKE >= usual) & (read <= usual * ALIKE)
        if others.sum() >= MEASURED_TASKS:
            found.append(_same(tasks.duration_ms, np.flatnonzero(starting), np.flatnonzero(others)))
    return bool(found) and all(found)


def reads_files(execution: Execution) -> NDArray[np.bool_]:
    """Which tasks read files, (tasks,)."""
    found: NDArray[np.bool_] = (execution.volumes.input > 0) & (execution.volumes.cached == 0)
    return found


def _usual(execution: Execution) -> tuple[Floats, Floats]:
    """The warm-up cost in recorded runs, (3, stages) each: ms, and its maximum in multiples of a later task's time."""
    more, most = np.zeros((3, len(execution.dag.stages))), np.ones((3, len(execution.dag.stages)))
    if execution.repeated is not None:
        more[FIRST] = np.where(execution.repeated, REPEATED_MS, NEW_MS)
        most[FIRST] = np.where(execution.repeated, REPEATED_MOST, NEW_MOST)
        more[STARTING], most[STARTING] = STARTING_MS, STARTING_MOST
    return more, most
