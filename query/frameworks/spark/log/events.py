"""Lines of a Spark event log as typed events.

Only the events and fields that the tables need are decoded: the name at the start of a line chooses the type, and
msgspec skips everything else without making objects of it.  Every number is a float and every field may be missing or
null, so that the usual oddities of vendors' logs stay on that path.  A line that the typed decoder rejects is read
again without types, and each field is converted by itself; only a line that is not JSON, or lacks what identifies its
event, is lost, and counted.

Names of events and fields: org.apache.spark.util.JsonProtocol, Spark 1.3 to 4.1.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct, field

from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.bounds import check_undecodable, is_dense
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.records import Problems, shortened

_S = TypeVar("_S", bound=Struct)

NAN = math.nan
"""The value of a task's missing number: it goes into a column of numbers unchanged."""


class Event(Struct, gc=False):
    """An event that the tables need."""


class TaskInfo(Struct, gc=False):
    task_id: float | None = field(name="Task ID", default=None)
    index: float | None = field(name="Index", default=NAN)
    attempt: float | None = field(name="Attempt", default=NAN)
    partition: float | None = field(name="Partition ID", default=NAN)
    launch: float | None = field(name="Launch Time", default=None)
    executor: str | None = field(name="Executor ID", default=None)
    host: str | None = field(name="Host", default=None)
    locality: str | None = field(name="Locality", default=None)
    speculative: bool | None = field(name="Speculative", default=None)
    getting_result: float | None = field(name="Getting Result Time", default=NAN)
    finish: float | None = field(name="Finish Time", default=NAN)
    failed: bool | None = field(name="Failed", default=None)
    killed: bool | None = field(name="Killed", default=None)


class EndReason(Struct, gc=False):
    reason: str | None = field(name="Reason", default=None)
    class_name: str | None = field(name="Class Name", default=None)
    description: str | None = field(name="Description", default=None)
    kill_reason: str | None = field(name="Kill Reason", default=None)
    loss_reason: str | None = field(name="Loss Reason", default=None)
    message: str | None = field(name="Message", default=None)
    stack: str | None = field(name="Full Stack Trace", default=None)


class PushRead(Struct, gc=False):
    """Bytes that a task read in blocks that push-based shuffle had merged; those of ShuffleRead include them."""

    remote_bytes: float | None = field(name="Merged Remote Bytes Read", default=0.0)
    local_bytes: float | None = field(name="Merged Local Bytes Read", default=0.0)
    fallbacks: float | None = field(name="Merged Fetch Fallback Count", default=0.0)


class ShuffleRead(Struct, gc=False):
    fetch_wait: float | None = field(name="Fetch Wait Time", default=NAN)
    remote_read_bytes: float | None = field(name="Remote Bytes Read", default=NAN)
    local_read_bytes: float | None = field(name="Local Bytes Read", default=NAN)
    rows: float | None = field(name="Total Records Read", default=NAN)
    push: PushRead | None = field(name="Push Based Shuffle", default=None)


class ShuffleWrite(Struct, gc=False):
    bytes: float | None = field(name="Shuffle Bytes Written", default=NAN)
    time_ns: float | None = field(name="Shuffle Write Time", default=NAN)


class Input(Struct, gc=False):
    bytes: float | None = field(name="Bytes Read", default=NAN)
    rows: float | None = field(name="Records Read", default=NAN)
    method: str | None = field(name="Data Read Method", default=None)


class Output(Struct, gc=False):
    bytes: float | None = field(name="Bytes Written", default=NAN)


class TaskMetrics(Struct, gc=False):
    deserialize: float | None = field(name="Executor Deserialize Time", default=NAN)
    deserialize_cpu_ns: float | None = field(name="Executor Deserialize CPU Time", default=NAN)
    run: float | None = field(name="Executor Run Time", default=NAN)
    run_cpu_ns: float | None = field(name="Executor CPU Time", default=NAN)
    peak_memory: float | None = field(name="Peak Execution Memory", default=NAN)
    result_bytes: float | None = field(name="Result Size", default=NAN)
    gc: float | None = field(name="JVM GC Time", default=NAN)
    result_serialize: float | None = field(name="Result Serialization Time", default=NAN)
    spill_memory: float | None = field(name="Memory Bytes Spilled", default=NAN)
    spill_disk: float | None = field(name="Disk Bytes Spilled", default=NAN)
    shuffle_read: ShuffleRead | None = field(name="Shuffle Read Metrics", default=None)
    shuffle_write: ShuffleWrite | None = field(name="Shuffle Write Metrics", default=None)
    input: Input | None = field(name="Input Metrics", default=None)
    output: Output | None = field(name="Output Metrics", default=None)


class ExecutorMetrics(Struct, gc=False):
    """Peaks of an executor's memory, bytes, and its garbage collections since it started; all 0 if never polled.

    ExecutorMetricType of Spark 3.0 and newer.  spark.executor.metrics.pollingInterval is 0 by default: then Spark polls
    only at heartbeats, every 10 s, and the metrics of most short tasks are 0.  Process trees are 0 unless
    spark.executor.processTreeMetrics.enabled is true.
    """

    jvm_heap_bytes: float | None = field(name="JVMHeapMemory", default=0.0)
    jvm_off_heap_bytes: float | None = field(name="JVMOffHeapMemory", default=0.0)
    heap_execution_bytes: float | None = field(name="OnHeapExecutionMemory", default=0.0)
    heap_storage_bytes: float | None = field(name="OnHeapStorageMemory", default=0.0)
    heap_unified_bytes: float | None = field(name="OnHeapUnifiedMemory", default=0.0)
    off_heap_execution_bytes: float | None = field(name="OffHeapExecutionMemory", default=0.0)
    off_heap_storage_bytes: float | None = field(name="OffHeapStorageMemory", default=0.0)
    off_heap_unified_bytes: float | None = field(name="OffHeapUnifiedMemory", default=0.0)
    direct_bytes: float | None = field(name="DirectPoolMemory", default=0.0)
    mapped_bytes: float | None = field(name="MappedPoolMemory", default=0.0)
    jvm_resident_bytes: float | None = field(name="ProcessTreeJVMRSSMemory", default=0.0)
    python_resident_bytes: float | None = field(name="ProcessTreePythonRSSMemory", default=0.0)
    other_resident_bytes: float | None = field(name="ProcessTreeOtherRSSMemory", default=0.0)
    minor_gcs: float | None = field(name="MinorGCCount", default=0.0)
    minor_gc_ms: float | None = field(name="MinorGCTime", default=0.0)
    major_gcs: float | None = field(name="MajorGCCount", default=0.0)
    major_gc_ms: float | None = field(name="MajorGCTime", default=0.0)


class TaskStart(Event, gc=False):
    stage_id: float | None = field(name="Stage ID", default=None)
    stage_attempt: float | None = field(name="Stage Attempt ID", default=None)
    info: TaskInfo | None = field(name="Task Info", default=None)


class TaskEnd(Event, gc=False):
    stage_id: float | None = field(name="Stage ID", default=None)
    stage_attempt: float | None = field(name="Stage Attempt ID", default=None)
    reason: EndReason | None = field(name="Task End Reason", default=None)
    info: TaskInfo | None = field(name="Task Info", default=None)
    metrics: TaskMetrics | None = field(name="Task Metrics", default=None)
    executor_metrics: ExecutorMetrics | None = field(name="Task Executor Metrics", default=None)


class StageExecutorMetrics(Event, gc=False):
    """With spark.eventLog.logStageExecutorMetrics: an executor's peaks while a stage ran, the driver's too."""

    executor: str | None = field(name="Executor ID", default=None)
    stage_id: float | None = field(name="Stage ID", default=None)
    stage_attempt: float | None = field(name="Stage Attempt ID", default=None)
    metrics: ExecutorMetrics | None = field(name="Executor Metrics", default=None)


class ExecutorMetricsOfStage(Struct, gc=False):
    stage_id: float | None = field(name="Stage ID", default=None)
    stage_attempt: float | None = field(name="Stage Attempt ID", default=None)
    metrics: ExecutorMetrics | None = field(name="Executor Metrics", default=None)


class ExecutorMetricsUpdate(Event, gc=False):
    """A heartbeat, which only some services write to the log: an executor's peaks by stage, -1 for no stage."""

    executor: str | None = field(name="Executor ID", default=None)
    stages: list[ExecutorMetricsOfStage] | None = field(name="Executor Metrics Updated", default=None)


class StorageLevel(Struct, gc=False):
    disk: bool | None = field(name="Use Disk", default=None)
    memory: bool | None = field(name="Use Memory", default=None)


class Rdd(Struct, gc=False):
    rdd_id: float | None = field(name="RDD ID", default=None)
    name: str | None = field(name="Name", default=None)
    scope: str | None = field(name="Scope", default=None)
    storage: StorageLevel | None = field(name="Storage Level", default=None)
    partitions: float | None = field(name="Number of Partitions", default=None)
    barrier: bool | None = field(name="Barrier", default=None)


class Accumulable(Struct, gc=False):
    accumulator_id: float | None = field(name="ID", default=None)
    name: str | None = field(name="Name", default=None)
    value: Raw = field(name="Value", default=Raw())  # a number in quotes, or a list of anything that the user collects


class StageInfo(Struct, gc=False):
    stage_id: float | None = field(name="Stage ID", default=None)
    attempt: float | None = field(name="Stage Attempt ID", default=None)
    name: str | None = field(name="Stage Name", default=None)
    task_count: float | None = field(name="Number of Tasks", default=None)
    rdds: list[Rdd] | None = field(name="RDD Info", default=None)
    parents: list[float] | None = field(name="Parent IDs", default=None)
    submit: float | None = field(name="Submission Time", default=None)
    end: float | None = field(name="Completion Time", default=None)
    failure: str | None = field(name="Failure Reason", default=None)
    accumulables: list[Accumulable] | None = field(name="Accumulables", default=None)
    resource_profile: float | None = field(name="Resource Profile Id", default=None)
    is_pushed: bool | None = field(name="Shuffle Push Enabled", default=None)
    mergers: float | None = field(name="Shuffle Push Mergers Count", default=None)


class Properties(Struct, gc=False):
    sql_id: str | None = field(name="spark.sql.execution.id", default=None)
    job_group: str | None = field(name="spark.jobGroup.id", default=None)
    description: str | None = field(name="spark.job.description", default=None)
    call_site: str | None = field(name="callSite.short", default=None)
    pool: str | None = field(name="spark.scheduler.pool", default=None)
    tags: str | None = field(name="spark.job.tags", default=None)


class StageSubmitted(Event, gc=False):
    info: StageInfo | None = field(name="Stage Info", default=None)
    properties: Properties | None = field(name="Properties", default=None)


class StageCompleted(Event, gc=False):
    info: StageInfo | None = field(name="Stage Info", default=None)


class JobStart(Event, gc=False):
    job_id: float | None = field(name="Job ID", default=None)
    submit: float | None = field(name="Submission Time", default=None)
    stages: list[StageInfo] | None = field(name="Stage Infos", default=None)
    stage_ids: list[float] | None = field(name="Stage IDs", default=None)
    properties: Properties | None = field(name="Properties", default=None)


class JobException(Struct, gc=False):
    message: str | None = field(name="Message", default=None)


class JobResult(Struct, gc=False):
    result: str | None = field(name="Result", default=None)
    exception: JobException | None = field(name="Exception", default=None)


class JobEnd(Event, gc=False):
    job_id: float | None = field(name="Job ID", default=None)
    end: float | None = field(name="Completion Time", default=None)
    result: JobResult | None = field(name="Job Result", default=None)


class ExecutorInfo(Struct, gc=False):
    host: str | None = field(name="Host", default=None)
    cores: float | None = field(name="Total Cores", default=None)
    resource_profile: float | None = field(name="Resource Profile Id", default=None)


class ExecutorAdded(Event, gc=False):
    time: float | None = field(name="Timestamp", default=None)
    executor: str | None = field(name="Executor ID", default=None)
    info: ExecutorInfo | None = field(name="Executor Info", default=None)


class ExecutorRemoved(Event, gc=False):
    time: float | None = field(name="Timestamp", default=None)
    executor: str | None = field(name="Executor ID", default=None)
    reason: str | None = field(name="Removed Reason", default=None)


class BlockManagerId(Struct, gc=False):
    executor: str | None = field(name="Executor ID", default=None)
    host: str | None = field(name="Host", default=None)


class BlockManagerAdded(Event, gc=False):
    manager: BlockManagerId | None = field(name="Block Manager ID", default=None)
    time: float | None = field(name="Timestamp", default=None)
    on_heap_bytes: float | None = field(name="Maximum Onheap Memory", default=None)


class Amount(Struct, gc=False):
    amount: float | None = field(name="Amount", default=None)


class ResourceProfile(Event, gc=False):
    profile_id: float | None = field(name="Resource Profile Id", default=None)
    executor: dict[str, Amount] | None = field(name="Executor Resource Requests", default=None)
    task: dict[str, Amount] | None = field(name="Task Resource Requests", default=None)


class LogStart(Event, gc=False):
    version: str | None = field(name="Spark Version", default=None)


class JvmInformation(Struct, gc=False):
    java: str | None = field(name="Java Version", default=None)
    scala: str | None = field(name="Scala Version", default=None)


class EnvironmentUpdate(Event, gc=False):
    jvm: JvmInformation | None = field(name="JVM Information", default=None)
    properties: dict[str, str | None] | None = field(name="Spark Properties", default=None)
    class_path: dict[str, str | None] | None = field(name="Classpath Entries", default=None)
    system: dict[str, str | None] | None = field(name="System Properties", default=None)


class ApplicationStart(Event, gc=False):
    name: str | None = field(name="App Name", default=None)
    app_id: str | None = field(name="App ID", default=None)
    time: float | None = field(name="Timestamp", default=None)
    attempt: str | None = field(name="App Attempt ID", default=None)


class ApplicationEnd(Event, gc=False):
    time: float | None = field(name="Timestamp", default=None)
    exit_code: float | None = field(name="ExitCode", default=None)


class SqlStart(Event, gc=False):
    sql_id: float | None = field(name="executionId", default=None)
    root_sql_id: float | None = field(name="rootExecutionId", default=None)
    description: str | None = None
    details: str | None = None
    plan: Raw = field(name="sparkPlanInfo", default=Raw())
    plan_text: Raw = field(name="physicalPlanDescription", default=Raw())
    time: float | None = None
    modified: dict[str, str | None] | None = field(name="modifiedConfigs", default=None)
    tags: list[str] | None = field(name="jobTags", default=None)
    job_group: str | None = field(name="jobGroupId", default=None)


class SqlPlanUpdate(Event, gc=False):
    sql_id: float | None = field(name="executionId", default=None)
    plan: Raw = field(name="sparkPlanInfo", default=Raw())
    plan_text: Raw = field(name="physicalPlanDescription", default=Raw())


class GlutenFallback(Event, gc=False):
    """Why Gluten left operators of a plan, or of a part of it that adaptive execution replanned, on the JVM."""

    sql_id: float | None = field(name="executionId", default=None)
    reasons: dict[str, str | None] | None = field(name="fallbackNodeToReason", default=None)


class SqlEnd(Event, gc=False):
    sql_id: float | None = field(name="executionId", default=None)
    time: float | None = None
    error: str | None = field(name="errorMessage", default=None)


class SqlDriverMetrics(Event, gc=False):
    """Amounts that the driver itself added to the metrics of a query's operators: (accumulator id, amount) each."""

    sql_id: float | None = field(name="executionId", default=None)
    updates: list[list[float]] | None = field(name="accumUpdates", default=None)


class StreamSource(Struct, gc=False):
    description: str | None = None
    rows: float | str | None = field(name="numInputRows", default=None)
    input_rate: float | str | None = field(name="inputRowsPerSecond", default=None)
    processed_rate: float | str | None = field(name="processedRowsPerSecond", default=None)
    metrics: dict[str, str | None] | None = None


class StreamState(Struct, gc=False):
    """The state of one operator of a streaming query; times are sums over its partitions, ms."""

    operator: str | None = field(name="operatorName", default=None)
    rows: float | None = field(name="numRowsTotal", default=None)
    memory: float | None = field(name="memoryUsedBytes", default=None)
    updated_rows: float | None = field(name="numRowsUpdated", default=None)
    updates: float | None = field(name="allUpdatesTimeMs", default=None)
    removed_rows: float | None = field(name="numRowsRemoved", default=None)
    removals: float | None = field(name="allRemovalsTimeMs", default=None)
    commit: float | None = field(name="commitTimeMs", default=None)
    late_rows: float | None = field(name="numRowsDroppedByWatermark", default=None)
    partitions: float | None = field(name="numShufflePartitions", default=None)
    custom: dict[str, float | None] | None = field(name="customMetrics", default=None)


class StreamSink(Struct, gc=False):
    description: str | None = None


class StreamProgress(Struct, gc=False):
    """The progress of one trigger of a streaming query; Spark writes NaN and infinite rates as text."""

    query_id: str | None = field(name="id", default=None)
    run_id: str | None = field(name="runId", default=None)
    name: str | None = None
    timestamp: str | None = None
    batch_id: float | None = field(name="batchId", default=None)
    durations: dict[str, float | None] | None = field(name="durationMs", default=None)
    sources: list[StreamSource] | None = None
    states: list[StreamState] | None = field(name="stateOperators", default=None)
    sink: StreamSink | None = None


class QueryProgress(Event, gc=False):
    progress: StreamProgress | None = None


class ConnectStarted(Event, gc=False):
    """A Spark Connect server received a request; its jobs and queries have the tag."""

    statement_id: str | None = field(name="operationId", default=None)
    tag: str | None = field(name="jobTag", default=None)
    session_id: str | None = field(name="sessionId", default=None)
    user: str | None = field(name="userId", default=None)
    text: str | None = field(name="statementText", default=None)
    time: float | None = field(name="eventTime", default=None)


class ConnectEnded(Event, gc=False):
    statement_id: str | None = field(name="operationId", default=None)
    time: float | None = field(name="eventTime", default=None)


class ConnectFinished(ConnectEnded, gc=False):
    row_count: float | None = field(name="producedRowCount", default=None)


class ConnectFailed(ConnectEnded, gc=False):
    error: str | None = field(name="errorMessage", default=None)


class ConnectCanceled(ConnectEnded, gc=False):
    """A client interrupted the request."""


class ConnectClosed(ConnectEnded, gc=False):
    """The client has all of its results."""


class ThriftStarted(Event, gc=False):
    """A Thrift server received a statement; its jobs are in the group."""

    statement_id: str | None = field(name="id", default=None)
    tag: str | None = field(name="groupId", default=None)
    session_id: str | None = field(name="sessionId", default=None)
    user: str | None = field(name="userName", default=None)
    text: str | None = field(name="statement", default=None)
    time: float | None = field(name="startTime", default=None)


class ThriftEnded(Event, gc=False):
    statement_id: str | None = field(name="id", default=None)
    time: float | None = field(name="finishTime", default=None)


class ThriftFinished(ThriftEnded, gc=False):
    """All results of a statement are there."""


class ThriftFailed(ThriftEnded, gc=False):
    error: str | None = field(name="errorMsg", default=None)


class ThriftCanceled(ThriftEnded, gc=False):
    """A client canceled the statement, or it ran into its timeout."""


class ThriftClosed(Event, gc=False):
    statement_id: str | None = field(name="id", default=None)
    time: float | None = field(name="closeTime", default=None)


class Metric(Struct, gc=False):
    accumulator_id: float | None = field(name="accumulatorId", default=None)
    name: str | None = None
    kind: str | None = field(name="metricType", default=None)


class PlanMetadata(Struct, gc=False):
    location: str | None = field(name="Location", default=None)


class PlanNode(Struct):
    name: str | None = field(name="nodeName", default=None)
    detail: str | None = field(name="simpleString", default=None)
    children: list[PlanNode] | None = None
    metrics: list[Metric] | None = None
    metadata: PlanMetadata | None = None


class Operator(NamedTuple):
    """One operator of a plan; `metrics` are (accumulator id, name, metric type)."""

    node_id: int
    parent_id: int | None
    name: str
    detail: str | None
    location: str | None
    metrics: list[tuple[int, str, str]]


_SQL = "org.apache.spark.sql.execution.ui.SparkListener"
_CONNECT = "org.apache.spark.sql.connect.service.SparkListenerConnectOperation"
_THRIFT = "org.apache.spark.sql.hive.thriftserver.ui.SparkListenerThriftServerOperation"
_TYPES: dict[str, type[Event]] = {
    "SparkListenerTaskStart": TaskStart,
    "SparkListenerTaskEnd": TaskEnd,
    "SparkListenerStageExecutorMetrics": StageExecutorMetrics,
    "SparkListenerExecutorMetricsUpdate": ExecutorMetricsUpdate,
    "SparkListenerStageSubmitted": StageSubmitted,
    "SparkListenerStageCompleted": StageCompleted,
    "SparkListenerJobStart": JobStart,
    "SparkListenerJobEnd": JobEnd,
    "SparkListenerExecutorAdded": ExecutorAdded,
    "SparkListenerExecutorRemoved": ExecutorRemoved,
    "SparkListenerBlockManagerAdded": BlockManagerAdded,
    "SparkListenerResourceProfileAdded": ResourceProfile,
    "SparkListenerLogStart": LogStart,
    "DBCEventLoggingListenerMetadata": LogStart,
    "SparkListenerEnvironmentUpdate": EnvironmentUpdate,
    "SparkListenerApplicationStart": ApplicationStart,
    "SparkListenerApplicationEnd": ApplicationEnd,
    _SQL + "SQLExecutionStart": SqlStart,
    _SQL + "SQLAdaptiveExecutionUpdate": SqlPlanUpdate,
    _SQL + "SQLExecutionEnd": SqlEnd,
    _SQL + "DriverAccumUpdates": SqlDriverMetrics,
    "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent": QueryProgress,
    _CONNECT + "Started": ConnectStarted,
    _CONNECT + "Finished": ConnectFinished,
    _CONNECT + "Failed": ConnectFailed,
    _CONNECT + "Canceled": ConnectCanceled,
    _CONNECT + "Closed": ConnectClosed,
    _THRIFT + "Start": ThriftStarted,
    _THRIFT + "Finish": ThriftFinished,
    _THRIFT + "Error": ThriftFailed,
    _THRIFT + "Canceled": ThriftCanceled,
    _THRIFT + "Timeout": ThriftCanceled,
    _THRIFT + "Closed": ThriftClosed,
    "org.apache.gluten.events.GlutenPlanFallbackEvent": GlutenFallback,
    "io.glutenproject.events.GlutenPlanFallbackEvent": GlutenFallback,  # before Gluten 1.2
}

# Events of Spark, and of engines, without data for the tables.
_PASSED_OVER = regex(
    r"SparkListener(BlockManagerRemoved|UnpersistRDD|BlockUpdated|TaskGettingResult"
    r"|SpeculativeTaskSubmitted|.*(Blacklisted|Excluded|Unexcluded|Unblacklisted)(ForStage)?)"
    r"|org\.apache\.spark\.scheduler\.SparkListener.*|org\.apache\.spark\.sql\..*|org\.apache\.spark\.streaming\..*"
    r"|com\.nvidia\.spark\.rapids\..*|(org\.apache\.gluten|io\.glutenproject|org\.apache\.auron)\..*"
)
USER_IN_URL = regex(r"//[^/@\s]*@")
"""User information before the host of an address, which may contain a password."""

_NAME = regex(rb'"Event"\s*:\s*"([^"\\]{1,200})"')
_MAX_NAMES = 1000

_EVENT = b'{"Event":"'
"""The start of a line as Spark writes it; a tool that rewrote the log may add blanks, or order the fields."""

_HEAD = regex(rb'\s{0,100}\{\s{0,100}"Event"\s{0,100}:\s{0,100}"([\w.$]{1,200})"')
_START, _VERSION = b"SparkListenerTaskStart", b"SparkListenerLogStart"
_NAMES = {each.encode() for each in _TYPES}
_OF_ALL = {each.encode() for each, kind in _TYPES.items() if kind in (TaskStart, TaskEnd, LogStart)}
"""Tasks that are not written as Spark does, and the version, which decides how later ones are read."""

UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""The errors of typed decoders."""

# A start as Spark writes it, whole; its other fields are read only where the task's end is missing.
_TASK_START = regex(
    rb'\s*\{\s*"Event"\s*:\s*"SparkListenerTaskStart"\s*,\s*"Stage ID"\s*:\s*\d+\s*,\s*"Stage Attempt ID"\s*:\s*\d+'
    rb'\s*,\s*"Task Info"\s*:\s*\{\s*"Task ID"\s*:\s*(\d{1,15})\s*,.*\}\s*\}\s*',
    re.DOTALL,
)


class _Named(Struct, gc=False):
    event: str = field(name="Event")


_named = msgspec.json.Decoder(_Named).decode


def name_of(line: bytes) -> bytes | None:
    """The name of the event on a line; None if it has none, or is not JSON, or the name is not plain."""
    if line.startswith(_EVENT):
        return line[10 : line.find(b'"', 10, 300)]
    if (match := _HEAD.match(line)) is not None:
        return match[1]
    if b'"Event"' not in line:
        return None
    try:
        return _named(line).event.encode()
    except UNREADABLE:
        return None


class Events:
    """The events of a log that the tables need; invalid lines are added to `problems`.

    Starts of tasks are put undecoded into `started`, by the task's id, because they are needed only if the task's end
    is missing.
    """

    def __init__(self, log: LogFile, problems: Problems, started: dict[float, TaskStart | bytes]) -> None:
        self._log, self._problems, self._started = log, problems, started
        self._decoders = {name.encode(): msgspec.json.Decoder(kind).decode for name, kind in _TYPES.items()}
        self._passed_over = PassedOver()
        self._unknown: Counter[str] = Counter()
        self._first_unknown = ""
        self._undecoded = 0

    def of(self, part: str, first_line: int, lines: Iterable[tuple[int, bytes]]) -> Iterator[Event]:
        """The events of some lines of a part, each with its number from `first_line` on, in order."""
        decoders, started, passed_over = self._decoders, self._started, self._passed_over
        for position, line in lines:
            name = name_of(line)
            if name == _START and (match := _TASK_START.fullmatch(line)):
                started[float(match[1])] = line
                continue
            if name is not None:
                decode = decoders.get(name)
                if decode is not None and not is_dense(line):
                    try:
                        yield decode(line)
                        continue
                    except UNREADABLE:
                        pass
                elif decode is None and line.rstrip().endswith(b"}") and passed_over[name]:
                    continue
            elif not line or line.isspace():
                continue
            where = f"line {first_line + position}"
            event = _from_odd_line(line, part, where, self._problems)
            if event is None:
                self._undecoded += 1
                check_undecodable(self._undecoded, first_line + position, part)
            if isinstance(event, str):
                if not _PASSED_OVER.fullmatch(event):
                    self._first_unknown = self._first_unknown or where
                    is_one = event in self._unknown or len(self._unknown) < _MAX_NAMES
                    self._unknown[event if is_one else "others"] += 1
            elif event is not None:
                yield event

    def note_unknown(self) -> None:
        """Add the unknown kinds of events to the problems."""
        if self._unknown:
            names = ", ".join(f"{shortened(name, 80)} ({count})" for name, count in self._unknown.most_common(5))
            meaning = f"unknown kinds of events were skipped: {names}"
            total = self._unknown.total()
            self._problems.add("unknown_event", "info", self._log.origin, self._first_unknown, meaning, total)


class PassedOver(dict[bytes, bool]):
    """By the name of an event whether it is one of Spark's own without data for the tables."""

    def __missing__(self, name: bytes) -> bool:
        known = _PASSED_OVER.fullmatch(name.decode(errors="replace")) is not None
        if len(self) < _MAX_NAMES:
            self[name] = known
        return known


def is_version(line: bytes) -> bool:
    """Whether a line, as Spark writes it, has Spark's version."""
    return line.startswith(_EVENT) and name_of(line) == _VERSION


def task_end(line: bytes, decode: Callable[[bytes], TaskEnd]) -> tuple[TaskEnd, TaskInfo] | None:
    """The end of a task that needs no other event; None if only Events can read it."""
    try:
        end = None if is_dense(line) else decode(line)
    except UNREADABLE:
        return None
    if end is None or end.stage_id is None or end.info is None:
        return None
    return None if None in (end.info.task_id, end.info.launch, end.info.executor) else (end, end.info)


def is_no_task(line: bytes, passed_over: PassedOver) -> bool | None:
    """Whether Events has to read a line, which is of no task.

    None if it may decide how others are read, or is not as Spark writes it: then Events has to read all lines.
    """
    name = name_of(line)
    if name is None:
        return None if line and not line.isspace() else False
    if name in _OF_ALL or b"\\" in name:
        return None
    return name in _NAMES or not (line.rstrip().endswith(b"}") and passed_over[name])


def task_start(line: bytes) -> TaskStart | None:
    """The event of an undecoded start; None if the line is damaged."""
    try:
        event: TaskStart | None = _decode(line, TaskStart)
    except RecursionError:
        return None
    return event


def plan_rows(plan: Raw) -> list[Operator]:
    """The operators of a SQL plan, pre-order.

    Raises ValueError if the plan is too deep or damaged.
    """
    try:
        root = _decode(bytes(plan), PlanNode)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if root is None:
        raise ValueError("it is damaged")
    rows: list[Operator] = []
    waiting: list[tuple[PlanNode, int | None]] = [(root, None)]
    while waiting:
        node, parent = waiting.pop()
        node_id = len(rows)
        metrics = [
            (accumulator_id, (each.name or "")[:100], (each.kind or "")[:100])
            for each in node.metrics or []
            if (accumulator_id := whole_number(each.accumulator_id, 1 << 53)) is not None
        ]
        location = USER_IN_URL.sub("//", (node.metadata.location if node.metadata else None) or "")
        name, detail = shortened(node.name) or "unknown", shortened(_without_location(node.detail))
        rows.append(Operator(node_id, parent, name, detail, shortened(location), metrics))
        waiting.extend((child, node_id) for child in reversed(node.children or []))
    return rows


_LOCATION = regex(r"(?:Format: \w{1,20}, )?Location: .{0,2000}?(?=PartitionFilters: |PushedFilters: |ReadSchema: )")


def _without_location(detail: str | None) -> str | None:
    """A scan's description without its location, which has a column of its own, so that its filters are not cut off."""
    return None if detail is None else _LOCATION.sub("", detail, count=1)


def whole_number(value: float | None, largest: int = (1 << 31) - 1) -> int | None:
    """An id or a count in Spark's range; None for other values."""
    return int(value) if value is not None and 0 <= value <= largest else None


def whole_numbers(values: Iterable[float | None], largest: int = (1 << 31) - 1) -> list[int]:
    """The valid ids among the values, in order."""
    return [number for number in (whole_number(value, largest) for value in values) if number is not None]


# Lines that the typed decoders do not take ----------------------------------------------------------------------------


def _from_odd_line(line: bytes, origin: str, where: str, problems: Problems) -> Event | str | None:
    """An event read without types; the name of an event without a type; None if the line is invalid."""
    try:
        value = _any_json(line)
    except RecursionError:
        return _from_fragments(line, origin, where, problems)
    except ValueError:
        if b"sparkPlanInfo" in line[: 1 << 20] or b"physicalPlanDescription" in line[: 1 << 20]:
            return _from_fragments(line, origin, where, problems)
        meaning = "lines that are not JSON were left out; their events are missing"
        problems.add("damaged_line", "data loss", origin, where, meaning)
        return None
    name = value.get("Event") if isinstance(value, dict) else None
    if not isinstance(name, str):
        problems.add("not_an_event", "error", origin, where, "lines without the name of an event were left out")
        return None
    kind = _TYPES.get(name)
    if kind is None:
        return name
    meaning = "fields of an unexpected type were converted, or count as missing"
    problems.add("odd_field", "info", origin, where, meaning)
    return _repaired_struct(value, kind)


def _from_fragments(line: bytes, origin: str, where: str, problems: Problems) -> Event | None:
    """The identity of a SQL query, from a line whose plan cannot be read (too deep, too long, damaged)."""
    name = _NAME.search(line[:300])
    kind = _TYPES.get(name[1].decode(errors="replace")) if name else None
    meaning = "plans that are too deep, too long or damaged were left out; their operators are missing"
    problems.add("unreadable_plan", "data loss", origin, where, meaning)
    if kind is not SqlStart:
        return None
    start, end = line[: 1 << 20], line[-(64 << 10) :]
    sql_id, root = (re.search(rb'"%s":(\d{1,18})\b' % key, start) for key in (b"executionId", b"rootExecutionId"))
    times = re.findall(rb'"time":(\d{1,18})\b', end)
    description = re.search(rb'"description":("(?:[^"\\]|\\.){0,2000}")', start)
    return SqlStart(
        sql_id=float(sql_id[1]) if sql_id else None,
        root_sql_id=float(root[1]) if root else None,
        description=_decode(description[1], str) if description else None,
        time=float(times[-1]) if times else None,
    )


def _decode(text: bytes, kind: Any) -> Any:
    """Decode typed if possible, else field by field; None if it is not JSON of that shape.  May raise
    RecursionError."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    try:
        return _repaired(_any_json(text), kind)
    except ValueError:
        return None


def _any_json(line: bytes) -> Any:
    """Decode what Python's own parser accepts too: NaN, lone surrogates, numbers out of range, invalid UTF-8.

    Raises ValueError, also for more values than MOST_VALUES.
    """
    if is_dense(line):
        raise ValueError("too many values")
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return json.loads(line.decode("utf-8", errors="replace"))


def _repaired_struct(value: dict[str, Any], kind: type[_S]) -> _S:
    hints = _hints(kind)
    given = {
        each.name: _repaired(value[each.encode_name], hints[each.name])
        for each in msgspec.structs.fields(kind)
        if each.encode_name in value
    }
    return kind(**given)


@cache
def _hints(kind: type[Struct]) -> dict[str, Any]:
    """The types of its fields, cached: without that they took a tenth of the time of a damaged log."""
    return get_type_hints(kind)


def _repaired(value: Any, wanted: Any) -> Any:
    """`value` as the wanted type, or None."""
    if wanted is Raw:
        return Raw(json.dumps(value).encode())
    origin = get_origin(wanted)
    if origin in (types.UnionType, Union):
        return _repaired(value, get_args(wanted)[0])
    if origin is list:
        items = [_repaired(each, get_args(wanted)[0]) for each in value] if isinstance(value, list) else []
        return [each for each in items if each is not None]
    if origin is dict:
        given = value if isinstance(value, dict) else {}
        repaired = {str(key): _repaired(each, get_args(wanted)[1]) for key, each in given.items()}
        return {key: each for key, each in repaired.items() if each is not None}
    if wanted is float:
        return _number(value)
    if wanted is bool:
        return value if isinstance(value, bool) else None
    if wanted is str:
        return _text(value)
    return _repaired_struct(value, wanted) if isinstance(value, dict) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace").decode("utf-8")  # a lone surrogate cannot be stored
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
