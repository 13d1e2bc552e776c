"""Stacks without thread and time, such as collapsed ones: the mixture of what all tasks of a process did.

No task can be told from another by them, so every task of the process gets the same mixture, for want of better.
Only profiles of the wall clock serve: one of the CPU alone has no stack of a thread that waits, and would make all
waiting cpu.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from indexes import resources
from query.attribute.split import Measured, Recorded, explained
from query.code.decide import StackTable
from query.frameworks import Framework
from query.model.dag import Floats, Ints
from query.model.records import Columns, Problems, RunTables, objects
from query.recordings.collapsed import Collapsed, could_run
from query.samples.threadtime import RUNNING

KIND = "untimed"
"""Kind of rows of `samples` that stand for a mixture, beside RUNNING; neither has a thread."""

MOST_ROWS = 200_000
"""Rows of `samples` that a mixture becomes at most, but one per task."""

LEAST_IDLE = 0.02
"""A profile of the wall clock sees the pools' idle threads all the time, one of the CPU hardly ever."""

Mixture = tuple[Ints, Floats]
"""Numbers of stacks and how often each was seen."""


def mixed_rows(
    files: Iterable[tuple[str, Collapsed]],
    tables: RunTables,
    table: StackTable,
    framework: Framework,
    timed: Collection[str | None],
    problems: Problems,
) -> list[Columns]:
    """Rows of `samples` for the tasks of executors that left no timed recording (`timed` are those that did).

    A file is of the executor that its name tells, else of all of them; what is made of it is said in `problems`.
    """
    tasks = tables["tasks"]
    executors = np.asarray(tasks["executor_id"], dtype=object)
    ran = list(dict.fromkeys(executors.tolist()))
    mixtures: dict[str | None, list[Mixture]] = {}
    for name, each in files:
        process = framework.process(None, Path(name).name)
        app_id, executor = process or (None, None)
        if app_id is not None and app_id != tables["runs"]["app_id"][0]:
            problems.add("other application", "info", name, None, f"a profile of application {app_id}; left out")
            continue
        mixture, meaning = _mixture(each, table)
        wanted = [one for one in ran if (executor is None or one == executor) and one not in timed]
        if mixture is not None:
            told = "" if executor is None else f"executor {executor} and "
            of_whom = f"executor {executor}" if executor is not None else "all executors"
            if not wanted:
                meaning = f"stacks that tell neither thread nor time, of {told}no task that has no timed recording"
                meaning = f"{meaning}; left out"
            else:
                meaning = (
                    "these stacks tell neither thread nor time: every task of"
                    f" {of_whom}{' without a timed recording' if timed else ''} got their mixture alike"
                )
                mixtures.setdefault(executor, []).append(mixture)
        problems.add("untimed stacks", "info", name, None, meaning)
    keys = list(table.frames)
    leaves = (np.frombuffer(stack[:4], dtype=np.int32).tolist() for stack in table.stacks)
    running = np.array([all(could_run(*keys[each][:2]) for each in leaf) for leaf in leaves], dtype=bool)
    return [
        _rows(mixtures.get(one) or mixtures[None], running, np.flatnonzero(executors == one), one, tables)
        for one in ran
        if one not in timed and (one in mixtures or None in mixtures)
    ]


def _mixture(file: Collapsed, table: StackTable) -> tuple[Mixture | None, str]:
    """The stacks of tasks in a file; None, and why, where it has none that could stand for their time."""
    numbers = table.add(file.recording)
    idle = table.has_role("idle")[numbers]
    in_task = table.has_role("task")[numbers] & ~idle
    if not in_task.any():
        return None, "stacks of a process that ran no task, and they do not tell when they were seen; left out"
    if file.weight[idle].sum() < LEAST_IDLE * file.weight.sum():
        return None, (
            "these stacks tell neither thread nor time and are of threads on the CPU only, so they cannot say what"
            " tasks waited for; left out: sample the wall clock (event=wall), best into a JFR recording"
        )
    return (numbers[in_task], file.weight[in_task]), ""


def _rows(
    mixtures: list[Mixture], running: NDArray[np.bool_], mine: Ints, executor: str | None, tables: RunTables
) -> Columns:
    """Rows of `samples` for the tasks at these positions; `running` says of every stack if its thread could run."""
    tasks = tables["tasks"]
    stack = np.concatenate([each[0] for each in mixtures])
    weight = np.concatenate([each[1] for each in mixtures])
    launch = np.asarray(tasks["launch_ms"], dtype=np.float64)[mine]
    duration = np.asarray(tasks["finish_ms"], dtype=np.float64)[mine] - launch
    run, *around = (
        np.ma.filled(np.ma.asarray(tasks[name], dtype=np.float64), np.nan)[mine]
        for name in ("run_ms", "deserialize_ms", "result_serialize_ms")
    )
    held = run + np.nan_to_num(around).sum(axis=0)
    task, chosen, part_ms = spread(stack, weight, np.where(np.isfinite(held), np.minimum(held, duration), duration))
    count = len(task)
    return {
        "time_ms": launch[task],
        "executor_id": objects([executor] * count),
        "thread": objects([None] * count),
        "stack_id": chosen,
        "kind": objects(np.where(running[chosen], RUNNING, KIND).tolist()),
        "weight_ms": part_ms,
        "bytes": np.ma.MaskedArray(np.zeros(count, dtype=np.int64), True),
        "task_id": np.asarray(tasks["task_id"], dtype=np.int64)[mine][task],
    }


def spread(stack: Ints, weight: Floats, task_ms: Floats) -> tuple[Ints, Ints, Floats]:
    """Give every task the same mixture of stacks: (task, stack, ms) of the rows, each task's rows summing to `task_ms`.

    `stack` and `weight` are the mixture; `task_ms` the time of the tasks that it stands for, (tasks,).  Each task gets
    stacks at even steps through the mixture, from a start that differs from task to task, so that few rows a task
    still give all tasks together the mixture that was seen.
    """
    tasks = len(task_ms)
    if not tasks or not weight.sum() > 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    steps = int(np.clip(MOST_ROWS // tasks, 1, 4 * len(stack)))
    golden = (5**0.5 - 1) / 2
    start = (np.arange(tasks) * golden) % 1.0
    place = ((np.arange(steps)[None, :] + start[:, None]) / steps).ravel()
    reached = np.cumsum(weight) / weight.sum()
    chosen = np.minimum(np.searchsorted(reached, place, side="right"), len(stack) - 1)
    task = np.repeat(np.arange(tasks, dtype=np.int64), steps)
    # One row for a stack that several steps of a task fell on.
    pair, count = np.unique(task * len(stack) + chosen, return_counts=True)
    task, chosen = pair // len(stack), pair % len(stack)
    return task, stack[chosen].astype(np.int64), task_ms[task] * count / steps


def fill_the_rest(
    connection: duckdb.DuckDBPyConnection, recorded: Recorded, measured: Measured, tasks: Columns
) -> Recorded:
    """What recordings tell, where tasks with their process' mixture keep what was measured of each of them.

    Spark measured some of a task's time on the CPU and waiting for peers.  Taken off the mixture of all, these leave
    what the rest of every task is like: a stage that fetched nothing does not get the fetching of others.
    """
    rows = connection.execute(
        "SELECT DISTINCT task_id FROM samples WHERE thread IS NULL AND task_id IS NOT NULL"
    ).fetchnumpy()
    mixed = np.flatnonzero(np.isin(tasks["task_id"], rows["task_id"]))
    if not len(mixed):
        return recorded
    held, on_cpu, fetch = (each[mixed] for each in explained(measured))
    cpu, net = resources().index("cpu"), resources().index("net")
    known = np.zeros((len(mixed), recorded.samples_ms.shape[1]))
    known[:, cpu], known[:, net] = on_cpu, fetch
    names = [str(each) for each in tasks["executor_id"][mixed].tolist()]
    process = np.unique(names, return_inverse=True)[1].reshape(-1)
    total, told = np.zeros((2, int(process.max()) + 1, known.shape[1]))
    np.add.at(total, process, recorded.samples_ms[mixed])
    np.add.at(told, process, known)
    left = np.maximum(total - told, 0.0)
    # Waiting that was measured beyond what the labels call it bears another label in the mixture.
    blocked = np.delete(np.arange(left.shape[1]), cpu)
    beyond = np.maximum(told - total, 0.0)[:, net] / np.maximum(left[:, blocked].sum(axis=1), 1e-9)
    left[:, blocked] *= np.maximum(1.0 - beyond, 0.0)[:, None]
    sums = left.sum(axis=1, keepdims=True)
    left = np.divide(left, sums, out=np.zeros_like(left), where=sums > 0)
    left[sums[:, 0] <= 0, -1] = 1.0
    samples = recorded.samples_ms.copy()
    samples[mixed] = known + left[process] * (held - on_cpu - fetch)[:, None]
    return replace(recorded, samples_ms=samples)
