"""Job logs of Spark before 1.0 (JobLogger), with the blocked times that Ousterhout et al. added (NSDI 2015).

A log has one job, as text.  First come its description, its stages with their parents and their RDDs; then a line for
each event.  Times of tasks are Unix ms.  Other events have whole seconds in an unknown time zone, which are not used.

    SELECT …
    STAGE_ID=1 RDD_DEP=(3,2) STAGE_DEP=(0,0)        (parent, shuffle)
    STAGE_ID=1 RESULT_STAGE
    RDD_ID=3 MappedRDD NONE map at Query.scala:3 …
    2014/01/01 00:00:00: STAGE_ID=1 STATUS=SUBMITTED TASK_SIZE=2
    2014/01/01 00:00:01: TASK_TYPE=RESULT_TASK STATUS=SUCCESS TID=2 STAGE_ID=1 START_TIME=… READ_BLOCKED_TIME=…

With CRYSTALPERF_BLOCKED_TIME=hide, the reader leaves out the blocked times, which usual logs of Spark do not have.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from crystalperf.plugin import (
    Edge,
    Framework,
    Head,
    InputError,
    LogFile,
    LogPart,
    Problems,
    Reader,
    Scope,
    Stage,
    Task,
    Trace,
    Vocabulary,
    Worker,
    lines,
    of_rows,
)

HIDE = "CRYSTALPERF_BLOCKED_TIME"
"""Environment variable: `hide` leaves out the blocked times."""

BLOCKED_MS = {
    "READ_BLOCKED_TIME": 1e-6, "READ_TIME_NANOS": 1e-6, "OUTPUT_WRITE_BLOCKED_NANOS": 1e-6, "LOCAL_READ_TIME": 1.0,
}  # fmt: skip
"""Fields of tasks that only this instrumentation measures, and their units in ms: time blocked on a disk."""

NEEDED = ("EXECUTOR_RUN_TIME", "STAGE_ID", "START_TIME", "FINISH_TIME")
"""Fields without which a task is left out."""

OVERLAP = 0.01
"""Share of an executor's time with more tasks than slots: the driver notes some ends after the next task's launch."""

_FACT = re.compile(r"(\w+)=(\S*)")
_STAGE = re.compile(r"STAGE_ID=(\d+) (?:RDD_DEP|RESULT_STAGE|MAP_STAGE)")
_EVENT = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d: (JOB_ID|STAGE_ID|TASK_TYPE)=")
_RDD = re.compile(r"RDD_ID=\d+ \w+ \w+ (.+ at \S+:\d+)")

_STATUS: dict[str, Literal["failed", "unfinished"]] = {
    "FAILED": "failed", "SUBMITTED": "unfinished", "STARTED": "unfinished",
}  # fmt: skip

Facts = dict[str, str]


@dataclass
class Log:
    """The content of a log; `parents`, `names` and `states` are by stage, in the order of the log."""

    description: str = ""
    job: str = "0"
    parents: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    tasks: list[Facts] = field(default_factory=list)
    states: Facts = field(default_factory=dict)
    state: str = "STARTED"


def recognise(head: Head) -> LogPart | None:
    """Recognises a log by its lines about stages and events."""
    found = [line.strip() for line in head.text.decode("utf-8", "replace").split("\n")]
    if not any(_STAGE.match(line) or ("TASK_TYPE=" in line and _EVENT.match(line)) for line in found):
        return None
    name = None if _STAGE.match(found[0]) or _EVENT.match(found[0]) else found[0]
    return LogPart(
        head.part,
        head.folder,
        head.name,
        head.size,
        app_id=re.sub(r"\W+", "-", head.name.rpartition("/")[2]),
        app_name=name,
    )


def read(log: LogFile) -> Trace:
    """The trace of a log.  Raises InputError if no task has both its times."""
    problems = Problems(log.problems)
    found = _content(log, problems)
    if not found.tasks:
        raise InputError(f"{log.origin}: holds no task that ended; give the log of a job that ran")
    start = min(int(each["START_TIME"]) for each in found.tasks)
    end = max(int(each["FINISH_TIME"]) for each in found.tasks)
    in_order = sorted(found.tasks, key=lambda each: int(each["START_TIME"]))
    tasks = [_task(number, each, start) for number, each in enumerate(in_order)]
    slots = _slots(tasks)
    problems.add("slots unknown", "info", log.origin, None, "the log has no slots: they are the concurrent tasks")
    ran = [stage for stage in reversed(found.parents) if any(each.stage_id == _id(stage) for each in tasks)]
    return of_rows(
        {
            "app_id": log.app_id,
            "name": found.description or f"job {found.job}",
            "framework": "joblogger",
            "started_at_ms": start,
            "duration_ms": float(end - start),
            "complete": found.state != "STARTED",
        },
        workers=[Worker(name, count, host=name.partition(" ")[2]) for name, count in slots.items()],
        stages=[_stage(rank, stage, found, tasks) for rank, stage in enumerate(ran)],
        tasks=tasks,
        edges=[
            Edge(_id(parent), _id(stage), "barrier", "shuffle")
            for stage in ran
            for parent in found.parents[stage]
            if parent in ran
        ],
        scopes=[
            Scope(f"job:{found.job}", "job", 0.0, float(end - start), status=_STATUS.get(found.state, "succeeded"))
        ],
        problems=list(problems),
    )


def _content(log: LogFile, problems: Problems) -> Log:
    found, stage = Log(), ""
    for number, line in enumerate((each.decode("utf-8", "replace") for each in lines(log, problems)), 1):
        facts, text = dict(_FACT.findall(line)), line.strip()
        if event := _EVENT.match(text):
            if event[1] == "TASK_TYPE":
                _add(found, facts, f"line {number}", log.origin, problems)
            elif event[1] == "JOB_ID":
                found.job, found.state = facts["JOB_ID"], facts.get("STATUS", "")
            else:
                found.states[facts["STAGE_ID"]] = facts.get("STATUS", "")
        elif about := _STAGE.match(text):
            stage = about[1]
            parents = re.findall(r"\((\d+),\d+\)", facts.get("STAGE_DEP", ""))
            found.parents.setdefault(stage, []).extend(parents)
        elif rdd := _RDD.match(text):
            found.names.setdefault(stage, rdd[1])
        elif number == 1:
            found.description = text
    return found


def _add(found: Log, facts: Facts, where: str, origin: str, problems: Problems) -> None:
    """Add a task, or a problem if its line lacks a stage or times, as those of failed tasks do."""
    run, stage, start, end = (_whole(facts, name) for name in NEEDED)
    if run is None or stage is None or start is None or end is None or end < start:
        problems.add("task without times", "data loss", origin, where, "a task without its times is left out")
        return
    found.parents.setdefault(facts["STAGE_ID"], [])
    found.tasks.append(facts)


def _id(stage: str) -> str:
    return f"stage:{stage}"


def _whole(facts: Facts, name: str) -> int | None:
    return int(facts[name]) if facts.get(name, "").isdigit() else None


def _ms(facts: Facts, name: str, unit: float = 1.0) -> float:
    return (_whole(facts, name) or 0) * unit


def _task(number: int, facts: Facts, start: int) -> Task:
    launch, finish = float(facts["START_TIME"]) - start, float(facts["FINISH_TIME"]) - start
    run = min(float(facts["EXECUTOR_RUN_TIME"]), finish - launch)
    gc = min(_ms(facts, "GC_TIME"), run)
    fetch = min(_ms(facts, "REMOTE_FETCH_WAIT_TIME"), run - gc)
    blocked = 0.0 if os.environ.get(HIDE) == "hide" else sum(_ms(facts, *each) for each in BLOCKED_MS.items())
    disk = min(blocked, run - gc - fetch)
    write = min(_ms(facts, "SHUFFLE_WRITE_TIME", 1e-6), run - gc - fetch - disk)
    host = facts.get("HOST", "unknown")
    return Task(
        number, _id(facts["STAGE_ID"]), f"{facts.get('EXECUTOR_ID', '?')} {host}", launch, finish, host=host,
        status="succeeded" if facts.get("STATUS") == "SUCCESS" else "failed", input_bytes=_input(facts),
        remote_read_bytes=_whole(facts, "REMOTE_BYTES_READ"), local_read_bytes=_whole(facts, "LOCAL_READ_BYTES"),
        exchange_write_bytes=_whole(facts, "SHUFFLE_BYTES_WRITTEN"), own_ms=run,
        fetch_wait_ms=fetch if "REMOTE_FETCH_WAIT_TIME" in facts else None,
        measured_ms={"cpu": gc, "net": fetch, "disk": disk}, likely_ms={"disk": write},
    )  # fmt: skip


def _input(facts: Facts) -> int | None:
    """Bytes read from files, compressed if the log says so; 0 for those read from memory."""
    if facts.get("READ_METHOD") == "Memory":
        return 0
    return _whole(facts, "INPUT_BYTES_RAW" if "INPUT_BYTES_RAW" in facts else "INPUT_BYTES")


def _slots(tasks: list[Task]) -> dict[str, int]:
    """The slots of each executor: so many that it ran more tasks for at most OVERLAP of its busy time."""
    moments: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for each in tasks:
        moments[each.worker_id] += [(each.launch_ms, 1), (each.finish_ms, -1)]
    return {worker: _width(sorted(moments[worker])) for worker in sorted(moments)}


def _width(moments: list[tuple[float, int]]) -> int:
    lasting: dict[int, float] = defaultdict(float)  # by the number of concurrent tasks
    running = 0
    for (at, step), (after, _) in pairwise(moments):
        running += step
        lasting[running] += after - at
    busy, above = sum(ms for count, ms in lasting.items() if count), 0.0
    for count in sorted(lasting, reverse=True):
        above += lasting[count]
        if above > OVERLAP * busy:
            return max(count, 1)
    return 1


def _stage(rank: int, stage: str, found: Log, tasks: list[Task]) -> Stage:
    mine = [each for each in tasks if each.stage_id == _id(stage)]
    return Stage(
        _id(stage), len(mine), min(each.launch_ms for each in mine), max(each.finish_ms for each in mine),
        found.names.get(stage), scope_id=f"job:{found.job}", priority=rank,
        status=_STATUS.get(found.states.get(stage, ""), "succeeded"),
    )  # fmt: skip


JOBLOGGER = Framework(
    name="joblogger",
    title="Spark before 1.0",
    reader=Reader(recognise=recognise, read=read),
    vocabulary=Vocabulary(
        worker="executor",
        scope="job",
        scopes=("job",),
        settings={"executors": "workers", "slots": "cores"},
        log="a job log of Spark before 1.0",
        log_hint="give a file that Spark's JobLogger wrote",
    ),
)
