"""The pages of a running application as the events of its log, for applications that write none.

Pages of Spark's REST interface (`/api/v1/applications/APP/…`) have the jobs, stages, tasks, executors and settings of a
log, and the operators of queries.  They lack:

- the stages that a stage reads from: those of its job that wrote shuffle output and ended before it, and that no stage
  in between read
- metrics of operators as numbers, and the stages of operators; so also which stages run Python functions
- which stages are barrier stages
- what Spark dropped: by default it keeps 1 000 jobs, 1 000 stages, 1 000 queries and 100 000 tasks of a stage
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from crystalperf.indexes.frozen import frozen

Page = Mapping[str, Any]
"""An object of a page, by Spark's names (org.apache.spark.status.api.v1)."""

Event = dict[str, Any]

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"


@frozen
class Pages:
    """The pages of one application.

    version      Spark's version
    application  its entry in the list of applications, with one attempt
    environment  the settings
    executors    /allexecutors
    jobs         /jobs
    stages       /stages, each attempt
    tasks        by stage and attempt, /stages/STAGE/ATTEMPT/taskList
    queries      /sql?details=true; empty without Spark SQL
    """

    version: str
    application: Page
    environment: Page
    executors: Sequence[Page]
    jobs: Sequence[Page]
    stages: Sequence[Page]
    tasks: Mapping[tuple[int, int], Sequence[Page]]
    queries: Sequence[Page]


def events(pages: Pages) -> Iterator[Event]:
    """The events of a log, in an order in which a log could have them."""
    attempt = (pages.application.get("attempts") or [{}])[0]
    yield {"Event": "SparkListenerLogStart", "Spark Version": pages.version}
    yield _environment(pages.environment)
    yield {
        "Event": "SparkListenerApplicationStart",
        "App Name": pages.application.get("name"),
        "App ID": pages.application.get("id"),
        "App Attempt ID": attempt.get("attemptId"),
        "Timestamp": attempt.get("startTimeEpoch"),
    }
    for profile in pages.environment.get("resourceProfiles") or []:
        yield _resource_profile(profile)
    for executor in pages.executors:
        yield from _executor(executor)
    query_of = {job: query["id"] for query in pages.queries for job in _jobs_of(query)}
    for query in pages.queries:
        yield from _query_start(query)
    parents = _parents(pages.jobs, pages.stages)
    stages: dict[int, Event] = {}
    for stage in pages.stages:
        stages.setdefault(stage["stageId"], _stage_info(stage, parents))
    for job in sorted(pages.jobs, key=lambda each: each["jobId"]):
        yield _job_start(job, query_of, stages)
    for stage in pages.stages:
        yield from _stage(stage, pages.tasks.get((stage["stageId"], stage["attemptId"]), ()), parents)
    for job in pages.jobs:
        if (end := unix_ms(job.get("completionTime"))) is not None:
            result = {"Result": "JobSucceeded" if job.get("status") == "SUCCEEDED" else "JobFailed"}
            yield {
                "Event": "SparkListenerJobEnd",
                "Job ID": job["jobId"],
                "Completion Time": end,
                "Job Result": result,
            }
    for query in pages.queries:
        yield from _query_end(query)
    if attempt.get("completed"):
        yield {"Event": "SparkListenerApplicationEnd", "Timestamp": attempt.get("endTimeEpoch")}


def unix_ms(text: Any) -> float | None:
    """A time of a page, such as 2026-11-29T05:00:00.123GMT, in Unix ms; None for others."""
    try:
        return datetime.fromisoformat(str(text).replace("GMT", "+00:00")).timestamp() * 1000
    except (ValueError, OverflowError, OSError):
        return None


def _environment(page: Page) -> Event:
    runtime = page.get("runtime") or {}
    return {
        "Event": "SparkListenerEnvironmentUpdate",
        "JVM Information": {"Java Version": runtime.get("javaVersion"), "Scala Version": runtime.get("scalaVersion")},
        "Spark Properties": _pairs(page.get("sparkProperties")),
        "System Properties": _pairs(page.get("systemProperties")),
        "Classpath Entries": _pairs(page.get("classpathEntries")),
    }


def _pairs(rows: Any) -> dict[str, str]:
    return {str(row[0]): str(row[1]) for row in rows or [] if isinstance(row, list) and len(row) == 2}


def _resource_profile(page: Page) -> Event:
    """A resource profile of the environment's page, of Spark 3.1 and newer."""
    requests = {
        name: {each: {"Amount": request.get("amount")} for each, request in (page.get(key) or {}).items()}
        for name, key in (("Executor", "executorResources"), ("Task", "taskResources"))
    }
    return {
        "Event": "SparkListenerResourceProfileAdded",
        "Resource Profile Id": page.get("id"),
        "Executor Resource Requests": requests["Executor"],
        "Task Resource Requests": requests["Task"],
    }


def _executor(page: Page) -> Iterator[Event]:
    name, added = page["id"], unix_ms(page.get("addTime"))
    host = str(page.get("hostPort") or "").rpartition(":")[0]
    memory = page.get("memoryMetrics") or {}
    manager = {"Executor ID": name, "Host": host}
    heap = memory.get("totalOnHeapStorageMemory", page.get("maxMemory"))
    yield {
        "Event": "SparkListenerBlockManagerAdded",
        "Block Manager ID": manager,
        "Timestamp": added,
        "Maximum Onheap Memory": heap,
    }
    if name == "driver" and not page.get("totalCores"):
        return
    info = {"Host": host, "Total Cores": page.get("totalCores"), "Resource Profile Id": page.get("resourceProfileId")}
    yield {"Event": "SparkListenerExecutorAdded", "Timestamp": added, "Executor ID": name, "Executor Info": info}
    if (removed := unix_ms(page.get("removeTime"))) is not None:
        reason = page.get("removeReason")
        yield {
            "Event": "SparkListenerExecutorRemoved",
            "Timestamp": removed,
            "Executor ID": name,
            "Removed Reason": reason,
        }


# Jobs and stages ------------------------------------------------------------------------------------------------------


def _job_start(job: Page, query_of: Mapping[int, int], stages: Mapping[int, Event]) -> Event:
    properties = {"spark.jobGroup.id": job.get("jobGroup"), "spark.job.description": job.get("description")}
    properties["spark.job.tags"] = ",".join(job.get("jobTags") or [])
    if job["jobId"] in query_of:
        properties["spark.sql.execution.id"] = str(query_of[job["jobId"]])
    infos = [stages[each] for each in job.get("stageIds") or [] if each in stages]
    return {
        "Event": "SparkListenerJobStart",
        "Job ID": job["jobId"],
        "Submission Time": unix_ms(job.get("submissionTime")),
        "Stage IDs": job.get("stageIds") or [],
        "Stage Infos": [{name: value for name, value in each.items() if name in _PLANNED} for each in infos],
        "Properties": {name: value for name, value in properties.items() if value},
    }


_PLANNED = ("Stage ID", "Stage Attempt ID", "Stage Name", "Number of Tasks", "RDD Info", "Parent IDs")
"""Fields of a stage that is not submitted yet."""

_MOVED = {
    "internal.metrics.input.bytesRead": "inputBytes",
    "internal.metrics.output.bytesWritten": "outputBytes",
    "internal.metrics.shuffle.read.recordsRead": "shuffleReadRecords",
    "internal.metrics.shuffle.write.bytesWritten": "shuffleWriteBytes",
}
"""Metrics by which a log shows what a stage read and wrote, and their names in pages."""


def _parents(jobs: Iterable[Page], stages: Sequence[Page]) -> dict[int, list[int]]:
    """By stage, the stages of its job whose shuffle output it read; see the top of this module.

    A stage that Spark skipped has the same RDDs as the one whose output it reuses, and the same parents.
    """
    of = {stage["stageId"]: stage for stage in sorted(stages, key=lambda each: each["stageId"], reverse=True)}
    ran: dict[int, int] = {}
    for stage in of.values():  # descending, so that the first one remains
        if stage.get("rddIds") and stage.get("status") != "SKIPPED":
            ran[stage["rddIds"][0]] = stage["stageId"]

    def original(number: int) -> int:
        ids = of[number].get("rddIds")
        return ran.get(ids[0], number) if ids else number

    found: dict[int, list[int]] = {}
    for job in sorted(jobs, key=lambda each: each["jobId"]):
        unread: list[int] = []
        for number in sorted(each for each in job.get("stageIds") or [] if each in of):
            stage, known = of[number], found.get(original(number))
            if known is not None and original(number) != number:
                same = {original(each) for each in known if each in of}
                parents = [each for each in unread if original(each) in same]
            elif stage.get("shuffleReadRecords"):
                parents = [each for each in unread if _ended(of[original(each)], stage)]
            else:
                parents = []
            found.setdefault(number, parents)
            unread = [each for each in unread if each not in parents]
            if of[original(number)].get("shuffleWriteBytes"):
                unread.append(number)
    return found


def _ended(before: Page, stage: Page) -> bool:
    end, start = unix_ms(before.get("completionTime")), unix_ms(stage.get("submissionTime"))
    return end is not None and start is not None and end <= start


def _stage_info(stage: Page, parents: Mapping[int, list[int]]) -> Event:
    moved = [name for name, key in _MOVED.items() if stage.get(key)]
    return {
        "Stage ID": stage["stageId"],
        "Stage Attempt ID": stage["attemptId"],
        "Stage Name": stage.get("name"),
        "Number of Tasks": stage.get("numTasks"),
        "RDD Info": [{"RDD ID": each} for each in stage.get("rddIds") or []],
        "Parent IDs": parents.get(stage["stageId"], []),
        "Submission Time": unix_ms(stage.get("submissionTime")),
        "Completion Time": unix_ms(stage.get("completionTime")),
        "Failure Reason": stage.get("failureReason"),
        "Resource Profile Id": stage.get("resourceProfileId"),
        "Shuffle Push Enabled": stage.get("isShufflePushEnabled"),
        "Shuffle Push Mergers Count": stage.get("shuffleMergersCount"),
        "Accumulables": [{"ID": -1 - place, "Name": name} for place, name in enumerate(moved)],
    }


def _stage(stage: Page, tasks: Sequence[Page], parents: Mapping[int, list[int]]) -> Iterator[Event]:
    if stage.get("status") in ("PENDING", "SKIPPED"):
        return
    info = _stage_info(stage, parents)
    pool = {"spark.scheduler.pool": stage.get("schedulingPool")}
    begun = {name: value for name, value in info.items() if name not in ("Completion Time", "Accumulables")}
    yield {"Event": "SparkListenerStageSubmitted", "Stage Info": begun, "Properties": pool}
    ids = {"Stage ID": stage["stageId"], "Stage Attempt ID": stage["attemptId"]}
    for task in tasks:
        yield from _task(task, ids)
    if stage.get("status") in ("COMPLETE", "FAILED"):
        yield {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def _task(task: Page, ids: Event) -> Iterator[Event]:
    launch, took = unix_ms(task.get("launchTime")), task.get("duration")
    status = task.get("status")
    info = {
        "Task ID": task["taskId"],
        "Index": task.get("index"),
        "Partition ID": task.get("partitionId", task.get("index")),
        "Attempt": task.get("attempt"),
        "Launch Time": launch,
        "Executor ID": task.get("executorId"),
        "Host": task.get("host"),
        "Locality": task.get("taskLocality"),
        "Speculative": task.get("speculative"),
        "Failed": status == "FAILED",
        "Killed": status == "KILLED",
    }
    yield {"Event": "SparkListenerTaskStart", **ids, "Task Info": info}
    if status in ("RUNNING", None) or launch is None or took is None:
        return
    getting = task.get("gettingResultTime") or 0
    # The page's duration ends when the result is ready to be fetched.
    times = {"Finish Time": launch + took + getting, "Getting Result Time": launch + took if getting else 0}
    yield {
        "Event": "SparkListenerTaskEnd",
        **ids,
        "Task End Reason": _reason(status, task.get("errorMessage")),
        "Task Info": info | times,
        "Task Metrics": _metrics(task.get("taskMetrics") or {}),
    }


def _reason(status: Any, error: Any) -> Event:
    if status == "SUCCESS":
        return {"Reason": "Success"}
    if status == "KILLED":
        return {"Reason": "TaskKilled", "Kill Reason": error}
    return {"Reason": "ExceptionFailure", "Class Name": "", "Description": error, "Full Stack Trace": error}


def _metrics(page: Page) -> Event:
    read, write = page.get("shuffleReadMetrics") or {}, page.get("shuffleWriteMetrics") or {}
    given, made = page.get("inputMetrics") or {}, page.get("outputMetrics") or {}
    push = read.get("shufflePushReadMetrics") or {}
    return {
        "Executor Deserialize Time": page.get("executorDeserializeTime"),
        "Executor Deserialize CPU Time": page.get("executorDeserializeCpuTime"),
        "Executor Run Time": page.get("executorRunTime"),
        "Executor CPU Time": page.get("executorCpuTime"),
        "Peak Execution Memory": page.get("peakExecutionMemory"),
        "Result Size": page.get("resultSize"),
        "JVM GC Time": page.get("jvmGcTime"),
        "Result Serialization Time": page.get("resultSerializationTime"),
        "Memory Bytes Spilled": page.get("memoryBytesSpilled"),
        "Disk Bytes Spilled": page.get("diskBytesSpilled"),
        "Shuffle Read Metrics": {
            "Fetch Wait Time": read.get("fetchWaitTime"),
            "Remote Bytes Read": read.get("remoteBytesRead"),
            "Local Bytes Read": read.get("localBytesRead"),
            "Total Records Read": read.get("recordsRead"),
            "Push Based Shuffle": {
                "Merged Remote Bytes Read": push.get("remoteMergedBytesRead"),
                "Merged Local Bytes Read": push.get("localMergedBytesRead"),
                "Merged Fetch Fallback Count": push.get("mergedFetchFallbackCount"),
            },
        },
        "Shuffle Write Metrics": {
            "Shuffle Bytes Written": write.get("bytesWritten"),
            "Shuffle Write Time": write.get("writeTime"),
        },
        "Input Metrics": {"Bytes Read": given.get("bytesRead"), "Records Read": given.get("recordsRead")},
        "Output Metrics": {"Bytes Written": made.get("bytesWritten")},
    }


# Queries --------------------------------------------------------------------------------------------------------------


def _jobs_of(query: Page) -> list[int]:
    return [job for name in ("runningJobIds", "successJobIds", "failedJobIds") for job in query.get(name) or []]


def _query_start(query: Page) -> Iterator[Event]:
    yield {
        "Event": SQL + "Start",
        "executionId": query["id"],
        "description": query.get("description"),
        "time": unix_ms(query.get("submissionTime")),
        "sparkPlanInfo": _plan(query.get("nodes") or [], query.get("edges") or []),
    }


def _query_end(query: Page) -> Iterator[Event]:
    start, took = unix_ms(query.get("submissionTime")), query.get("duration")
    if query.get("status") != "RUNNING" and start is not None and took is not None:
        error = "failed" if query.get("status") == "FAILED" else ""
        yield {"Event": SQL + "End", "executionId": query["id"], "time": start + took, "errorMessage": error}


def _plan(nodes: Sequence[Page], edges: Sequence[Page]) -> Event | None:
    """The tree of a query's operators, whose edges lead from an operator to the one that reads its rows."""
    names = {each["nodeId"]: str(each.get("nodeName") or "") for each in nodes}
    names = {node: name for node, name in names.items() if not name.startswith("WholeStageCodegen")}
    children: dict[int, list[int]] = {}
    for each in edges:
        if each["fromId"] in names and each["toId"] in names:
            children.setdefault(each["toId"], []).append(each["fromId"])
    below = {child for of in children.values() for child in of}
    root = next((node for node in sorted(names) if node not in below), None)
    if root is None:
        return None
    made: dict[int, Event] = {}
    order, waiting = [], [root]
    while waiting:  # a damaged page may have a circle
        node = waiting.pop()
        if node not in made:
            made[node] = {"nodeName": names[node], "simpleString": names[node], "children": [], "metrics": []}
            order.append(node)
            waiting += children.get(node, [])
    taken = {root}
    for node in order:
        for child in children.get(node, []):
            if child not in taken:
                taken.add(child)
                made[node]["children"].append(made[child])
    return made[root]
