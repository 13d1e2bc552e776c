"""Matches a recording to its worker, and its threads to the tasks that they worked for."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.attribution.samples.align import ThreadIntervals, assign, clock_shift, named_task_at, task_at
from crystalperf.query.attribution.samples.loads import heaps, process_loads
from crystalperf.query.attribution.samples.threadloads import thread_loads
from crystalperf.query.attribution.samples.threadtime import KINDS, ThreadTime, sees_all, thread_time
from crystalperf.query.attribution.samples.which_worker import UNNAMED, has_tasks, worker_of
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Coded, Columns, Floats, Ints, Problems, coded

MIN_UNMATCHED_SHARE = 0.05
"""Minimum share of sampled task time that matches no task for a problem to be reported."""


@frozen
class MatchedRecording:
    """One recording matched to the run: its rows of `samples`, with the tasks that threads worked for, `loads`,
    `thread_loads` and `heaps`."""

    worker_id: str | None
    clock_offset_ms: float
    pid: int | None
    rows: Columns
    loads: Columns
    thread_loads: Columns
    heaps: Columns
    sees_all: bool


def place(
    name: str,
    recording: jfr.Recording,
    trace: Trace,
    table: NumberedStacks,
    framework: ReadableFramework,
    problems: Problems,
    taken: Collection[str] = (),
) -> MatchedRecording | None:
    """Find the worker and the tasks of a recording; None, with a problem that says why, if it is of none.

    `taken` are workers that have a recording: a recording without a name is of another worker.
    """
    for each in recording.problems:
        problems.add(each.name, each.severity, name, each.first_place, each.meaning, each.count)
    process = _process(name, recording, trace, framework, problems)
    if process is None:
        return None
    app_id, named = process
    time = thread_time(recording)
    start_ms = time.start_ms - float(trace.run["started_at_ms"])
    # A driver's recording may name no application, but its clock is the log's.
    if app_id is None and len(start_ms) and (start_ms.max() < 0 or start_ms.min() > float(trace.run["duration_ms"])):
        problems.add("other time", "info", name, None, _other_time(start_ms, float(trace.run["duration_ms"])))
        return None
    first_ms = float(start_ms.min()) if len(start_ms) else float("nan")
    worker_id = worker_of(named, Path(name).name, recording, trace, framework, first_ms, taken)
    if worker_id is None:
        problems.add("unmatched recording", "data loss", name, None, _unmatched(named, recording, framework))
        return None
    numbers = table.add(recording)
    stack = numbers[time.stack]
    tasks = _tasks_of(trace, worker_id)
    thread_names = [framework.reader.frames.task_thread(each.java_name or each.os_name) for each in recording.threads]
    position, in_task, shift = _positions(time, start_ms, stack, table, tasks, thread_names)
    known = (position >= 0) & in_task
    ids = tasks.task_id
    task_id = np.ma.MaskedArray(ids[np.maximum(position, 0)] if len(ids) else np.zeros(len(known), np.int64), ~known)
    adrift, total = float(time.weight_ms[in_task & ~known].sum()), float(time.weight_ms[in_task].sum())
    if total > 0 and adrift > MIN_UNMATCHED_SHARE * total:
        words = framework.vocabulary
        meaning = f"{100 * adrift / total:.0f} % of the time sampled in {words.tasks} matches none of them"
        problems.add(f"samples without a {words.task}", "data loss", name, None, meaning)
    names = [f"{each.java_name or each.os_name}#{each.java_tid}" for each in recording.threads]
    rows: Columns = {
        "time_ms": start_ms + shift,
        "worker_id": coded(np.zeros(len(stack), np.int32), [worker_id]),
        "thread": coded(time.thread, names),
        "stack_id": stack,
        "kind": coded(time.kind, KINDS),
        "weight_ms": time.weight_ms,
        "bytes": np.ma.MaskedArray(time.bytes, time.bytes == 0),
        "task_id": task_id,
    }
    pid, offset_ms = recording.jvm.pid if recording.jvm else None, shift - float(trace.run["started_at_ms"])
    of_threads, dated = thread_loads(recording, worker_id, offset_ms, names)
    of_threads = _from_launch(of_threads, dated, _task_of_load(of_threads, names, thread_names, tasks), tasks)
    loads, left = process_loads(recording, worker_id, offset_ms), heaps(recording, worker_id, offset_ms)
    return MatchedRecording(worker_id, shift, pid, rows, loads, of_threads, left, sees_all(recording))


def _process(
    name: str, recording: jfr.Recording, trace: Trace, framework: ReadableFramework, problems: Problems
) -> tuple[str | None, str] | None:
    """The application and the worker of a recording; None, with a problem that says why, if it is of another."""
    find = framework.reader.frames.process
    arguments = recording.jvm.java_arguments if recording.jvm else None
    process = None if find is None else find(arguments, Path(name).name)
    words = framework.vocabulary
    if process is None and find is not None and recording.jvm is None and has_tasks(recording, framework):
        process = (None, UNNAMED)
    if process is None:
        why = f"a recording of a process that is not {framework.title}'s"
        if recording.jvm is None:
            why = f"the end of the recording is missing or damaged, and it shows no {words.task}"
        problems.add("foreign recording", "info", name, None, f"{why}; give those of the {words.workers}")
        return None
    if process[0] is not None and process[0] != trace.run["app_id"]:
        meaning = f"a recording of application {process[0]}; give the log of that application with it"
        problems.add("other application", "info", name, None, meaning)
        return None
    return process


def _other_time(start_ms: Floats, duration_ms: float) -> str:
    """Why a recording is of another time than the run, from its times since the run's start."""
    early = start_ms.max() < 0
    gap_s = (-start_ms.max() if early else start_ms.min() - duration_ms) / 1000
    gap = f"{gap_s:,.0f} s".replace(",", " ")
    when = f"ends {gap} before the run starts" if early else f"starts {gap} after the run ends"
    return f"the recording {when}; give the log of the run that it recorded"


def _unmatched(named: str, recording: jfr.Recording, framework: ReadableFramework) -> str:
    """Why no worker was found for a recording, and how to help."""
    worker = framework.vocabulary.worker
    if named != UNNAMED:
        return f"a recording of {worker} {named}, which the log does not name; give the log of the run that it recorded"
    lost = "" if recording.jvm else ", because its end is missing"
    return (
        f"the recording does not name its {worker}{lost}, and neither its threads, host and port nor its start fit"
        f" exactly one; name its file {worker.lower()}-ID.jfr, with the ID of the {worker}"
    )


@frozen
class _WorkerTasks:
    """The tasks of one worker by launch, ms since application start; their threads, None if the log names none."""

    task_id: Ints
    launch_ms: Floats
    finish_ms: Floats
    threads: list[str] | None


def _tasks_of(trace: Trace, worker_id: str) -> _WorkerTasks:
    tasks = trace.tasks
    workers = tasks["worker_id"]
    if isinstance(workers, Coded):
        rows = np.flatnonzero(np.array([each == worker_id for each in workers.texts], dtype=bool)[workers.codes])
    else:
        rows = np.flatnonzero(np.array([each == worker_id for each in workers], dtype=bool))
    rows = rows[np.argsort(np.asarray(tasks["launch_ms"])[rows], kind="stable")]
    return _WorkerTasks(
        np.asarray(tasks["task_id"], dtype=np.int64)[rows],
        np.asarray(tasks["launch_ms"], dtype=np.float64)[rows],
        np.asarray(tasks["finish_ms"], dtype=np.float64)[rows],
        [trace.task_threads[each] for each in rows] if trace.task_threads else None,
    )


def _positions(
    time: ThreadTime, start_ms: Floats, stack: Ints, table: NumberedStacks, tasks: _WorkerTasks, names: list[str]
) -> tuple[Ints, NDArray[np.bool_], float]:
    """Each sample's task position or −1, whether it is in a task, and the clock shift, ms."""
    idle = table.has_role("idle")[stack]
    in_task = table.has_role("task")[stack] & ~idle
    cut = np.array(table.truncated, dtype=bool)[stack] & ~idle
    in_task |= cut & np.isin(time.thread, np.unique(time.thread[in_task]))  # its root, the task's frame, is missing
    launch, finish = tasks.launch_ms, tasks.finish_ms
    if tasks.threads is not None:
        position = named_task_at(time.thread, names, start_ms, tasks.threads, launch, finish)
        return position, (position >= 0) & ~idle, 0.0
    seen = _seen(time, start_ms, in_task, in_task | idle)
    shift = clock_shift(seen, launch, finish)
    seen = ThreadIntervals(seen.thread, seen.start_ms + shift, seen.end_ms + shift, seen.in_task)
    return task_at(time.thread, start_ms + shift, assign(seen, launch, finish), launch, finish), in_task, shift


def _task_of_load(of_threads: Columns, names: list[str], thread_names: list[str], tasks: _WorkerTasks) -> Ints:
    """The task's position for each interval of a thread's load, −1 for none.

    The task at the end of the interval, else at its middle: a task may start after the middle, or finish with its
    thread before the end.
    """
    number = {name: at for at, name in enumerate(names)}
    threads = np.array([number[each] for each in of_threads["thread"].tolist()], dtype=np.int64)
    middle_ms = (of_threads["start_ms"] + of_threads["end_ms"]) / 2
    middle, end = (
        named_task_at(threads, thread_names, moment_ms, tasks.threads or [], tasks.launch_ms, tasks.finish_ms)
        for moment_ms in (middle_ms, of_threads["end_ms"])
    )
    found: Ints = np.where(end >= 0, end, middle)
    return found


def _from_launch(of_threads: Columns, dated: NDArray[np.bool_], position: Ints, tasks: _WorkerTasks) -> Columns:
    """The rows with the tasks at their `position`, -1 for none: a task's thread started at its launch.

    The launch also gives a start to intervals without a known one; intervals without either are left out.
    """
    kept = dated | (position >= 0)
    of_threads, position = {name: column[kept] for name, column in of_threads.items()}, position[kept]
    end_ms, of_task = of_threads["end_ms"], position >= 0
    if not of_task.any():
        none = np.ma.MaskedArray(np.zeros(len(position), np.int64), np.ones(len(position), dtype=np.bool_))
        return {**of_threads, "task_id": none}
    begun_ms = np.where(of_task, tasks.launch_ms[np.maximum(position, 0)], -np.inf)
    start_ms = np.maximum(of_threads["start_ms"], np.minimum(begun_ms, end_ms - 1.0))
    return {
        **of_threads,
        "start_ms": start_ms,
        "cpu_ms": of_threads["cpu_ms"] * (end_ms - start_ms) / (end_ms - of_threads["start_ms"]),
        "task_id": np.ma.MaskedArray(tasks.task_id[np.maximum(position, 0)], ~of_task),
    }


def _seen(time: ThreadTime, start_ms: Floats, in_task: NDArray[np.bool_], known: NDArray[np.bool_]) -> ThreadIntervals:
    return ThreadIntervals(
        thread=time.thread[known],
        start_ms=start_ms[known],
        end_ms=(start_ms + time.weight_ms)[known],
        in_task=in_task[known],
    )
