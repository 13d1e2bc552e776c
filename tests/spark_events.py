"""Events of a made Spark run as values that a test can change: jobs of one stage each, whose tasks fill waves of slots.

Two executors of two slots; every task takes 2 s, 80 % of it on the CPU.  Times are in ms since START.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

START = 1_700_000_000_000
TASK_MS = 2000
SLOTS = 4

Event = dict[str, Any]

_TIMES = {"Launch Time", "Finish Time", "Submission Time", "Completion Time", "Timestamp"}


def event(kind: str, **fields: Any) -> Event:
    """An event; names of fields have underscores instead of blanks."""
    return {"Event": f"SparkListener{kind}", **{name.replace("_", " "): value for name, value in fields.items()}}


def executor(name: str, added_ms: int, cores: int = 2, profile: int = 0) -> Event:
    info = {"Host": f"host{name}", "Total Cores": cores, "Resource Profile Id": profile}
    return event("ExecutorAdded", Timestamp=START + added_ms, Executor_ID=name, Executor_Info=info)


def run(jobs: int = 3, waves: int = 3) -> list[Event]:
    """A run of `jobs` jobs, 0.5 s apart, from 2 s on."""
    found = [
        event("LogStart", Spark_Version="3.5.1"),
        event("ApplicationStart", App_Name="made", App_ID="application_1_1", Timestamp=START),
        executor("1", 1000),
        executor("2", 1000),
    ]
    now = 2000
    for job in range(jobs):
        found += _job(job, now, waves)
        now += waves * (TASK_MS + 10) + 510
    return [*found, event("ApplicationEnd", Timestamp=START + now)]


def _job(job: int, now: int, waves: int) -> list[Event]:
    tasks = waves * SLOTS
    rdds = [{"RDD ID": job, "Name": "MapPartitionsRDD", "Number of Partitions": tasks, "Barrier": False}]
    info = {"Stage ID": job, "Stage Attempt ID": 0, "Stage Name": f"count at A.scala:{job}", "Parent IDs": []}
    info |= {"Number of Tasks": tasks, "RDD Info": rdds}
    begun = {**info, "Submission Time": START + now + 5}
    found = [
        event("JobStart", Job_ID=job, Submission_Time=START + now, Stage_Infos=[info], Stage_IDs=[job], Properties={}),
        event("StageSubmitted", Stage_Info=begun),
    ]
    now += 10
    for wave in range(waves):
        infos = [_task(job * tasks + wave * SLOTS + slot, wave * SLOTS + slot, slot, now) for slot in range(SLOTS)]
        found += [
            event("TaskStart", Stage_ID=job, Stage_Attempt_ID=0, Task_Info={**each, "Finish Time": 0}) for each in infos
        ]
        found += [_end(job, each) for each in infos]
        now += TASK_MS + 10
    return [
        *found,
        event("StageCompleted", Stage_Info={**begun, "Completion Time": START + now}),
        event("JobEnd", Job_ID=job, Completion_Time=START + now + 5, Job_Result={"Result": "JobSucceeded"}),
    ]


def _task(number: int, partition: int, slot: int, launch_ms: int) -> dict[str, Any]:
    name = str(slot // 2 + 1)
    return {
        "Task ID": number,
        "Index": partition,
        "Attempt": 0,
        "Partition ID": partition,
        "Launch Time": START + launch_ms,
        "Executor ID": name,
        "Host": f"host{name}",
        "Speculative": False,
        "Getting Result Time": 0,
        "Finish Time": START + launch_ms + TASK_MS,
    }


def _end(job: int, info: dict[str, Any]) -> Event:
    run_ms = TASK_MS - 10
    metrics = {
        "Executor Deserialize Time": 5,
        "Executor Run Time": run_ms,
        "Executor CPU Time": run_ms * 800_000,
        "JVM GC Time": 0,
        "Result Serialization Time": 0,
        "Input Metrics": {"Bytes Read": 1 << 20, "Records Read": 100},
    }
    reason = {"Reason": "Success"}
    fields = {"Stage_ID": job, "Stage_Attempt_ID": 0, "Task_End_Reason": reason, "Task_Info": info}
    return event("TaskEnd", **fields, Task_Metrics=metrics)


# Changes --------------------------------------------------------------------------------------------------------------


def stepped(value: Any, at_ms: int, by_ms: int) -> Any:
    """Events, or a part of one, with the driver's clock set by `by_ms` at a time: all later times change."""
    if isinstance(value, list):
        return [stepped(each, at_ms, by_ms) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: each + by_ms if key in _TIMES and each - START >= at_ms else stepped(each, at_ms, by_ms)
        for key, each in value.items()
    }


def changed(events: Sequence[Event], kind: str, place: int, key: str, change: Callable[[Any], Any]) -> list[Event]:
    """The events with a field of the one at a place among those of a kind changed."""
    found = copy.deepcopy(list(events))
    one = [each for each in found if each["Event"] == f"SparkListener{kind}"][place]
    holder = next((one[part] for part in ("Task Info", "Stage Info") if part in one), one)
    holder[key] = change(holder.get(key))
    return found


def without(events: Sequence[Event], *kinds: str) -> list[Event]:
    """The events that are not of some kinds."""
    return [each for each in events if each["Event"].removeprefix("SparkListener") not in kinds]


def with_late_tasks(events: Sequence[Event], stage: int, late_ms: int) -> list[Event]:
    """The events with all from the first launch of a stage on later, and the stage's submission as it was."""
    submitted = next(
        each["Stage Info"]["Submission Time"]
        for each in events
        if each["Event"] == "SparkListenerStageSubmitted" and each["Stage Info"]["Stage ID"] == stage
    )
    found: list[Event] = stepped(list(events), submitted - START + 1, late_ms)
    return found


def write(path: Path, events: Sequence[Event], *, compact: bool = True) -> Path:
    """A log of these events, as Spark writes them, or with blanks as `json.dumps` does."""
    blanks = (",", ":") if compact else (", ", ": ")
    path.write_text("".join(f"{json.dumps(each, separators=blanks)}\n" for each in events), encoding="utf-8")
    return path
