"""Converts tasks to the trace that CrystalPerf analyzes.

With a dump, every task is a stage: Dask has no barriers between layers, and a task starts as soon as its dependencies
are ready.  Without a dump, dependencies are unknown.  Then layers that ran concurrently are one stage, and a layer that
began after all of them had ended depends on them.

A task occupies its thread while it computes.  It also occupies the thread before, if the thread was idle although the
scheduler had found the task ready: the task was sent to the worker, deserialized, or waited for its data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from crystalperf.plugin import Edge, LogFile, Problems, Scope, Stage, Task, Trace, Worker, of_rows
from crystalperf_dask.reading import Known, layer_of, prefix_of, read
from crystalperf_dask.reading import Task as DaskTask
from crystalperf_dask.stacks import PYTHON, SERVICE, shares

Floats = npt.NDArray[np.float64]

PROFILED = "dask.profile"
"""Property of a run whose report has profiler samples."""

AT_ONCE_MS = 100.0
"""Maximum pause between two layers for which the second did not wait for the user's program."""

MAX_STAGES = 50_000
"""Maximum number of tasks for which each task is a stage."""

_RESOURCE = {"transfer": "net", "disk-read": "disk", "disk-write": "disk", "deserialize": "cpu"}


def of_log(log: LogFile) -> Trace:
    """The trace of a run.  Raises InputError."""
    problems = Problems(log.problems)
    known = read(log, problems)
    known.tasks.sort(key=lambda each: (each.start, each.end))
    start = min(known.asked or float("inf"), known.tasks[0].start)
    end = max(known.done or 0.0, max(each.end for each in known.tasks))
    by_task = known.depends is not None and len(known.tasks) <= MAX_STAGES and _stated(known) > 0.9
    stages, edges = _of_tasks(known, start) if by_task else _of_layers(known, start, log.origin, problems)
    of_task = {number: each.stage_id for each, numbers in stages for number in numbers}
    # The ready times of a layer's tasks are unknown, so the reason for idle time before a task is unknown too.
    ready = {each.stage_id: (each.submit_ms or 0.0) if by_task else float("inf") for each, _ in stages}
    tasks, sent = _tasks(known, of_task, ready, start)
    trace = of_rows(
        {
            "app_id": log.app_id,
            "name": log.app_id,
            "framework": "dask",
            "framework_version": known.version,
            "started_at_ms": int(start),
            "duration_ms": end - start,
            "complete": True,
            "properties": {PROFILED: "yes"} if known.icicle else {},
        },
        workers=[_worker(address, each, known.tasks) for address, each in known.workers.items()],
        stages=[each for each, _ in stages],
        tasks=tasks,
        edges=edges,
        scopes=[Scope("graph:1", "graph", 0.0, end - start)] if known.asked is not None else [],
        more_resources=[PYTHON, SERVICE] if known.icicle is not None else [],
        problems=list(problems),
    )
    trace.bounds.slot_ms[:] -= sent
    trace.bounds.outside_ms[:, -1] = sent
    return _with_profile(replace(trace, tasks={**trace.tasks, "slot_ms": trace.bounds.slot_ms}), known)


def _stated(known: Known) -> float:
    return sum(each.key in (known.depends or {}) for each in known.tasks) / len(known.tasks)


# Stages -----------------------------------------------------------------------------------------------------------


def _of_tasks(known: Known, start: float) -> tuple[list[tuple[Stage, list[int]]], list[Edge]]:
    """A stage for each task, in the order of the scheduler's priorities; a rerun task has another stage."""
    depends = known.depends or {}
    ends: dict[str, float] = {}
    ids: list[str] = []
    stages, edges = [], []
    of_prefix: dict[str, int] = defaultdict(int)
    seen: set[int] = set()
    again: set[str] = set()
    last: dict[str, str] = {}
    order = {key: rank for rank, key in enumerate(sorted(known.priority, key=lambda each: known.priority[each]))}
    for number, each in enumerate(known.tasks):
        of_prefix[prefix_of(each.key)] += 1
        ids.append(f"{prefix_of(each.key)}:{of_prefix[prefix_of(each.key)]}")
        if each.key in again:
            seen.add(number)
        again.add(each.key)
    for number in sorted(range(len(ids)), key=lambda one: known.tasks[one].end):
        each = known.tasks[number]
        read = [last[one] for one in depends.get(each.key, ()) if one in last]
        edges += [Edge(one, ids[number], "barrier", "reads it") for one in read]
        ready = max((ends[one] for one in read), default=start)
        if number not in seen:  # for a rerun task, the log has the first ready time only
            ready = max(ready, known.released.get(each.key, ready))
        stages.append((
            Stage(
                ids[number], 1, each.start - start, each.end - start, prefix_of(each.key), call_site=each.key,
                priority=order.get(each.key, len(order)), submit_ms=min(ready, each.start) - start,
                status="failed" if each.failed else "succeeded",
            ),
            [number],
        ))  # fmt: skip
        last[each.key] = ids[number]
        ends[ids[number]] = each.end
    stages.sort(key=lambda each: each[1])
    return stages, edges


def _of_layers(
    known: Known, start: float, origin: str, problems: Problems
) -> tuple[list[tuple[Stage, list[int]]], list[Edge]]:
    """Layers that ran concurrently, as one stage; a layer that began after their end depends on them."""
    layers: dict[str, list[int]] = defaultdict(list)
    for number, each in enumerate(known.tasks):
        layers[layer_of(each.key)].append(number)
    together: list[tuple[float, float, list[str]]] = []
    for name, numbers in sorted(layers.items(), key=lambda item: known.tasks[item[1][0]].start):
        first, last = known.tasks[numbers[0]].start, max(known.tasks[one].end for one in numbers)
        if together and first < together[-1][1]:
            since, until, names = together.pop()
            together.append((since, max(until, last), [*names, name]))
        else:
            together.append((first, last, [name]))
    together = _without_levels(together)
    stages, edges, before, ended = [], [], None, start
    for rank, (first, last, names) in enumerate(together):
        numbers = sorted(number for name in names for number in layers[name])
        times: dict[str, float] = defaultdict(float)
        for one in numbers:
            times[prefix_of(known.tasks[one].key)] += known.tasks[one].end - known.tasks[one].start
        most = sorted(times, key=lambda each: -times[each])
        name = most[0] + (f" and {len(most) - 1} more" if len(most) > 1 else "")
        stage_id = f"layers:{rank}"
        stages.append((
            Stage(stage_id, len(numbers), first - start, last - start, name, io_kinds=", ".join(most[:8]),
                  priority=rank, submit_ms=min(ended, first) - start),
            numbers,
        ))  # fmt: skip
        if before is not None:
            edges.append(Edge(before, stage_id, "barrier", "ended before it began"))
        before, ended = stage_id, last
    if known.depends is None:
        meaning = (
            "a report lacks the dependencies of tasks: layers that ran concurrently count as one, and later layers as"
            " waiting for them; record dependencies with client.dump_cluster_state() while you keep the result"
        )
    else:
        meaning = "the dump lacks too many of the report's tasks, or there are too many tasks: only layers are shown"
    problems.add("no dependencies", "info", origin, None, meaning)
    return stages, edges


def _without_levels(together: list[tuple[float, float, list[str]]]) -> list[tuple[float, float, list[str]]]:
    """Merges layers with the same prefix that follow at once: tasks that one thread ran in turn."""
    found: list[tuple[float, float, list[str]]] = []
    for first, last, names in together:
        if (
            found
            and first - found[-1][1] < AT_ONCE_MS
            and not {*map(prefix_of, names)}.isdisjoint(map(prefix_of, found[-1][2]))
        ):
            since, _, before = found.pop()
            found.append((since, last, [*before, *names]))
        else:
            found.append((first, last, names))
    return found


# Tasks ------------------------------------------------------------------------------------------------------------


def _tasks(
    known: Known, of_task: Mapping[int, str], ready: Mapping[str, float], start: float
) -> tuple[list[Task], Floats]:
    """The tasks, and the ms for which the thread of each was idle until it received the task."""
    cpu = _measured_cpu(known)
    free: dict[str, float] = {}
    following: dict[int, float] = {}
    upcoming: dict[str, float] = {}
    for number in range(len(known.tasks) - 1, -1, -1):
        each = known.tasks[number]
        following[number] = upcoming.get(each.thread, float("inf"))
        upcoming[each.thread] = each.start
    tasks, sent = [], np.zeros(len(known.tasks))
    ran_on = {each.key: each.worker for each in known.tasks}
    depends = known.depends or {}
    for number, each in enumerate(known.tasks):
        before = [one for one in each.around if one[0] != "disk-write"]
        after = [one for one in each.around if one[0] == "disk-write"]
        idle = free.get(each.thread, start)
        held = min([each.start, *(max(one[1], idle) for one in before)])
        launch = min(held, max(idle, ready[of_task[number]] + start)) if each.thread else held
        sent[number] = held - launch
        finish = max([each.end, *(min(one[2], following[number]) for one in after)])
        measured: dict[str, float] = defaultdict(float)
        for resource in ("net", "disk", "cpu"):
            inside = [(max(a, held), min(b, each.start)) for what, a, b in before if _RESOURCE[what] == resource]
            inside += [(max(a, each.end), min(b, finish)) for what, a, b in after if _RESOURCE[what] == resource]
            if (ms := _covered(inside)) > 0:
                measured[resource] += ms
        left = finish - held - sum(measured.values())
        if left < 0:  # fetching and reading back overlapped
            measured = {name: ms * (finish - held) / sum(measured.values()) for name, ms in measured.items()}
        elif (share := cpu.get(prefix_of(each.key))) is not None:
            measured["cpu"] = measured.get("cpu", 0.0) + share * (each.end - each.start)
        read = [one for one in depends.get(each.key, ()) if one in known.nbytes and one in ran_on]
        remote = sum(known.nbytes[one] for one in read if ran_on[one] != each.worker)
        tasks.append(Task(
            number, of_task[number], each.worker, launch - start, finish - start, host=_host(each.worker),
            status="failed" if each.failed else "succeeded", measured_ms=dict(measured),
            remote_read_bytes=remote if each.key in depends else None,
            exchange_write_bytes=known.nbytes.get(each.key),
            starting_ms=sent[number], overhead_ms=sent[number],
        ))  # fmt: skip
        free[each.thread] = max(free.get(each.thread, start), finish)
    return tasks, sent


def _measured_cpu(known: Known) -> dict[str, float]:
    """By prefix, the share of computing time that its threads were on a CPU, measured by the workers."""
    on, off = defaultdict[str, float](float), defaultdict[str, float](float)
    for prefix, activity, seconds in known.metrics:
        if activity == "thread-cpu":
            on[prefix] += seconds
        elif activity == "thread-noncpu":
            off[prefix] += seconds
    return {prefix: on[prefix] / (on[prefix] + off[prefix]) for prefix in on if on[prefix] + off[prefix] > 0}


def _covered(intervals: Sequence[tuple[float, float]]) -> float:
    total, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        if end > max(start, until):
            total += end - max(start, until)
            until = end
    return total


def _worker(address: str, facts: Mapping[str, Any], tasks: Sequence[DaskTask]) -> Worker:
    slots = facts.get("nthreads") or len({each.thread for each in tasks if each.worker == address}) or None
    memory = facts.get("memory_limit") or None
    return Worker(address, slots, host=facts.get("host") or _host(address), memory_bytes=memory)


def _host(address: str) -> str:
    return urlsplit(address).hostname or address


def _with_profile(trace: Trace, known: Known) -> Trace:
    """The trace with unmeasured time attributed to resources by the profiler's samples."""
    if known.icicle is None:
        return trace
    prefixes = [prefix_of(each.key) for each in known.tasks]
    mixture = shares(known.icicle, prefixes)
    names, bounds = trace.names, trace.bounds
    likely = np.zeros_like(bounds.floor_ms)
    rest = np.maximum(bounds.slot_ms - bounds.floor_ms.sum(axis=1), 0.0)
    cpu = _measured_cpu(known)
    for row, prefix in enumerate(prefixes):
        of = dict(mixture.get(prefix) or mixture.get("") or {})
        if not of:
            continue
        # Computing time without measured CPU time was waiting for a CPU, or for Python's lock.
        computing = {name: of[name] for name in ("cpu", PYTHON.name) if of.get(name)}
        for name, share in computing.items():
            part = share / sum(computing.values())
            of[name] = max(share - part * cpu.get(prefix, 0.0), 0.0)
            if name == PYTHON.name:
                measured = part * bounds.floor_ms[row, names.index("cpu")]
                bounds.floor_ms[row, names.index(name)] += measured
                bounds.floor_ms[row, names.index("cpu")] -= measured
        whole = sum(of.values())
        for name, share in of.items():
            if name in names and whole:
                likely[row, names.index(name)] = rest[row] * share / whole
    return replace(trace, bounds=replace(bounds, likely_ms=likely))
