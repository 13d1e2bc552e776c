"""Support for Ray in CrystalPerf: the file that `ray timeline` or `ray.timeline(FILE)` writes.

It is a list of events of Chrome's trace format, with times in microseconds, in any order:

    {"cat": "task::fetch", "pid": "10.0.0.1", "tid": "worker:7d85…", "ts": 1, "dur": 9, "args": {"task_id": "18b2…"}, …}
    {"cat": "task:deserialize_arguments", "pid": "10.0.0.1", "tid": "worker:7d85…", "ts": 2, "dur": 1, …}

`pid` is a node and `tid` a process.  The file has neither the dependencies of tasks nor the CPUs of nodes: functions
whose tasks ran concurrently are one stage, later ones wait for it, and a node has as many CPUs as it ever had tasks.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

from crystalperf.plugin import (
    Edge,
    Framework,
    Head,
    InputError,
    LogFile,
    LogPart,
    Problems,
    Reader,
    Resource,
    Stage,
    Task,
    Trace,
    Vocabulary,
    Worker,
    of_rows,
    pieces,
)

_PROCESS = re.compile(rb'"tid": ?"(?:worker|driver):[0-9a-f]{20,}"')

SERVICE = Resource("service", "remote service", "service", "speed", shared_by="nobody")
"""The server that tasks wait for in a span of the user, `with ray._private.profiling.profile("service")`."""

RESOURCES = {
    **{name: name for name in ("service", "cpu", "disk", "net")},  # spans of the user with the name of a resource
    "task:deserialize_arguments": "cpu",  # Ray has fetched them before
    "task:store_outputs": "cpu",  # copies them to memory of the node
}
"""Resources of spans and phases within a task; what else a task did is unknown."""


def recognise(head: Head) -> LogPart | None:
    """Recognises a timeline by Ray's names of processes."""
    if not head.text.lstrip().startswith(b"[") or not _PROCESS.search(head.text):
        return None
    app_id = re.sub(r"\.json(\.\w+)?$", "", head.name)
    return LogPart(head.part, head.folder, head.name, head.size, app_id=app_id)


def read(log: LogFile) -> Trace:
    """The trace of a timeline.  Raises InputError if it has no task."""
    problems = Problems(log.problems)
    tasks = _tasks(list(_events(log, problems)), log.origin, problems)
    if not tasks:
        raise InputError(f"{log.origin}: holds no task; write it after the tasks, with ray.timeline(FILE)")
    start, end = tasks[0].launch_ms, max(each.finish_ms for each in tasks)
    stages, edges = _stages(tasks, start)
    meaning = "a timeline lacks dependencies: functions that ran concurrently are one step, for which later ones wait"
    problems.add("no dependencies", "info", log.origin, None, meaning)
    of_name = {name: stage.stage_id for stage, names in stages for name in names}
    return of_rows(
        {"app_id": log.app_id, "name": log.app_id, "framework": "ray", "started_at_ms": int(start),
         "duration_ms": end - start},
        workers=[Worker(node, _slots(node, tasks), host=node) for node in sorted({each.worker_id for each in tasks})],
        stages=[each for each, _ in stages],
        tasks=[
            replace(each, task_id=number, stage_id=of_name[each.stage_id], launch_ms=each.launch_ms - start,
                    finish_ms=each.finish_ms - start)
            for number, each in enumerate(tasks)
        ],
        edges=edges,
        more_resources=[SERVICE],
        problems=list(problems),
    )  # fmt: skip


def _events(log: LogFile, problems: Problems) -> Iterator[Mapping[str, Any]]:
    """The events with a duration; of a damaged file, those before the damage."""
    text = b"".join(pieces(log.parts[0], problems)).decode("utf-8", errors="replace")
    found: list[Any] = []
    for whole in (text, text[: text.rfind("}, {") + 1] + "]"):
        try:
            found = json.loads(whole)
            break
        except ValueError:
            problems.add("damaged timeline", "error", log.origin, None, "the file is not JSON, or ends within an event")
    yield from (each for each in found if "dur" in each and isinstance(each.get("tid"), str))


def _tasks(events: Sequence[Mapping[str, Any]], origin: str, problems: Problems) -> list[Task]:
    """The tasks with their phases and spans, times in ms since the epoch, and functions in place of stages."""
    of_process: dict[str, list[Task]] = defaultdict(list)
    meaning = "calls of actors are left out: an actor runs them in its own process, whatever CPUs are free"
    for event in sorted(events, key=lambda each: each["ts"]):
        if event["cat"].startswith("task::"):
            if event["args"]["task_id"][16:40].strip("f"):  # an actor's, whose id follows that of the call
                problems.add("actors", "info", origin, None, meaning)
                continue
            name, since = event["cat"].removeprefix("task::"), event["ts"] / 1000
            of_process[event["tid"]].append(
                Task(0, name, event["pid"], since, since + event["dur"] / 1000, host=event["pid"], likely_ms={})
            )
    for event in events:
        mine, since, ms = of_process.get(event["tid"], []), event["ts"] / 1000, event["dur"] / 1000
        place = bisect_right(mine, since, key=lambda each: each.launch_ms) - 1
        name = RESOURCES.get(event["cat"])
        if name and place >= 0 and since < mine[place].finish_ms:
            likely = mine[place].likely_ms
            mine[place] = replace(mine[place], likely_ms={**likely, name: likely.get(name, 0.0) + ms})
    return sorted((each for mine in of_process.values() for each in mine), key=lambda each: each.launch_ms)


def _slots(node: str, tasks: Sequence[Task]) -> int:
    """The most tasks that ran on a node at a time."""
    mine = [each for each in tasks if each.worker_id == node]
    moments = sorted([(each.launch_ms, 1) for each in mine] + [(each.finish_ms, -1) for each in mine])
    return max(accumulate(step for _, step in moments))


def _stages(tasks: Sequence[Task], start: float) -> tuple[list[tuple[Stage, list[str]]], list[Edge]]:
    """Stages and their functions, in order; each waits for the one before."""
    spans: dict[str, tuple[float, float]] = {}
    for each in tasks:
        since, until = spans.get(each.stage_id, (each.launch_ms, each.finish_ms))
        spans[each.stage_id] = (since, max(until, each.finish_ms))
    together: list[tuple[float, float, list[str]]] = []
    for name, (since, until) in spans.items():
        first, last, names = together.pop() if together and since < together[-1][1] else (since, until, [])
        together.append((first, max(last, until), [*names, name]))
    counts, ended, stages = Counter(each.stage_id for each in tasks), start, []
    for rank, (since, until, names) in enumerate(together):
        name = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        times = {"first_launch_ms": since - start, "end_ms": until - start, "submit_ms": ended - start}
        count = sum(counts[each] for each in names)
        stages.append((Stage(f"functions:{rank}", count, name=name, priority=rank, **times), names))
        ended = until
    ids = [each.stage_id for each, _ in stages]
    return stages, [Edge(one, other, "barrier", "ended before it began") for one, other in pairwise(ids)]


RAY = Framework(
    name="ray",
    title="Ray",
    reader=Reader(recognise=recognise, read=read, resolution_ms=1.0),
    vocabulary=Vocabulary(
        worker="node",
        slot="CPU",
        stage="step",
        driver_work="submitting tasks and fetching results",
        settings={"nodes": "workers", "cpus": "cores"},
        exchanged_data="results of other tasks",
        log="a timeline of Ray",
        log_hint='give the file of ray.timeline("timeline.json")',
    ),
)
