"""SnailTrail's program activity graph of a Spark log, and the critical participation of its activities.

The graph follows spark-parser and pag-construction of github.com/strymon-system/snailtrail:

- A worker is the driver or a thread of an executor.  A message goes from the driver to a thread when a task starts, and
  back when it ends.  The scheduler delay, of which the log has only the sum, is split between the two.
- The driver schedules up to a launch, and waits up to a finish.  A thread computes during a task.
- A gap of a worker waits if a message was sent before it and one received after it, else it is unknown.  A thread
  without tasks has no activities.

Paths do not cross waiting (NSDI 2018, section 3).  All paths of a window are equally likely to be critical:

    CP(e) = N(e) · w(e) / (N · (te - ts))

N(e) of the N paths that cross the window from ts to te have activity e, of duration w(e).  CP sums to 1.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from lab.errors import LabError

DRIVER = "driver"
UNKNOWN = "unknown"
NS_PER_MS = 1_000_000
DELAY_SPLIT = 0.33
"""The share of a task's scheduler delay before its start, as in spark-parser."""

Node = tuple[str, int]
"""A worker and a time, ns."""


@dataclass(frozen=True)
class Task:
    """A task: times of the driver's clock, and durations of the executor, all ns; 0 for no time of fetching results."""

    stage: int
    executor: str
    launch: int
    finish: int
    fetched: int
    ran: int

    @property
    def received(self) -> int:
        """When the driver received its end."""
        return self.fetched or self.finish


@dataclass(frozen=True)
class Activity:
    """An edge of the graph: its ends, what it belongs to (a stage, DRIVER or UNKNOWN), and whether it is a message."""

    source: Node
    target: Node
    of: str
    is_message: bool = False

    @property
    def weight(self) -> int:
        """Its duration, ns."""
        return self.target[1] - self.source[1]


def read(lines: Iterable[str]) -> tuple[list[Task], dict[str, int]]:
    """The tasks of an event log, and the threads of its executors.  Raises LabError."""
    tasks, threads = [], {}
    for line in lines:
        event = json.loads(line)
        if event["Event"] == "SparkListenerExecutorAdded":
            threads[event["Executor ID"]] = int(event["Executor Info"]["Total Cores"])
        elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            tasks.append(_task(event))
    if not tasks:
        raise LabError("the log has no tasks with metrics; choose the event log of a run that did work")
    return sorted(tasks, key=lambda each: each.launch), threads


def _task(event: dict[str, Any]) -> Task:
    info, metrics = event["Task Info"], event["Task Metrics"]
    names = ("Executor Deserialize Time", "Executor Run Time", "Result Serialization Time")
    ran = sum(int(metrics[name]) for name in names)
    launch, finish, fetched = (
        int(info[name]) * NS_PER_MS for name in ("Launch Time", "Finish Time", "Getting Result Time")
    )
    return Task(event["Stage ID"], info["Executor ID"], launch, finish, fetched, ran * NS_PER_MS)


def graph(tasks: Sequence[Task], threads: dict[str, int], split: float = DELAY_SPLIT) -> list[Activity]:
    """All activities between the first launch and the last finish, without waiting.  Raises LabError."""
    begin, end = tasks[0].launch, max(each.finish for each in tasks)
    found = _driver(tasks)
    sent: dict[str, list[tuple[int, int]]] = {
        f"{name}/{n}": [] for name, count in threads.items() for n in range(count)
    }
    for task in tasks:
        start = task.launch + int(split * max(task.received - task.launch - task.ran, 0))
        until = start + task.ran
        free = [each for each in sent if each.startswith(f"{task.executor}/") and _until(sent[each]) < start]
        if not free:
            raise LabError("tasks overlap on the threads of an executor; decrease --delay-split")
        thread = max(free, key=lambda each: _until(sent[each]))
        sent[thread].append((start, until))
        stage = f"stage {task.stage}"
        found.append(Activity((DRIVER, task.launch), (thread, start), stage, is_message=True))
        found.append(Activity((thread, start), (thread, until), stage))
        found.append(Activity((thread, until), (DRIVER, task.received), stage, is_message=True))
    for thread, spans in sent.items():  # between two tasks a thread waits: sent, then received
        gaps = [(begin, spans[0][0]), (spans[-1][1], end)] if spans else []
        found += [Activity((thread, start), (thread, until), UNKNOWN) for start, until in gaps]
    return [each for each in found if each.weight > 0 or each.is_message]


def _until(spans: Sequence[tuple[int, int]]) -> int:
    return spans[-1][1] if spans else -1


def _driver(tasks: Sequence[Task]) -> list[Activity]:
    """The driver's activities: scheduling, and fetching results; the rest of its time is waiting."""
    ends = []
    for task in tasks:
        ends += [(task.launch, DRIVER), (task.received, "")]
        if task.fetched:
            ends.append((task.finish, DRIVER))
    ends.sort(key=lambda each: each[0])
    return [Activity((DRIVER, one[0]), (DRIVER, other[0]), DRIVER) for one, other in pairwise(ends) if other[1]]


def participation(activities: Sequence[Activity]) -> tuple[list[float], int]:
    """CP of each activity, and the number of paths from the first to the last moment.  Raises LabError if there are
    none."""
    begin = min(each.source[1] for each in activities)
    end = max(each.target[1] for each in activities)
    into: dict[Node, list[Node]] = defaultdict(list)
    out: dict[Node, list[Node]] = defaultdict(list)
    for each in activities:
        into[each.target].append(each.source)
        out[each.source].append(each.target)
    try:
        order = list(TopologicalSorter({**into}).static_order())
    except CycleError:
        raise LabError("a task and its messages take no time, so the graph has a cycle; leave such tasks out") from None
    before: dict[Node, int] = {}
    for node in order:
        before[node] = (node[1] == begin) + sum(before[each] for each in into[node])
    after: dict[Node, int] = {}
    for node in reversed(order):
        after[node] = (node[1] == end) + sum(after[each] for each in out[node])
    paths = sum(count for node, count in after.items() if node[1] == begin)
    if not paths:
        raise LabError("no path crosses the window without waiting; another --delay-split may join its activities")
    return [before[a.source] * after[a.target] / paths * a.weight / (end - begin) for a in activities], paths
