"""Small Spark logs, written event by event as Spark writes them, for tests that go through the real reader."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START = 1_795_257_733_000
_DRIVER_UPDATES = "org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates"
MIB = 2**20


@dataclass(frozen=True)
class Task:
    """A task; times in ms, `launch_ms` since the stage began.  `cpu_ms` is None where the log has no CPU time.

    `method` is how it read, as Spark before 2.0 logs it; `locality` how near its data were; `peaks_mib` are metrics of
    its executor's memory by their names, MiB, and `peak_memory_mib` is its own peak of execution memory.
    """

    ms: int
    executor: str = "1"
    launch_ms: int = 0
    cpu_ms: int | None = 0
    gc_ms: int = 0
    read_bytes: int = 0
    shuffled_bytes: int = 0
    spilled_bytes: int = 0
    starting_ms: int = 0
    written_bytes: int = 0
    method: str | None = None
    locality: str = "ANY"
    peak_memory_mib: int | None = None
    peaks_mib: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """A stage that is a job of its own; it begins `after_ms` after the one before it.

    `keeps` is an RDD of it that executors keep in memory, and its partitions; or several.
    """

    tasks: Sequence[Task]
    after_ms: int = 100
    reads: str = "FileScanRDD"
    name: str = "count at job.py:1"
    keeps: tuple[int, int] | Sequence[tuple[int, int]] | None = None


@dataclass(frozen=True)
class Operator:
    """An operator of a plan with what feeds it.

    `metrics` are by name: its amount, by the number of the stage whose tasks counted it; -1 for the driver.
    """

    name: str
    detail: str = ""
    metrics: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    inputs: Sequence[Operator] = ()
    location: str = ""


@dataclass(frozen=True)
class Query:
    """A SQL query around the stages: its plan as the nodes from the root down, each with its description, or as a tree.

    `text` is the description of the plan as a whole.  The query goes on for `after_ms` after the last stage.
    """

    nodes: Sequence[tuple[str, str]] = ()
    after_ms: int = 0
    tree: Operator | None = None
    text: str = ""


def write(
    path: Path,
    stages: Sequence[Stage],
    *,
    executors: Mapping[str, int],
    properties: Mapping[str, str] | None = None,
    query: Query | None = None,
    begin_ms: int = 1000,
    removed: Mapping[str, int] | None = None,
    version: str = "3.5.1",
) -> Path:
    """A log of these stages, one after the other, from `begin_ms` on; `executors` are their cores by id.

    Those of `removed` idled and went after the stage of that number; `version` is Spark's.
    """
    return _Writer(path, stages, executors, properties or {}, query, begin_ms, removed or {}, version).write()


@dataclass
class _Writer:
    path: Path
    stages: Sequence[Stage]
    executors: Mapping[str, int]
    properties: Mapping[str, str]
    query: Query | None
    begin_ms: int
    removed: Mapping[str, int]
    version: str
    task_id: int = 0
    counted: dict[int, dict[int, float]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def add(self, name: str, **fields: Any) -> None:
        prefix = (
            "org.apache.spark.sql.execution.ui.SparkListenerSQL" if name.startswith("Execution") else "SparkListener"
        )
        self.events.append({"Event": prefix + name, **{key.replace("_", " "): value for key, value in fields.items()}})

    def write(self) -> Path:
        self.add("LogStart", Spark_Version=self.version)
        self.add("EnvironmentUpdate", Spark_Properties=dict(self.properties))
        self.add("ApplicationStart", App_Name="made", App_ID="app-made", Timestamp=START)
        for number, (executor, cores) in enumerate(self.executors.items()):
            info = {"Host": f"w{executor}", "Total Cores": cores, "Log Urls": {}}
            self.add("ExecutorAdded", Timestamp=START + number, Executor_ID=executor, Executor_Info=info)
        now = self.begin_ms
        if self.query is not None:
            plan = {} if self.query.tree is None else self._plan(self.query.tree)
            for name, text in reversed(self.query.nodes):
                plan = {"nodeName": name, "simpleString": text, "children": [plan] if plan else [], "metadata": {}}
                plan["metrics"] = []
            about = {
                "executionId": 0,
                "description": "a query",
                "details": "",
                "physicalPlanDescription": self.query.text,
            }
            self.add("ExecutionStart", **about, sparkPlanInfo=plan, time=START + now)
            updates = [[number, int(value)] for number, value in self.counted.get(-1, {}).items()]
            self.events.append({"Event": _DRIVER_UPDATES, "executionId": 0, "accumUpdates": updates})
        for number, stage in enumerate(self.stages):
            now = self._stage(number, stage, now)
            for executor in (each for each, after in self.removed.items() if after == number):
                why = "Executor killed by driver."
                self.add("ExecutorRemoved", Timestamp=START + now, Executor_ID=executor, Removed_Reason=why)
        if self.query is not None:
            now += self.query.after_ms
            self.add("ExecutionEnd", executionId=0, time=START + now)
        self.add("ApplicationEnd", Timestamp=START + now)
        self.path.write_text("".join(f"{json.dumps(event)}\n" for event in self.events), encoding="utf-8")
        return self.path

    def _plan(self, node: Operator) -> dict[str, Any]:
        """A node of a plan as Spark logs it; what its metrics counted is kept for the stages' ends."""
        metrics = []
        for name, amounts in node.metrics.items():
            accumulator = 1000 + sum(map(len, self.counted.values()))
            for stage, amount in amounts.items():
                self.counted.setdefault(stage, {})[accumulator] = amount
            kind = "size" if "size" in name else "timing" if "time" in name else "sum"
            metrics.append({"name": name, "accumulatorId": accumulator, "metricType": kind})
        children = [self._plan(each) for each in node.inputs]
        about = {"nodeName": node.name, "simpleString": node.detail or node.name, "metrics": metrics}
        return {**about, "children": children, "metadata": {"Location": node.location} if node.location else {}}

    def _stage(self, number: int, stage: Stage, now: int) -> int:
        begin = now + stage.after_ms
        end = begin + max(each.launch_ms + each.ms for each in stage.tasks)
        keeps = stage.keeps or ()
        several = [keeps] if keeps and isinstance(keeps[0], int) else keeps
        info = {
            "Stage ID": number, "Stage Attempt ID": 0, "Stage Name": stage.name, "Number of Tasks": len(stage.tasks),
            "RDD Info": [
                {
                    "RDD ID": number, "Name": stage.reads, "Parent IDs": [], "Number of Partitions": len(stage.tasks),
                    "Number of Cached Partitions": 0, "Storage Level": {"Use Disk": False, "Use Memory": False},
                },
                *[
                    {
                        "RDD ID": kept, "Name": "MapPartitionsRDD", "Parent IDs": [],
                        "Number of Partitions": partitions, "Number of Cached Partitions": 0,
                        "Storage Level": {"Use Disk": True, "Use Memory": True},
                    }
                    for kept, partitions in several
                ],
            ],
            "Parent IDs": [], "Details": stage.name, "Submission Time": START + begin, "Accumulables": [],
        }  # fmt: skip
        properties = {} if self.query is None else {"spark.sql.execution.id": "0"}
        self.add("JobStart", Job_ID=number, Submission_Time=START + begin, Stage_Infos=[info], Stage_IDs=[number],
                 Properties=properties)  # fmt: skip
        self.add("StageSubmitted", Stage_Info=info, Properties=properties)
        for part, task in enumerate(stage.tasks):
            self._task(number, part, task, begin)
        written = sum(each.written_bytes for each in stage.tasks)
        totals = [{"ID": 1, "Name": "internal.metrics.output.bytesWritten", "Value": written}] if written else []
        totals += [
            {"ID": each, "Name": "metric", "Value": int(value)} for each, value in self.counted.get(number, {}).items()
        ]
        self.add("StageCompleted", Stage_Info={**info, "Completion Time": START + end, "Accumulables": totals})
        self.add("JobEnd", Job_ID=number, Completion_Time=START + end, Job_Result={"Result": "JobSucceeded"})
        return end

    def _task(self, stage: int, part: int, task: Task, begin: int) -> None:
        launch = START + begin + task.launch_ms
        info = {
            "Task ID": self.task_id, "Index": part, "Attempt": 0, "Launch Time": launch, "Executor ID": task.executor,
            "Host": f"w{task.executor}", "Locality": task.locality, "Speculative": False, "Getting Result Time": 0,
            "Finish Time": launch + task.ms, "Failed": False, "Killed": False, "Accumulables": [],
        }  # fmt: skip
        metrics = {
            "Executor Deserialize Time": task.starting_ms, "Executor Run Time": task.ms - task.starting_ms,
            "Result Size": 1000, "JVM GC Time": task.gc_ms, "Result Serialization Time": 0,
            "Memory Bytes Spilled": 2 * task.spilled_bytes, "Disk Bytes Spilled": task.spilled_bytes,
            "Shuffle Read Metrics": {
                "Remote Blocks Fetched": 0, "Local Blocks Fetched": 1, "Fetch Wait Time": 0, "Remote Bytes Read": 0,
                "Local Bytes Read": task.shuffled_bytes, "Total Records Read": task.shuffled_bytes // 100,
            },
            "Output Metrics": {"Bytes Written": task.written_bytes, "Records Written": task.written_bytes // 100},
            "Input Metrics": {"Bytes Read": task.read_bytes, "Records Read": task.read_bytes // 100},
        }  # fmt: skip
        if task.peak_memory_mib is not None:
            metrics |= {"Peak Execution Memory": task.peak_memory_mib * MIB}
        if task.method is not None:
            metrics["Input Metrics"] |= {"Data Read Method": task.method}
        if task.cpu_ms is not None:
            metrics |= {"Executor CPU Time": task.cpu_ms * 1_000_000, "Executor Deserialize CPU Time": 0}
        self.add("TaskStart", Stage_ID=stage, Stage_Attempt_ID=0, Task_Info={**info, "Finish Time": 0})
        peaks = {name: round(mib * MIB) for name, mib in task.peaks_mib.items()}
        self.add("TaskEnd", Stage_ID=stage, Stage_Attempt_ID=0, Task_Type="ResultTask",
                 Task_End_Reason={"Reason": "Success"}, Task_Info=info, Task_Executor_Metrics=peaks,
                 Task_Metrics=metrics)  # fmt: skip
        self.task_id += 1


def waves(count: int, slots: int, executors: int = 1, **of: Any) -> Iterable[Task]:
    """Even tasks, handed out in turn to the slots of executors '1', '2' …"""
    for number in range(count):
        wave, slot = divmod(number, slots)
        yield Task(executor=str(slot % executors + 1), launch_ms=wave * of["ms"], **of)
