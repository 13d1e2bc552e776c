"""Ground truth of stages: shares of time from the samples of task threads.

A thread's samples become running sums, one for each kind of time.  A task's time is the growth of its thread's sums
from its launch to its finish.  The kernel has no task ids (it truncates thread names to 15 characters), so tasks are
matched to the threads of their executor by the CPU time that Spark logged for them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

from lab.machine import truth

Floats = npt.NDArray[np.float64]

# Kinds of time of a thread, in milliseconds.
KINDS = ("on_cpu", "run_queue", "held_back", "disk", "network", "peer", "futex", "other")
_KIND_OF_CLASS = {
    truth.RUNNING: "held_back",
    truth.DISK: "disk",
    truth.HELPED_DISK: "disk",
    truth.NETWORK: "network",
    truth.PEER: "peer",
    truth.FUTEX: "futex",
    truth.OTHER: "other",
}
_LONGEST_TICK_MS = 1000.0
# The driver logs a task's end when the thread may already run the next task.
_AT_ONCE_MS = 50.0


@dataclass(frozen=True)
class Task:
    """One task attempt of the event log; times in ms (epoch), durations in ms."""

    task_id: int
    stage_id: int
    stage_attempt: int
    executor_id: str
    launch_ms: float
    finish_ms: float
    cpu_ms: float
    gc_ms: float
    fetch_wait_ms: float


@dataclass(frozen=True)
class StageTruth:
    """The ground truth of one stage, in ms of task time; the four shares sum to 1.

    Attributes:
        task_ms: sum of the tasks' durations.
        total_cpu_ms … other_ms: times from /proc. ``held_back`` was runnable, but neither on the CPU nor in the run
            queue (a quota); ``peer`` waited for a Python worker that was running.
        gc_ms, fetch_wait_ms: the part of the futex waits that Spark's own metrics explain.
        residual_ms: unexplained futex waits and unobserved time; counted as other.
        cpu, disk, net, other: shares. cpu includes waits for the CPU, and garbage collection.
    """

    stage_id: int
    stage_attempt: int
    tasks: int
    task_ms: float
    total_cpu_ms: float
    run_queue_ms: float
    held_back_ms: float
    disk_ms: float
    network_ms: float
    peer_ms: float
    futex_ms: float
    other_ms: float
    gc_ms: float
    fetch_wait_ms: float
    residual_ms: float
    cpu: float
    disk: float
    net: float
    other: float


@dataclass(frozen=True)
class _Series:
    """Running sums of one thread: time_ms[n], sums_ms[n, len(KINDS)]."""

    time_ms: Floats
    sums_ms: Floats

    def between(self, start_ms: float, end_ms: float) -> Floats:
        return np.array(
            [
                float(np.interp(end_ms, self.time_ms, column) - np.interp(start_ms, self.time_ms, column))
                for column in self.sums_ms.T
            ]
        )


def running_sums(time_ns: Floats, on_cpu_ns: Floats, run_queue_ns: Floats, state: npt.NDArray[np.int64]) -> _Series:
    """A thread's samples as running sums; half of the time between two samples counts for each of their kinds."""
    time_ms = time_ns / 1e6
    step_ms = np.diff(time_ms)
    parts = np.zeros((len(step_ms), len(KINDS)))
    parts[:, 0] = np.clip(np.diff(on_cpu_ns) / 1e6, 0, step_ms)
    parts[:, 1] = np.clip(np.diff(run_queue_ns) / 1e6, 0, step_ms - parts[:, 0])
    rest = step_ms - parts[:, 0] - parts[:, 1]
    rest[step_ms > _LONGEST_TICK_MS] = 0.0  # a gap of the sampler
    column = np.array([KINDS.index(_KIND_OF_CLASS[value]) for value in range(len(truth.CLASSES))])[state]
    # If one sample shows a wait and the other the CPU, the wait took the rest of the time.
    held = KINDS.index("held_back")
    first, second = column[:-1].copy(), column[1:].copy()
    first[(first == held) & (second != held)] = second[(first == held) & (second != held)]
    second[(second == held) & (first != held)] = first[(second == held) & (first != held)]
    rows = np.arange(len(step_ms))
    np.add.at(parts, (rows, first), rest / 2)
    np.add.at(parts, (rows, second), rest / 2)
    return _Series(time_ms, np.vstack([np.zeros(len(KINDS)), np.cumsum(parts, axis=0)]))


def assign_threads(tasks: list[Task], series: dict[int, _Series]) -> dict[int, int]:
    """The thread of each task of one executor: in the order of launches, the free thread with the best match in CPU
    time.

    Of tasks launched at the same time, the longest is matched first.  If all slots are busy, a single thread is free,
    and a task matched out of order would take the thread of another.
    """
    taken: dict[int, list[Task]] = {thread: [] for thread in series}
    found = {}
    by_launch = sorted(tasks, key=lambda task: task.launch_ms)
    launches = np.array([task.launch_ms for task in by_launch])
    at_once = np.cumsum(np.diff(launches, prepend=launches[:1]) > _AT_ONCE_MS)
    for place in np.lexsort((launches - [task.finish_ms for task in by_launch], at_once)):
        task = by_launch[place]
        best, best_cost = None, np.inf
        for thread, one in series.items():
            if any(
                task.launch_ms < old.finish_ms - _AT_ONCE_MS and old.launch_ms < task.finish_ms - _AT_ONCE_MS
                for old in taken[thread]
            ):
                continue
            cost = abs(one.between(task.launch_ms, task.finish_ms)[0] - task.cpu_ms)
            if cost < best_cost:
                best, best_cost = thread, cost
        if best is not None:
            taken[best].append(task)
            found[task.task_id] = best
    return found


def stage_truth(tasks: list[Task], parts: dict[int, Floats]) -> list[StageTruth]:
    """One row per stage, from the kinds of time of its tasks."""
    stages = sorted({(task.stage_id, task.stage_attempt) for task in tasks})
    rows = []
    for stage in stages:
        of_stage = [t for t in tasks if (t.stage_id, t.stage_attempt) == stage and t.task_id in parts]
        if not of_stage:
            continue
        task_ms = sum(task.finish_ms - task.launch_ms for task in of_stage)
        sums = dict(zip(KINDS, np.sum([parts[task.task_id] for task in of_stage], axis=0).tolist(), strict=True))
        gc_ms = fetch_ms = 0.0
        for task in of_stage:
            futex = float(parts[task.task_id][KINDS.index("futex")])
            fetched = min(task.fetch_wait_ms, futex)
            fetch_ms += fetched
            gc_ms += min(task.gc_ms, futex - fetched)
        cpu = sums["on_cpu"] + sums["run_queue"] + sums["held_back"] + sums["peer"] + gc_ms
        net = sums["network"] + fetch_ms
        residual = task_ms - cpu - net - sums["disk"] - sums["other"]
        whole = max(task_ms, 1e-9)
        rows.append(
            StageTruth(
                stage_id=stage[0],
                stage_attempt=stage[1],
                tasks=len(of_stage),
                task_ms=task_ms,
                total_cpu_ms=sums["on_cpu"],
                run_queue_ms=sums["run_queue"],
                held_back_ms=sums["held_back"],
                disk_ms=sums["disk"],
                network_ms=sums["network"],
                peer_ms=sums["peer"],
                futex_ms=sums["futex"],
                other_ms=sums["other"],
                gc_ms=gc_ms,
                fetch_wait_ms=fetch_ms,
                residual_ms=residual,
                cpu=cpu / whole,
                disk=sums["disk"] / whole,
                net=net / whole,
                other=1 - (cpu + sums["disk"] + net) / whole,
            )
        )
    return rows


def read_tasks(event_log: Path, start_ms: float, end_ms: float) -> list[Task]:
    """The finished tasks of an event log that were launched while the query ran."""
    from crystalperf.query.frameworks.spark.log.collect import collect
    from crystalperf.query.frameworks.spark.log.tables import tables
    from crystalperf.query.inputs.discover import discover

    application = discover([event_log]).applications[0]
    found_tables = tables(collect(application.log))
    columns = found_tables["tasks"]
    began_ms = float(found_tables["runs"]["started_at_ms"][0])  # tasks' times count from there

    def column(name: str) -> list[float]:
        return [0.0 if value is None or value is np.ma.masked else float(value) for value in columns[name]]

    numbers = {
        name: column(name)
        for name in ("launch_ms", "finish_ms", "run_cpu_ms", "deserialize_cpu_ms", "gc_ms", "fetch_wait_ms")
    }
    found = []
    for i, task_id in enumerate(columns["task_id"]):
        launch_ms, finish_ms = began_ms + numbers["launch_ms"][i], began_ms + numbers["finish_ms"][i]
        if start_ms <= launch_ms <= end_ms and columns["status"][i] == "succeeded":
            found.append(
                Task(
                    task_id=int(task_id),
                    stage_id=int(columns["stage_id"][i]),
                    stage_attempt=int(columns["stage_attempt"][i]),
                    executor_id=str(columns["executor_id"][i]),
                    launch_ms=launch_ms,
                    finish_ms=finish_ms,
                    cpu_ms=numbers["run_cpu_ms"][i] + numbers["deserialize_cpu_ms"][i],
                    gc_ms=numbers["gc_ms"][i],
                    fetch_wait_ms=numbers["fetch_wait_ms"][i],
                )
            )
    return found


def read_series(ticks: Path) -> dict[str, dict[int, _Series]]:
    """Running sums of every task thread, by executor and thread."""
    found: dict[str, dict[int, _Series]] = {}
    with duckdb.connect() as connection:
        columns = connection.execute(
            "SELECT executor_id, thread, time_ns, on_cpu_ns, run_queue_ns, class FROM read_parquet(?) "
            "ORDER BY executor_id, thread, time_ns",
            [str(ticks)],
        ).fetchnumpy()
    for executor in sorted(set(columns["executor_id"])):
        of_executor = columns["executor_id"] == executor
        for thread in sorted(set(columns["thread"][of_executor].tolist())):
            rows = of_executor & (columns["thread"] == thread)
            if rows.sum() >= 2:
                found.setdefault(executor, {})[int(thread)] = running_sums(
                    columns["time_ns"][rows].astype(np.float64),
                    columns["on_cpu_ns"][rows].astype(np.float64),
                    columns["run_queue_ns"][rows].astype(np.float64),
                    columns["class"][rows].astype(np.int64),
                )
    return found


def executors_between(processes: Path, start_ms: float, end_ms: float) -> dict[str, float]:
    """Resource use of all executors between two moments: cpu_ms, read_bytes, write_bytes, received_bytes, sent_bytes,
    throttled_ms (of their cgroups)."""
    names = ("cpu_ms", "read_bytes", "write_bytes", "received_bytes", "sent_bytes", "throttled_ms")
    sums = dict.fromkeys(names, 0.0)
    with duckdb.connect() as connection:
        columns = connection.execute(
            "SELECT * FROM read_parquet(?) ORDER BY executor_id, time_ns", [str(processes)]
        ).fetchnumpy()
    for executor in sorted(set(columns["executor_id"])):
        rows = columns["executor_id"] == executor
        time_ms = columns["time_ns"][rows] / 1e6
        for name in names:
            start, end = np.interp([start_ms, end_ms], time_ms, columns[name][rows].astype(np.float64))
            sums[name] += float(end - start)
    return sums


def summarize(folder: Path, event_log: Path, start_ms: float, end_ms: float) -> dict[str, Any]:
    """The ground truth of one run: ``executors`` (see ``executors_between``), ``stages`` (see ``StageTruth``),
    ``residual`` (unexplained share of task time) and ``cpu_error`` (median relative difference between a task's CPU
    time in Spark's log and its thread's in /proc, which shows whether tasks were matched to the right threads)."""
    tasks = read_tasks(event_log, start_ms, end_ms)
    parts: dict[int, Floats] = {}
    errors = []
    for executor, series in read_series(folder / "ticks.parquet").items():
        of_executor = [task for task in tasks if task.executor_id == executor]
        thread_of = assign_threads(of_executor, series)
        for task in of_executor:
            if task.task_id in thread_of:
                parts[task.task_id] = series[thread_of[task.task_id]].between(task.launch_ms, task.finish_ms)
                if task.cpu_ms > 50:
                    errors.append(abs(parts[task.task_id][0] - task.cpu_ms) / task.cpu_ms)
    stages = stage_truth(tasks, parts)
    whole = sum(stage.task_ms for stage in stages)
    return {
        "executors": executors_between(folder / "processes.parquet", start_ms, end_ms),
        "stages": [{k: round(v, 4) for k, v in asdict(stage).items()} for stage in stages],
        "tasks": len(tasks),
        "tasks_seen": len(parts),
        "residual": sum(stage.residual_ms for stage in stages) / whole if whole else None,
        "cpu_error": float(np.median(errors)) if errors else None,
    }
