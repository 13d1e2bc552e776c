"""Generate an event log of any size: `python -m lab.costs.made_log --tasks 1000000 -o big.log` writes about 1.5 GB.

It has the format of Spark 3.5, of one application whose queries run one after the other on a cluster of fixed size.
Jobs have two or three stages with barriers between them, and tasks run in waves with realistic skew.  One task in a
hundred fails and is retried, stragglers have a speculative copy, and sometimes an output is lost with its executor, so
that its stage runs again.  The same seed gives the same bytes; the log is not of a real run.
"""

from __future__ import annotations

import argparse
import heapq
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TextIO

START_MS = 1_767_225_600_000
_FAILED = 0.01
_STRAGGLER = 0.002
_STAGE_AGAIN = 0.05
_LARGEST_STAGE = 20_000

_HEAD = '"Stage ID":%d,"Stage Attempt ID":%d,'
_INFO = (
    '"Task Info":{"Task ID":%d,"Index":%d,"Attempt":%d,"Partition ID":%d,"Launch Time":%d,"Executor ID":"%d",'
    '"Host":"node%03d.example.org","Locality":"%s","Speculative":%s,"Getting Result Time":0,"Finish Time":%d,'
    '"Failed":%s,"Killed":%s,"Accumulables":[]}'
)
_METRICS = (
    '"Task Metrics":{"Executor Deserialize Time":%d,"Executor Deserialize CPU Time":%d,"Executor Run Time":%d,'
    '"Executor CPU Time":%d,"Peak Execution Memory":%d,"Result Size":%d,"JVM GC Time":%d,'
    '"Result Serialization Time":0,"Memory Bytes Spilled":0,"Disk Bytes Spilled":0,"Shuffle Read Metrics":'
    '{"Remote Blocks Fetched":%d,"Local Blocks Fetched":%d,"Fetch Wait Time":%d,"Remote Bytes Read":%d,'
    '"Remote Bytes Read To Disk":0,"Local Bytes Read":%d,"Total Records Read":%d},"Shuffle Write Metrics":'
    '{"Shuffle Bytes Written":%d,"Shuffle Write Time":%d,"Shuffle Records Written":%d},"Input Metrics":'
    '{"Bytes Read":%d,"Records Read":%d},"Output Metrics":{"Bytes Written":0,"Records Written":0},'
    '"Updated Blocks":[]}'
)
_SUCCESS = '{"Reason":"Success"}'
_EXCEPTION = (
    '{"Reason":"ExceptionFailure","Class Name":"java.io.IOException","Description":"Connection reset by peer",'
    '"Stack Trace":[],"Full Stack Trace":"java.io.IOException: Connection reset by peer\\n\\tat'
    ' org.apache.spark.network.client.TransportClient.fetch(TransportClient.java:1)","Accumulator Updates":[]}'
)
_KILLED = '{"Reason":"TaskKilled","Kill Reason":"another attempt succeeded","Accumulator Updates":[]}'


class Attempt(NamedTuple):
    """One task attempt that was placed on a slot; times in ms since the application's start."""

    task_id: int
    partition: int
    attempt: int
    executor: int
    launch: int
    finish: int
    status: str
    speculative: bool


class Plan(NamedTuple):
    """A stage to write: its id and attempt, its input, and the slots' free times, which all stages share."""

    stage_id: int
    attempt: int
    tasks: int
    scans: bool
    parents: tuple[int, ...]
    kind: str


def _event(name: str, **fields: Any) -> str:
    return json.dumps({"Event": name, **fields}, separators=(",", ":"))


def _stage_info(plan: Plan, times: dict[str, int]) -> dict[str, Any]:
    first = "FileScanRDD" if plan.scans else "ShuffledRowRDD"
    rdds = [
        {
            "RDD ID": 10 * plan.stage_id + number,
            "Name": name,
            "Scope": json.dumps({"id": str(number), "name": scope}),
            "Callsite": "save at Report.scala:41",
            "Parent IDs": [10 * plan.stage_id + number + 1] if number < 2 else [],
            "Storage Level": {"Use Disk": False, "Use Memory": False, "Deserialized": False, "Replication": 1},
            "Number of Partitions": plan.tasks,
            "Number of Cached Partitions": 0,
        }
        for number, (name, scope) in enumerate(
            (
                ("MapPartitionsRDD", "Exchange"),
                ("MapPartitionsRDD", "WholeStageCodegen (1)"),
                (first, "Scan parquet" if plan.scans else "Exchange"),
            )
        )
    ]
    return {
        "Stage ID": plan.stage_id,
        "Stage Attempt ID": plan.attempt,
        "Stage Name": "save at Report.scala:41",
        "Number of Tasks": plan.tasks,
        "RDD Info": rdds,
        "Parent IDs": list(plan.parents),
        "Details": "org.example.Report$.main(Report.scala:41)",
        **times,
        "Accumulables": [],
        "Resource Profile Id": 0,
    }


def _placed(random: Random, plan: Plan, ready: int, slots: list[tuple[int, int]], task_id: int) -> list[Attempt]:
    """The attempts of a stage's tasks, each on the slot that is free first; `slots` is a heap of (free, executor)."""
    typical = random.uniform(200, 4000)
    waiting = [(index, 0) for index in range(plan.tasks)]
    waiting.reverse()
    found = []
    while waiting:
        index, attempt = waiting.pop()
        free, executor = heapq.heappop(slots)
        launch = max(free, ready) + random.randrange(1, 8)
        length = int(typical * random.lognormvariate(0.0, 0.45)) + 20
        if random.random() < _STRAGGLER:
            # A copy ends first, and the straggler is killed.
            finish = launch + 6 * length
            found.append(Attempt(task_id, index, attempt, executor, launch, finish, "killed", False))
            other_free, other = heapq.heappop(slots)
            begin = max(other_free, launch + 2 * length)
            found.append(Attempt(task_id + 1, index, attempt + 1, other, begin, finish - 5, "good", True))
            heapq.heappush(slots, (finish - 5, other))
            task_id += 2
        else:
            status = "failed" if random.random() < _FAILED and attempt < 3 else "good"
            finish = launch + (length // 3 if status == "failed" else length)
            found.append(Attempt(task_id, index, attempt, executor, launch, finish, status, False))
            task_id += 1
            if status == "failed":
                waiting.append((index, attempt + 1))
        heapq.heappush(slots, (finish, executor))
    return found


def _start(plan: Plan, each: Attempt) -> str:
    info = _INFO % (*_who(each, plan), 0, "false", "false")
    return '{"Event":"SparkListenerTaskStart",' + _HEAD % (plan.stage_id, plan.attempt) + info + "}"


def _who(each: Attempt, plan: Plan) -> tuple[object, ...]:
    locality = "NODE_LOCAL" if plan.scans else "PROCESS_LOCAL"
    speculative = "true" if each.speculative else "false"
    task = (each.task_id, each.partition, each.attempt, each.partition)
    return (*task, START_MS + each.launch, each.executor, each.executor // 2, locality, speculative)


def _end(random: Random, plan: Plan, each: Attempt) -> str:
    reason = {"good": _SUCCESS, "failed": _EXCEPTION, "killed": _KILLED}[each.status]
    bad = [str(each.status == what).lower() for what in ("failed", "killed")]
    run = max(each.finish - each.launch - random.randrange(4, 18), 1)
    deserialize = min(random.randrange(2, 12), run)
    run -= deserialize
    size = int(run * random.uniform(20_000, 60_000))
    read = (0, 0, 0, 0, 0, 0)
    waited = 0
    if not plan.scans:
        waited = int(run * random.random() * 0.4)
        read = (180, 20, waited, int(size * 0.9), int(size * 0.1), size // 80)
    metrics = _METRICS % (
        deserialize,
        deserialize * 700_000,
        run,
        int((run - waited) * random.uniform(0.6, 0.95) * 1e6),
        size * 2,
        random.randrange(2000, 5000),
        int(run * random.random() * 0.05),
        *read,
        size // 5,
        int(run * random.random() * 0.03 * 1e6),
        size // 400,
        size if plan.scans else 0,
        size // 80 if plan.scans else 0,
    )
    head = '{"Event":"SparkListenerTaskEnd",' + _HEAD % (plan.stage_id, plan.attempt)
    info = _INFO % (*_who(each, plan), START_MS + each.finish, *bad)
    return f'{head}"Task Type":"{plan.kind}","Task End Reason":{reason},{info},{metrics}}}'


def lines(
    tasks: int, seed: int = 0, executors: int = 200, cores: int = 4, largest_stage: int = _LARGEST_STAGE
) -> Iterator[str]:
    """The log's lines, with at least this many task attempts; it stops at the end of a job.

    No stage has more than `largest_stage` tasks.
    """
    random = Random(seed)
    properties = {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": "16g",
        "spark.master": "spark://master.example.org:7077",
        "spark.app.id": "app-20260101000000-0001",
    }
    yield _event("SparkListenerLogStart", **{"Spark Version": "3.5.1"})
    yield _event(
        "SparkListenerEnvironmentUpdate",
        **{
            "JVM Information": {"Java Version": "17.0.10 (Eclipse Adoptium)", "Scala Version": "version 2.12.18"},
            "Spark Properties": properties,
            "Classpath Entries": {},
        },
    )
    identity = {"App Name": "made", "App ID": "app-20260101000000-0001", "Timestamp": START_MS, "User": "spark"}
    yield _event("SparkListenerApplicationStart", **identity)
    for number in range(executors):
        information = {"Host": f"node{number // 2:03d}.example.org", "Total Cores": cores, "Resource Profile Id": 0}
        fields = {"Timestamp": START_MS + 3000 + number, "Executor ID": str(number), "Executor Info": information}
        yield _event("SparkListenerExecutorAdded", **fields)
    slots = [(5000, number // cores) for number in range(executors * cores)]
    heapq.heapify(slots)
    jobs = _Jobs(random, slots)
    while jobs.task_id < tasks:
        yield from jobs.one(min(largest_stage, tasks - jobs.task_id))
    yield _event("SparkListenerApplicationEnd", Timestamp=START_MS + jobs.now)


_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"


@dataclass
class _Jobs:
    """Sequential queries of one job each; `now` is in ms since the application's start, `slots` is a heap of
    (free, executor)."""

    random: Random
    slots: list[tuple[int, int]]
    now: int = 5000
    task_id: int = 0
    stage_id: int = 0
    job_id: int = 0

    def one(self, largest: int) -> Iterator[str]:
        """Lines of a query whose stages have at most this many tasks."""
        random = self.random
        sizes = [max(1, min(int(random.lognormvariate(7.5, 1.2)), largest)) for _ in range(random.choice((2, 3)))]
        first, last = self.stage_id, len(sizes) - 1
        plans = [
            Plan(
                first + number,
                0,
                size,
                number == 0,
                (first + number - 1,) if number else (),
                "ResultTask" if number == last else "ShuffleMapTask",
            )
            for number, size in enumerate(sizes)
        ]
        fields = {"executionId": self.job_id, "description": f"report {self.job_id}", "time": START_MS + self.now}
        yield _event(f"{_SQL}Start", **fields, sparkPlanInfo=_query_plan(self.job_id))
        properties = {"spark.sql.execution.id": str(self.job_id), "callSite.short": "save at Report.scala:41"}
        job = {
            "Job ID": self.job_id,
            "Submission Time": START_MS + self.now,
            "Stage Infos": [_stage_info(plan, {}) for plan in plans],
            "Stage IDs": [plan.stage_id for plan in plans],
            "Properties": properties,
        }
        yield _event("SparkListenerJobStart", **job)
        waiting = [*reversed(plans)]
        again = random.random() < _STAGE_AGAIN
        while waiting:
            plan = waiting.pop()
            failure = {}
            if again and plan.parents and plan.attempt == 0:
                # An output was lost with its executor: this stage fails, a part of its parent runs again, then it does.
                again = False
                failure["Failure Reason"] = "org.apache.spark.shuffle.FetchFailedException: Connection refused"
                parent = plans[plan.parents[0] - first]
                waiting += [plan._replace(attempt=1), parent._replace(attempt=1, tasks=max(parent.tasks // 50, 1))]
            yield from self._stage(plan, failure)
        result = {"Job ID": self.job_id, "Completion Time": START_MS + self.now}
        yield _event("SparkListenerJobEnd", **result, **{"Job Result": {"Result": "JobSucceeded"}})
        yield _event(f"{_SQL}End", executionId=self.job_id, time=START_MS + self.now)
        self.stage_id, self.job_id = first + len(plans), self.job_id + 1
        self.now += random.randrange(50, 2000)

    def _stage(self, plan: Plan, failure: dict[str, str]) -> Iterator[str]:
        times = {"Submission Time": START_MS + self.now}
        yield _event("SparkListenerStageSubmitted", **{"Stage Info": _stage_info(plan, times), "Properties": {}})
        placed = _placed(self.random, plan, self.now, self.slots, self.task_id)
        happened: list[tuple[int, int, str]] = []
        for each in placed:
            happened.append((each.launch, each.task_id, _start(plan, each)))
            happened.append((each.finish, each.task_id, _end(self.random, plan, each)))
        yield from (line for _, _, line in sorted(happened, key=lambda event: event[:2]))
        self.task_id += len(placed)
        self.now = max(each.finish for each in placed) + 2
        times["Completion Time"] = START_MS + self.now
        yield _event("SparkListenerStageCompleted", **{"Stage Info": _stage_info(plan, times) | failure})


def _query_plan(job_id: int) -> dict[str, Any]:
    metric = {"name": "number of output rows", "metricType": "sum"}
    node: dict[str, Any] = {"nodeName": "Scan parquet", "simpleString": "FileScan parquet [key,value]", "children": []}
    node["metadata"] = {"Location": "InMemoryFileIndex(1 paths)[hdfs://namenode/data]"}
    for number, name in enumerate(("WholeStageCodegen (1)", "Exchange", "HashAggregate", "Sort")):
        metrics = [{**metric, "accumulatorId": 10 * job_id + number}]
        node = {"nodeName": name, "simpleString": name, "children": [node], "metadata": {}, "metrics": metrics}
    return node


def write(stream: TextIO, tasks: int, seed: int = 0) -> None:
    """Write the log to an open text file."""
    for line in lines(tasks, seed):
        stream.write(line)
        stream.write("\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.costs.made_log", description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=1_000_000, metavar="N", help="task attempts (default 1 000 000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the log, plain JSON lines")
    given = parser.parse_args(arguments)
    with given.output.open("w", encoding="utf-8", buffering=1 << 20) as stream:
        write(stream, given.tasks, given.seed)
    print(f"{given.output}: {given.output.stat().st_size / 1e9:.2f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
