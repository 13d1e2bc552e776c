"""Events of a made run of a streaming query whose batches take exactly FIXED_MS and ROW_MS for each row.

A batch runs two stages on two slots: one of two tasks that reads rows, and one of PARTITIONS tasks that keeps state, in
two waves.  Times are in ms since START.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.spark_events import START, Event, event, executor

PARTITIONS = 4
READ_MS, STATE_MS, REST_MS = 20.0, 30.0, 100.0
READ_ROW_MS, STATE_ROW_MS = 0.02, 0.04
"""Time of one task without rows, and of all tasks of a stage for a row; time of a batch outside of its stages."""

FIXED_MS = REST_MS + READ_MS + 2 * STATE_MS
ROW_MS = READ_ROW_MS / 2 + STATE_ROW_MS / 2
FIRST_MS = 5_000
QUERY = "clicks"


def batch_ms(rows: float) -> float:
    return FIXED_MS + ROW_MS * rows


def run(rows: Sequence[int], interval_ms: int = 1000, **changes: Any) -> list[Event]:
    """A run with batches of these rows; `changes` are fields of each progress."""
    found = [
        event("LogStart", Spark_Version="4.0.1"),
        event("ApplicationStart", App_Name="made", App_ID="app-stream", Timestamp=START),
        event("EnvironmentUpdate", Spark_Properties={"spark.sql.shuffle.partitions": str(PARTITIONS)}),
        executor("1", 1000),
    ]
    for number, count in enumerate(rows):
        found += _batch(number, FIRST_MS + number * interval_ms, count, changes)
    return [*found, event("ApplicationEnd", Timestamp=START + FIRST_MS + len(rows) * interval_ms + 5_000)]


def _batch(number: int, at_ms: int, rows: int, changes: dict[str, Any]) -> list[Event]:
    whole = batch_ms(rows)
    text = datetime.fromtimestamp((START + at_ms) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    durations = {
        "triggerExecution": whole, "latestOffset": 5, "queryPlanning": 15, "getBatch": 1, "walCommit": 25,
        "commitOffsets": 20, "addBatch": whole - 70,
    }  # fmt: skip
    state = {
        "operatorName": "stateStoreSave", "numRowsTotal": 7 * number, "memoryUsedBytes": 512, "numRowsUpdated": rows,
        "allUpdatesTimeMs": 40, "numRowsRemoved": 1, "allRemovalsTimeMs": 2, "commitTimeMs": 60,
        "numRowsDroppedByWatermark": 3, "numShufflePartitions": PARTITIONS,
        "customMetrics": {"rocksdbPutLatency": 9, "rocksdbCommitFlushLatency": 11, "rocksdbBytesCopied": 4096},
    }  # fmt: skip
    source = {"description": "RateStreamV2", "numInputRows": rows, "inputRowsPerSecond": float(rows)}
    source["processedRowsPerSecond"] = 1e3 * rows / whole
    progress = {
        "id": "q-1", "runId": "r-1", "name": QUERY, "timestamp": text, "batchId": number, "durationMs": durations,
        "stateOperators": [state], "sources": [source], "sink": {"description": "noop"}, **changes,
    }  # fmt: skip
    first = 2 * number
    infos = [_stage(first, 2, []), _stage(first + 1, PARTITIONS, [first])]
    start = at_ms + 50
    found = [
        event(
            "JobStart", Job_ID=number, Submission_Time=START + start, Stage_Infos=infos, Stage_IDs=[first, first + 1],
            Properties={"spark.jobGroup.id": "r-1"},
        )
    ]  # fmt: skip
    read_ms, state_ms = READ_MS + READ_ROW_MS * rows / 2, STATE_MS + STATE_ROW_MS * rows / PARTITIONS
    found += _ran(infos[0], start, [(0.0, read_ms)] * 2)
    start += round(read_ms)
    found += _ran(infos[1], start, [(wave * state_ms, state_ms) for wave in (0, 0, 1, 1)])
    ended = {"Job_ID": number, "Completion_Time": START + start + round(2 * state_ms)}
    return [
        *found,
        event("JobEnd", **ended, Job_Result={"Result": "JobSucceeded"}),
        {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent", "progress": progress},
    ]


def _stage(stage: int, tasks: int, parents: list[int]) -> dict[str, Any]:
    rdds = [{"RDD ID": stage, "Name": "MapPartitionsRDD", "Number of Partitions": tasks}]
    return {
        "Stage ID": stage, "Stage Attempt ID": 0, "Stage Name": "start at Job.scala:1", "Parent IDs": parents,
        "Number of Tasks": tasks, "RDD Info": rdds,
    }  # fmt: skip


def _ran(info: dict[str, Any], start_ms: float, tasks: Sequence[tuple[float, float]]) -> list[Event]:
    stage, begun = info["Stage ID"], {**info, "Submission Time": START + start_ms}
    found, last = [event("StageSubmitted", Stage_Info=begun)], 0.0
    for place, (after_ms, ms) in enumerate(tasks):
        launch, finish = START + round(start_ms + after_ms), START + round(start_ms + after_ms + ms)
        task = {
            "Task ID": 10 * stage + place, "Index": place, "Attempt": 0, "Partition ID": place, "Launch Time": launch,
            "Executor ID": "1", "Host": "host1", "Speculative": False, "Getting Result Time": 0, "Finish Time": finish,
        }  # fmt: skip
        metrics = {"Executor Run Time": finish - launch, "Executor CPU Time": (finish - launch) * 900_000}
        ids = {"Stage_ID": stage, "Stage_Attempt_ID": 0}
        found += [
            event("TaskStart", **ids, Task_Info={**task, "Finish Time": 0}),
            event("TaskEnd", **ids, Task_End_Reason={"Reason": "Success"}, Task_Info=task, Task_Metrics=metrics),
        ]
        last = max(last, finish)
    return [*found, event("StageCompleted", Stage_Info={**begun, "Completion Time": last})]


def written(folder: Path, events: Sequence[Event]) -> Path:
    """The log of these events."""
    path = folder / "log"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in events), encoding="utf-8")
    return path
