"""Untimed stacks, such as collapsed ones: all tasks of a process get the same mixture of them.

Stacks without thread and time do not distinguish tasks.  Only profiles of the wall clock are used: a CPU profile has
no stacks of waiting threads, so all waiting would count as cpu.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.resources import CPU
from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.attribution.splitting import Recorded
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.recordings.stacktable import Collapsed, could_run
from crystalperf.query.trace.contract import Bounds, Trace
from crystalperf.query.trace.records import Columns, Floats, Ints, Problems, objects
from crystalperf.query.trace.sample_kinds import RUNNING
from crystalperf.query.trace.vocabulary import Vocabulary

KIND = "untimed"
"""Kind of rows of `samples` from a mixture whose thread was blocked, RUNNING otherwise; neither has a thread."""

MAX_ROWS = 200_000
"""Maximum rows of `samples` from a mixture, but at least one per task."""

MIN_IDLE = 0.02
"""Minimum share of stacks of idle pool threads in a wall-clock profile; a CPU profile has hardly any."""

Mixture = tuple[Ints, Floats]
"""Numbers of stacks, and how often each was sampled."""


def mixed_rows(
    files: Iterable[tuple[str, Collapsed]],
    trace: Trace,
    table: NumberedStacks,
    framework: ReadableFramework,
    timed: Collection[str | None],
    problems: Problems,
) -> list[Columns]:
    """Rows of `samples` for the tasks of workers without a timed recording (`timed` are those with one).

    A file belongs to the worker in its name, else to all workers; `problems` says how it is used.
    """
    tasks, words = trace.tasks, framework.vocabulary
    workers = np.asarray(tasks["worker_id"], dtype=object)
    ran = list(dict.fromkeys(workers.tolist()))
    mixtures: dict[str | None, list[Mixture]] = {}
    for name, each in files:
        process = (
            framework.reader.frames.process(None, Path(name).name)
            if framework.reader.frames.process is not None
            else None
        )
        app_id, worker = process or (None, None)
        if app_id is not None and app_id != trace.run["app_id"]:
            problems.add("other application", "info", name, None, f"a profile of application {app_id}; left out")
            continue
        mixture, meaning = _mixture(each, table, words)
        wanted = [one for one in ran if (worker is None or one == worker) and one not in timed]
        if mixture is not None:
            of_worker = "" if worker is None else f" of {words.worker} {worker}"
            of_whom = f"{words.worker} {worker}" if worker is not None else f"all {words.workers}"
            if not wanted:
                meaning = f"stacks without threads and times; every {words.task}{of_worker} has a timed recording"
                meaning = f"{meaning}; left out"
            else:
                meaning = (
                    f"these stacks have no threads and times: every {words.task} of"
                    f" {of_whom}{' without a timed recording' if timed else ''} gets the same mixture of them"
                )
                mixtures.setdefault(worker, []).append(mixture)
        problems.add("untimed stacks", "info", name, None, meaning)
    keys = list(table.frames)
    leaves = (np.frombuffer(stack[:4], dtype=np.int32).tolist() for stack in table.stacks)
    running = np.array([all(could_run(*keys[each][:2]) for each in leaf) for leaf in leaves], dtype=bool)
    return [
        _rows(mixtures.get(one) or mixtures[None], running, np.flatnonzero(workers == one), one, trace)
        for one in ran
        if one not in timed and (one in mixtures or None in mixtures)
    ]


def _mixture(file: Collapsed, table: NumberedStacks, words: Vocabulary) -> tuple[Mixture | None, str]:
    """The stacks of tasks in a file; None, and the reason, if they cannot represent the tasks' time."""
    numbers = table.add(file.recording)
    idle = table.has_role("idle")[numbers]
    in_task = table.has_role("task")[numbers] & ~idle
    if not in_task.any():
        return None, f"these stacks have no times, and none is of a {words.task}; left out"
    if not file.of_tasks and file.weight[idle].sum() < MIN_IDLE * file.weight.sum():
        return None, (
            "these stacks have no threads and times, and only threads on the CPU, so they do not show what"
            f" {words.tasks} waited for; left out: sample the wall clock (event=wall), preferably as a JFR recording"
        )
    return (numbers[in_task], file.weight[in_task]), ""


def _rows(mixtures: list[Mixture], running: NDArray[np.bool_], of: Ints, worker: str | None, trace: Trace) -> Columns:
    """Rows of `samples` for the tasks at the positions `of`; `running`: whether each stack's thread could run."""
    tasks, held = trace.tasks, trace.bounds.slot_ms[of]
    stack = np.concatenate([each[0] for each in mixtures])
    weight = np.concatenate([each[1] for each in mixtures])
    launch = np.asarray(tasks["launch_ms"], dtype=np.float64)[of]
    duration = np.asarray(tasks["finish_ms"], dtype=np.float64)[of] - launch
    task, chosen, part_ms = spread(stack, weight, np.where(np.isfinite(held), np.minimum(held, duration), duration))
    count = len(task)
    return {
        "time_ms": launch[task],
        "worker_id": objects([worker] * count),
        "thread": objects([None] * count),
        "stack_id": chosen,
        "kind": objects(np.where(running[chosen], RUNNING, KIND).tolist()),
        "weight_ms": part_ms,
        "bytes": np.ma.MaskedArray(np.zeros(count, dtype=np.int64), True),
        "task_id": np.asarray(tasks["task_id"], dtype=np.int64)[of][task],
    }


def spread(stack: Ints, weight: Floats, task_ms: Floats) -> tuple[Ints, Ints, Floats]:
    """Give every task the same mixture of stacks: (task, stack, ms) of the rows, each task's rows summing to `task_ms`.

    `stack` and `weight` are the mixture; `task_ms` is the time of the tasks, (tasks,).  Each task gets stacks at even
    steps through the mixture, from a start that differs between tasks, so that all tasks together have the recorded
    mixture even with few rows a task.
    """
    tasks = len(task_ms)
    if not tasks or not weight.sum() > 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    steps = int(np.clip(MAX_ROWS // tasks, 1, 4 * len(stack)))
    golden = (5**0.5 - 1) / 2
    start = (np.arange(tasks) * golden) % 1.0
    place = ((np.arange(steps)[None, :] + start[:, None]) / steps).ravel()
    reached = np.cumsum(weight) / weight.sum()
    chosen = np.minimum(np.searchsorted(reached, place, side="right"), len(stack) - 1)
    task = np.repeat(np.arange(tasks, dtype=np.int64), steps)
    # If several steps of a task hit one stack, it gets one row.
    pair, count = np.unique(task * len(stack) + chosen, return_counts=True)
    task, chosen = pair // len(stack), pair % len(stack)
    return task, stack[chosen].astype(np.int64), task_ms[task] * count / steps


def with_measured_times(
    connection: duckdb.DuckDBPyConnection, recorded: Recorded, bounds: Bounds, tasks: Columns, names: Sequence[str]
) -> Recorded:
    """Recorded times in which tasks with their process' mixture keep the times that were measured for each of them.

    The framework measured some of a task's time on the CPU and waiting for peers.  Subtracted from the mixture of all
    tasks, these leave the mixture of the remaining time: a stage that read nothing from peers gets no reading.
    """
    rows = connection.execute(
        "SELECT DISTINCT task_id FROM samples WHERE thread IS NULL AND task_id IS NOT NULL"
    ).fetchnumpy()
    mixed = np.flatnonzero(np.isin(tasks["task_id"], rows["task_id"]))
    if not len(mixed):
        return recorded
    held, known = np.nan_to_num(bounds.slot_ms[mixed]), bounds.floor_ms[mixed]
    workers = [str(each) for each in tasks["worker_id"][mixed].tolist()]
    process = np.unique(workers, return_inverse=True)[1].reshape(-1)
    total, measured = np.zeros((2, int(process.max()) + 1, known.shape[1]))
    np.add.at(total, process, recorded.samples_ms[mixed])
    np.add.at(measured, process, known)
    left = np.maximum(total - measured, 0.0)
    # If more waiting was measured on a resource than the mixture has, the excess has another label in the mixture.
    blocked = np.delete(np.arange(left.shape[1]), names.index(CPU))
    beyond = np.maximum(measured - total, 0.0)[:, blocked].sum(axis=1)
    beyond /= np.maximum(left[:, blocked].sum(axis=1), 1e-9)
    left[:, blocked] *= np.maximum(1.0 - beyond, 0.0)[:, None]
    sums = left.sum(axis=1, keepdims=True)
    left = np.divide(left, sums, out=np.zeros_like(left), where=sums > 0)
    left[sums[:, 0] <= 0, -1] = 1.0
    samples = recorded.samples_ms.copy()
    samples[mixed] = known + left[process] * (held - known.sum(axis=1))[:, None]
    return replace(recorded, samples_ms=samples)
