"""Collects the contents of a Spark event log, event by event.

Memory grows with tasks, stages, jobs and operators, not with the log.  Values stay as the log has them, times in Unix
milliseconds on the driver's clock; tables.py makes tables of them and repairs implausible ones.
"""

from __future__ import annotations

import json
import re
import struct
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark import saved
from crystalperf.query.frameworks.spark.failures import cause, loss
from crystalperf.query.frameworks.spark.log import events as spark
from crystalperf.query.frameworks.spark.log.arrays import event_batches
from crystalperf.query.frameworks.spark.log.gpu import GpuTimes, gpu_times
from crystalperf.query.frameworks.spark.log.micro_batches import Batches
from crystalperf.query.frameworks.spark.log.peaks import Peaks
from crystalperf.query.frameworks.spark.log.reasons import MAX_REASONS, Reason, explained, in_plan, of_gluten
from crystalperf.query.frameworks.spark.log.statements import STATEMENT_EVENTS, Statements
from crystalperf.query.frameworks.spark.log.task_rows import MAX_TEXTS, TASK_FIELDS, TaskLines
from crystalperf.query.inputs.containers import Batch, LogFile
from crystalperf.query.inputs.line_rows import Rows, line_of
from crystalperf.query.trace.records import Problems, coded, shortened
from crystalperf.query.trace.redaction import HIDDEN, is_secret

Floats = npt.NDArray[np.float64]

_CHUNK = 4_096  # tasks buffered as rows before they become columns
_LARGEST_INT = 1 << 31
_LARGEST_LONG = 1 << 53  # of ids that are long in Spark; larger ones no float holds
MAX_ATTEMPTS = 1 << 16  # of one stage
_MAX_TAGS = 10  # of one job or query

STATUS = ("succeeded", "failed", "killed", "unfinished", "resubmitted")
SUCCEEDED, FAILED, KILLED, UNFINISHED, RESUBMITTED = range(5)

_ROW = struct.Struct(f"{len(TASK_FIELDS)}d")

_KEPT_PROPERTIES = regex(
    r"spark\.(master|submit\.deployMode|default\.parallelism|task\.cpus|scheduler\.mode|speculation|rdd\.compress"
    r"|executor\.(cores|memory|memoryOverhead|memoryOverheadFactor|pyspark\.memory|instances|metrics\.pollingInterval)"
    r"|driver\.(cores|memory)|cores\.max|locality\.wait(\.\w+)?"
    r"|memory\.(fraction|storageFraction|offHeap\.enabled|offHeap\.size)|dynamicAllocation\.[\w.]+"
    r"|shuffle\.(compress|spill\.compress|service\.enabled|push\.enabled|manager|sort\.bypassMergeThreshold)"
    r"|broadcast\.compress|io\.compression\.codec"
    r"|(storage\.)?decommission\.enabled|storage\.decommission\.(shuffleBlocks|rddBlocks)\.enabled"
    r"|eventLog\.(enabled|compress|compression\.codec|rolling\.enabled|logStageExecutorMetrics)"
    r"|sql\.(shuffle\.partitions|autoBroadcastJoinThreshold|exchange\.reuse|join\.preferSortMergeJoin|adaptive\.[\w.]+)"
    r"|sql\.files\.(maxPartitionBytes|openCostInBytes)|profiler\.[\w.]+|hadoop\.fs\.defaultFS"
    r"|sql\.execution\.(pythonUDF\.arrow\.enabled|arrow\.maxRecordsPerBatch)|python\.worker\.(reuse|memory)"
    r"|plugins|sql\.(extensions|extendedExplainProviders)|(rapids\.sql|comet|gluten|gluten\.ui|auron)\.enabled"
    r"|rapids\.sql\.explain|(executor|task)\.resource\.gpu\.amount"
    r"|repl\.class\.uri|databricks\.clusterSource)"
)
_URL = regex(r"[a-z][a-z0-9+]{1,15}:/")
_NUMBER = regex(rb'"?(\d{1,18})"?')

KINDS = ("scan", "cached", "shuffle read", "shuffle write", "broadcast", "python", "output")
"""Kinds of data that tasks of a stage may read and write, in the order of output."""

_SCANS = regex(
    r"^(Batch|Gpu|Photon|Comet\w*|Native\w*)?Scan\b|Scan(Exec)?Transformer|FileScan|HadoopRDD|FileScanRDD|DataSourceRDD"
    r"|JDBCRDD|TableScan"
)
_PYTHON = regex(r"Python|Pandas|ArrowEval|InArrow")
_SHUFFLED = regex(r"Shuffled|CoGroupedRDD|AQEShuffleRead|CustomShuffleReader")


class Job(Struct):
    job_id: int
    submit: float | None
    stage_ids: list[int]
    name: str | None = None
    call_site: str | None = None
    sql_id: int | None = None
    group: str | None = None
    tags: tuple[str, ...] = ()
    end: float | None = None
    result: str | None = None
    error: str | None = None
    started: bool = True  # whether the log has its start


class Stage(Struct):
    stage_id: int
    attempt: int
    name: str | None
    task_count: int | None
    parents: list[int]
    rdd_id: int | None
    submit: float | None = None
    end: float | None = None
    failure: str | None = None
    profile: int | None = None
    pool: str | None = None
    accumulators: list[int] | None = None
    metric_values: dict[int, float] = field(default_factory=dict)  # accumulator to its value when the stage ended
    location: str | None = None
    kept: dict[int, int] = field(default_factory=dict)  # RDDs cached in executors' memory, and their partitions
    kind: str | None = None
    gpu: GpuTimes | None = None
    barrier: bool = False  # whether its tasks start together
    mergers: int | None = None  # shuffle services that merge its output, with push-based shuffle
    ran: bool = False
    completed: bool = False


class Executor(Struct):
    executor_id: str
    host: str | None = None
    cores: float | None = None
    profile: int = 0
    usable_bytes: float | None = None  # of its heap, by its block manager
    added: float | None = None
    removed: float | None = None
    reason: str | None = None
    announced: bool = False


class SqlQuery(Struct):
    sql_id: int
    root: int | None
    name: str | None
    call_site: str | None
    start: float | None
    tags: tuple[str, ...] = ()
    end: float | None = None
    error: str | None = None
    records_errors: bool = False  # its end records errors, as in Spark 3.4 and newer


class Texts(dict[str | None, int]):
    """Codes of texts that repeat in a million tasks: `texts[text]` is the text's code."""

    def __missing__(self, text: str | None) -> int:
        if len(self) >= MAX_TEXTS:
            return self.setdefault("others", len(self))
        self[text] = number = len(self)
        return number

    def column(self, codes: Floats) -> Any:
        """The column of these codes' texts."""
        return coded(codes, list(self))


class Parts(NamedTuple):
    """Values for the parts of a task's metrics that its log left out."""

    read: spark.ShuffleRead
    write: spark.ShuffleWrite
    given: spark.Input
    taken: spark.Output


_NOT_PUSHED = spark.PushRead()
_UNKNOWN = Parts(spark.ShuffleRead(), spark.ShuffleWrite(), spark.Input(), spark.Output())
_ZERO = Parts(
    spark.ShuffleRead(0.0, 0.0, 0.0, 0.0), spark.ShuffleWrite(0.0, 0.0), spark.Input(0.0, 0.0), spark.Output(0.0)
)
_NO_METRICS = spark.TaskMetrics()


class LoggedRun(Struct):
    """The contents of a log collected so far."""

    log: LogFile
    problems: Problems
    version: str | None = None
    java: str | None = None
    name: str | None = None
    app_id: str | None = None
    attempt: str | None = None
    start: float | None = None
    end: float | None = None
    ended: bool = False
    exit_code: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    set_by: dict[str, str] = field(default_factory=dict)  # by setting: program, session or unclear (schema.sql)
    archives: set[str] = field(default_factory=set)
    profiles: dict[int, spark.ResourceProfile] = field(default_factory=dict)
    executors: dict[str, Executor] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    stages: dict[tuple[int, int], Stage] = field(default_factory=dict)
    planned: dict[int, Stage] = field(default_factory=dict)
    sql: dict[int, SqlQuery] = field(default_factory=dict)
    plans: dict[int, Raw] = field(default_factory=dict)
    explanations: dict[int, bytes] = field(default_factory=dict)
    operators: dict[int, list[spark.Operator]] = field(default_factory=dict)
    driver_metrics: dict[tuple[int, int], float] = field(default_factory=dict)  # by query and accumulator
    fallback_reasons: dict[int, list[Reason]] = field(default_factory=dict)  # of operators on the JVM, by query
    running: dict[float, spark.TaskStart | bytes] = field(default_factory=dict)
    left_out: Parts = _UNKNOWN
    rows: bytearray = field(default_factory=lambda: bytearray(_CHUNK * _ROW.size))
    row_count: int = 0  # of `rows` that are filled
    tasks: list[Floats] = field(default_factory=list)  # columns, (TASK_FIELDS, some thousand)
    executor_names: Texts = field(default_factory=Texts)
    hosts: Texts = field(default_factory=Texts)
    localities: Texts = field(default_factory=Texts)
    reasons: Texts = field(default_factory=Texts)
    batches: Batches = field(default_factory=Batches)
    statements: Statements = field(default_factory=Statements)
    peaks: Peaks = field(default_factory=Peaks)

    def add(self, name: str, severity: Any, meaning: str, count: int = 1, where: str | None = None) -> None:
        if count:
            self.problems.add(name, severity, self.log.origin, where, meaning, count)


def collect(log: LogFile) -> LoggedRun:
    """The contents of one attempt's event log.

    Raises InputError if the log cannot be read or has no event of an application.
    """
    run = LoggedRun(log, Problems(log.problems))
    events = spark.Events(log, run.problems, run.running)
    tasks = _BatchTasks(run)
    for batch in (saved.event_batches if saved.is_saved(log) else event_batches)(log, run.problems):
        rest = batch
        if spark.is_version(batch.first):  # it decides how the tasks are read
            _handle(run, events.of(batch.part.name, batch.first_line, [(0, batch.first)]))
            rest = replace(batch, first=b"")
        others = tasks.take(rest)
        _handle(run, events.of(batch.part.name, batch.first_line, enumerate(rest.lines) if others is None else others))
    events.note_unknown()
    for sql_id in sorted({*run.plans, *run.explanations}):
        _read_plan(run, sql_id)
    _add_running_tasks(run)
    _flush(run)
    if not (run.start or run.jobs or run.stages or run.tasks or run.executors or run.properties):
        raise InputError(f"{log.origin}: {_why_empty(run)}")
    return run


def _why_empty(run: LoggedRun) -> str:
    for problem in run.problems:
        if problem.severity != "info":
            where = f" ({problem.first_where})" if problem.first_where else ""
            return f"CrystalPerf cannot read any Spark event from it: {problem.meaning}{where}"
    return "it has no event of a Spark application; use the event log that Spark wrote (spark.eventLog.dir)"


def _handle(run: LoggedRun, events: Iterable[spark.Event]) -> None:
    for event in events:
        try:
            _HANDLERS[type(event)](run, event)
        except _IncompleteError as error:
            _incomplete(run, str(error))


class _IncompleteError(Exception):
    """An event lacks what identifies it; the text names the event."""


# Events -----------------------------------------------------------------------------------------------------------


def _on_task_start(run: LoggedRun, event: spark.TaskStart) -> None:
    if event.info is None or event.info.task_id is None or event.stage_id is None:
        raise _IncompleteError("task start")
    run.running[event.info.task_id] = event


def _on_task_end(run: LoggedRun, event: spark.TaskEnd) -> None:
    info = event.info
    if info is None or info.task_id is None or event.stage_id is None:
        raise _IncompleteError("task end")
    start = run.running.pop(info.task_id, None)
    if start is not None and (info.launch is None or info.executor is None):
        started = _started(start)
        if started is not None and started.info is not None:
            info.launch = started.info.launch if info.launch is None else info.launch
            info.executor = info.executor or started.info.executor
    _append_task(run, _ended(run, event, info))


def _ended(run: LoggedRun, event: spark.TaskEnd, info: spark.TaskInfo) -> tuple[float | None, ...]:
    """A task that ended, in the order of TASK_FIELDS; adds its executor's peaks to the run."""
    status, reason = SUCCEEDED, None
    if event.reason is None or event.reason.reason != "Success":
        status, reason = _end_of(event.reason, info)
    if event.executor_metrics is not None:
        run.peaks.add(info.executor, event.stage_id, event.stage_attempt, event.executor_metrics)
    return _row(run, event, info, status, reason, event.metrics)


def _on_stage_metrics(run: LoggedRun, event: spark.StageExecutorMetrics) -> None:
    if event.metrics is not None:
        run.peaks.add(event.executor, event.stage_id, event.stage_attempt, event.metrics)


def _on_metrics_update(run: LoggedRun, event: spark.ExecutorMetricsUpdate) -> None:
    for each in event.stages or []:
        if each.metrics is not None:
            run.peaks.add(event.executor, each.stage_id, each.stage_attempt, each.metrics)


def _started(start: spark.TaskStart | bytes) -> spark.TaskStart | None:
    return spark.task_start(start) if isinstance(start, bytes) else start


def _row(
    run: LoggedRun,
    event: spark.TaskStart | spark.TaskEnd,
    info: spark.TaskInfo,
    status: int,
    reason: str | None,
    metrics: spark.TaskMetrics | None,
) -> tuple[float | None, ...]:
    """A task in the order of TASK_FIELDS."""
    if metrics is None:
        metrics, (read, write, given, taken) = _NO_METRICS, _UNKNOWN
    else:
        left_out = run.left_out
        read, write = metrics.shuffle_read or left_out.read, metrics.shuffle_write or left_out.write
        given, taken = metrics.input or left_out.given, metrics.output or left_out.taken
    return (
        info.task_id,
        event.stage_id,
        event.stage_attempt or 0.0,
        info.index,
        info.partition,
        info.attempt,
        run.executor_names[info.executor],
        run.hosts[info.host],
        run.localities[info.locality],
        status,
        run.reasons[reason],
        info.speculative,
        info.launch,
        info.finish,
        info.getting_result,
        metrics.deserialize,
        metrics.deserialize_cpu_ns,
        metrics.run,
        metrics.run_cpu_ns,
        metrics.result_serialize,
        metrics.gc,
        read.fetch_wait,
        write.time_ns,
        given.bytes,
        taken.bytes,
        read.remote_read_bytes,
        read.local_read_bytes,
        write.bytes,
        metrics.spill_memory,
        metrics.spill_disk,
        metrics.peak_memory,
        metrics.result_bytes,
        given.rows,
        read.rows,
        spark.NAN if given.method is None else given.method in ("Memory", "Network"),  # of any executor's memory
        *_merged(read.push or _NOT_PUSHED),
    )


def _append_task(run: LoggedRun, row: tuple[float | None, ...]) -> None:
    place = run.row_count * _ROW.size
    try:
        _ROW.pack_into(run.rows, place, *row)
    except struct.error:  # a null
        _ROW.pack_into(run.rows, place, *(spark.NAN if each is None else each for each in row))
    run.row_count += 1
    if run.row_count == _CHUNK:
        _flush(run)


def _merged(push: spark.PushRead) -> tuple[float, float | None]:
    """Bytes of merged blocks, and blocks that could not be read."""
    return (push.remote_bytes or 0.0) + (push.local_bytes or 0.0), push.fallbacks


def _add_running_tasks(run: LoggedRun) -> None:
    """Add tasks that have a start but no end in the log."""
    for start in run.running.values():
        event = _started(start)
        if event is None or event.info is None or event.info.task_id is None or event.stage_id is None:
            _incomplete(run, "task start")
        else:
            _append_task(run, _row(run, event, event.info, UNFINISHED, None, None))
    run.running.clear()


class _BatchTasks:
    """Takes over the tasks of whole batches, by compiled code (task_rows.py)."""

    def __init__(self, run: LoggedRun) -> None:
        self._run = run
        self._decode = Decoder(spark.TaskEnd).decode
        self._passed_over = spark.PassedOver()
        self._lines: dict[bool, TaskLines] = {}

    def take(self, batch: Batch) -> Iterable[tuple[int, bytes]] | None:
        """Add the starts and ends of tasks to the run, and return all other lines with their positions.

        None, with nothing added, if they may depend on earlier lines or are not as Spark writes them.
        """
        run, zeros = self._run, self._run.left_out is _ZERO
        if zeros not in self._lines:
            self._lines[zeros] = TaskLines((run.executor_names, run.hosts, run.localities), zeros=zeros)
        lines = self._lines[zeros]
        found = lines.read(batch, run.reasons[None])
        if found is None:
            return None
        columns, rows = found
        others: list[tuple[int, bytes]] = []
        ends: dict[int, tuple[spark.TaskEnd, spark.TaskInfo]] = {}
        for position, row, begin, end in rows.others:
            line = line_of(batch, begin, end)
            if row >= 0:
                end_event = spark.task_end(line, self._decode)
                if end_event is None:
                    return None
                ends[row] = end_event
            elif (is_other := spark.is_no_task(line, self._passed_over)) is None:
                return None
            elif is_other:
                others.append((position, line))
        for row, (event, info) in ends.items():
            values = _ended(run, event, info)
            columns[:, row] = [spark.NAN if each is None else each for each in values]
        lines.add_peaks(rows, run.peaks, list(run.executor_names))
        self._note_started(batch, columns[0], rows)
        _flush(run)
        if columns.shape[1]:
            run.tasks.append(columns)
        return others

    def _note_started(self, batch: Batch, ended: Floats, rows: Rows) -> None:
        """Keep the lines of tasks that started in a batch, and have no end after that, until one comes."""
        running = self._run.running
        ids = ended.tolist()
        deque(map(running.pop, ids, repeat(None)), maxlen=0)
        last = dict(zip(ids, rows.positions.tolist(), strict=True))
        running.update(
            (task_id, line_of(batch, begin, end))
            for task_id, position, begin, end in rows.like
            if last.get(task_id, -1) < position
        )


def _flush(run: LoggedRun) -> None:
    if run.row_count:
        rows = np.frombuffer(run.rows, count=run.row_count * len(TASK_FIELDS)).reshape(run.row_count, -1)
        run.tasks.append(rows.T.copy())
        run.row_count = 0


def _end_of(reason: spark.EndReason | None, info: spark.TaskInfo) -> tuple[int, str | None]:
    """Status and text of a task that did not end with 'Success'."""
    if reason is None or reason.reason is None:
        status = KILLED if info.killed else FAILED if info.failed else SUCCEEDED
        return status, None
    if reason.reason == "Resubmitted":
        return RESUBMITTED, reason.reason
    return (KILLED if reason.reason == "TaskKilled" else FAILED), _why(reason)


def _why(reason: spark.EndReason) -> str | None:
    """Why a task did not succeed, on one line: the kind of end, or the exception and the last of its causes."""
    if reason.class_name or reason.stack:
        thrown = ": ".join(each for each in (reason.class_name, reason.description) if each)
        stack = reason.stack or ""
        return cause(stack if thrown in stack or "Caused by: " in stack else thrown) or reason.reason
    if reason.reason == "FetchFailed" and reason.message:
        return cause(reason.message)
    details = (reason.kill_reason, loss(reason.loss_reason or ""), cause(reason.message))
    return shortened(": ".join([reason.reason or "", *(each for each in details if each)]))


def _on_stage_submitted(run: LoggedRun, event: spark.StageSubmitted) -> None:
    stage = _stage(event.info)
    if stage is None:
        raise _IncompleteError("stage submission")
    stage.ran = True
    if event.properties is not None:
        stage.pool = shortened(event.properties.pool)
    run.stages.setdefault((stage.stage_id, stage.attempt), stage)


def _on_stage_completed(run: LoggedRun, event: spark.StageCompleted) -> None:
    stage = _stage(event.info)
    if stage is None or event.info is None:
        raise _IncompleteError("stage completion")
    before = run.stages.get((stage.stage_id, stage.attempt))
    if before is not None:
        stage.pool = before.pool
        stage.submit = before.submit if stage.submit is None else stage.submit
    stage.ran = stage.completed = True
    accumulables = event.info.accumulables or []
    metrics = [each for each in accumulables if each.name is None or not each.name.startswith("internal.metrics.")]
    stage.accumulators = sorted(set(spark.whole_numbers((each.accumulator_id for each in metrics), _LARGEST_LONG)))
    stage.metric_values = _values(metrics)
    stage.gpu = gpu_times(metrics)
    stage.kind = _kind(event.info, {each.name or "" for each in accumulables})
    run.stages[stage.stage_id, stage.attempt] = stage


def _stage(info: spark.StageInfo | None) -> Stage | None:
    stage_id = spark.whole_number(info.stage_id) if info else None
    attempt = spark.whole_number(info.attempt or 0, MAX_ATTEMPTS - 1) if info else None
    if info is None or stage_id is None or attempt is None:
        return None
    return Stage(
        stage_id=stage_id,
        attempt=attempt,
        name=shortened(info.name),
        task_count=spark.whole_number(info.task_count),
        parents=spark.whole_numbers(info.parents or []),
        rdd_id=spark.whole_number(info.rdds[0].rdd_id) if info.rdds else None,
        submit=info.submit,
        end=info.end,
        failure=cause(info.failure),
        profile=spark.whole_number(info.resource_profile),
        location=_location(info),
        kept=_kept(info),
        barrier=any(each.barrier for each in info.rdds or []),
        mergers=spark.whole_number(info.mergers) if info.is_pushed else None,
    )


def _values(metrics: list[spark.Accumulable]) -> dict[int, float]:
    """Values of accumulators that are numbers; SQL metrics have them in quotes."""
    found = {}
    for each in metrics:
        accumulator_id = spark.whole_number(each.accumulator_id, _LARGEST_LONG)
        if accumulator_id is not None and (number := _NUMBER.fullmatch(bytes(each.value))):
            found[accumulator_id] = float(number[1])
    return found


def _location(info: spark.StageInfo) -> str | None:
    """The storage in the name of an RDD that was read from a file: hdfs://namenode/data."""
    names = (each.name or "" for each in info.rdds or [])
    return next((shortened(spark.USER_IN_URL.sub("//", name)) for name in names if _URL.match(name)), None)


def _kept(info: spark.StageInfo) -> dict[int, int]:
    """The RDDs of a stage that are cached in executors' memory, and the partitions of each."""
    found = {}
    for each in info.rdds or []:
        rdd_id, partitions = spark.whole_number(each.rdd_id), spark.whole_number(each.partitions)
        if rdd_id is not None and partitions and each.storage and each.storage.memory:
            found[rdd_id] = partitions
    return found


def _kind(info: spark.StageInfo, metrics: set[str]) -> str:
    """Kinds of data that the tasks of a stage read and write, by the RDDs they compute and the metrics they updated."""
    names = {each.name or "" for each in info.rdds or []}
    names |= {_scope(scope) for scope in {each.scope for each in info.rdds or []}}
    cached = any(each.storage and (each.storage.disk or each.storage.memory) for each in info.rdds or [])
    shuffle_read = any(name.startswith("internal.metrics.shuffle.read.") for name in metrics)
    found = {
        "scan": any(_SCANS.search(name) for name in names) or "internal.metrics.input.bytesRead" in metrics,
        "cached": cached or any("InMemoryTableScan" in name for name in names),
        "shuffle read": shuffle_read or any(_SHUFFLED.search(name) for name in names),
        "shuffle write": any(name.startswith("internal.metrics.shuffle.write.") for name in metrics),
        "broadcast": any("BroadcastExchange" in name for name in names),
        "python": any(_PYTHON.search(name) for name in names | metrics),
        "output": "internal.metrics.output.bytesWritten" in metrics,
    }
    return ", ".join(name for name in KINDS if found[name])


def _scope(text: str | None) -> str:
    """The name in an RDD's scope, which is JSON within JSON."""
    match = re.search(r'"name":"((?:[^"\\]|\\.){0,200})"', text or "")
    try:
        return str(json.loads(f'"{match[1]}"')) if match else ""
    except ValueError:
        return ""


def _on_job_start(run: LoggedRun, event: spark.JobStart) -> None:
    job_id = spark.whole_number(event.job_id)
    if job_id is None:
        raise _IncompleteError("job start")
    infos = [stage for stage in map(_stage, event.stages or []) if stage is not None]
    ids = event.stage_ids or [stage.stage_id for stage in infos]
    job = Job(job_id, event.submit, sorted(set(spark.whole_numbers(ids))))
    last = max(infos, key=lambda stage: stage.stage_id, default=None)
    job.name = last.name if last else None
    if event.properties is not None:
        given = event.properties
        job.sql_id = int(given.sql_id) if given.sql_id and re.fullmatch(r"[0-9]{1,15}", given.sql_id) else None
        job.group, job.call_site = shortened(given.job_group), shortened(given.call_site)
        job.tags = _tags(given.job_group, (given.tags or "").split(","))
        job.name = shortened(given.description) or job.call_site or job.name
    run.jobs.setdefault(job.job_id, job)
    for stage in infos:
        run.planned.setdefault(stage.stage_id, stage)


def _tags(group: str | None, tags: Iterable[str]) -> tuple[str, ...]:
    """The group and the tags by which a server marks the work of a statement."""
    found = [tag for each in (group, *tags) if (tag := shortened(each))]
    return tuple(found[:_MAX_TAGS])


def _on_job_end(run: LoggedRun, event: spark.JobEnd) -> None:
    job_id = spark.whole_number(event.job_id)
    if job_id is None:
        raise _IncompleteError("job end")
    job = run.jobs.get(job_id)
    if job is None:
        job = run.jobs[job_id] = Job(job_id, None, [], started=False)
        meaning = "jobs without a start in the log are known only from their end and from stages without another job"
        run.add("missing_job_start", "data loss", meaning)
    job.end = event.end
    if event.result is not None:
        job.result = event.result.result
        job.error = cause(event.result.exception.message) if event.result.exception else None


def _on_executor_added(run: LoggedRun, event: spark.ExecutorAdded) -> None:
    if event.executor is None:
        raise _IncompleteError("executor")
    executor = run.executors.setdefault(event.executor, Executor(event.executor))
    if not executor.announced:
        executor.announced = True
        executor.added = event.time
        if event.info is not None:
            executor.host, executor.cores = event.info.host, event.info.cores
            executor.profile = spark.whole_number(event.info.resource_profile) or 0


def _on_block_manager_added(run: LoggedRun, event: spark.BlockManagerAdded) -> None:
    name = event.manager.executor if event.manager else None
    if event.manager is None or name is None:
        return
    name = "driver" if name == "<driver>" else name  # Spark before 1.4
    executor = run.executors.setdefault(name, Executor(name))
    if executor.added is None:
        executor.added = event.time
    executor.host = executor.host or event.manager.host
    executor.usable_bytes = event.on_heap_bytes


def _on_executor_removed(run: LoggedRun, event: spark.ExecutorRemoved) -> None:
    if event.executor is None:
        raise _IncompleteError("executor")
    executor = run.executors.setdefault(event.executor, Executor(event.executor))
    if executor.removed is not None and "decommission" in (executor.reason or "").lower():
        return  # its process ends after that, which Spark logs as a second removal
    executor.removed, executor.reason = event.time, loss(event.reason or "")


def _on_resource_profile(run: LoggedRun, event: spark.ResourceProfile) -> None:
    profile_id = spark.whole_number(event.profile_id)
    if profile_id is not None:
        run.profiles[profile_id] = event


def _on_version(run: LoggedRun, event: spark.LogStart) -> None:
    run.version = run.version or shortened(event.version)
    if run.version is not None and run.version.startswith("1."):
        run.left_out = _ZERO  # Spark 1.x leaves out the parts of a task's metrics that are zero


def _on_environment(run: LoggedRun, event: spark.EnvironmentUpdate) -> None:
    if event.jvm is not None:
        run.java = run.java or shortened(event.jvm.java)
        if scala := re.search(r"\d+(\.\d+)+", event.jvm.scala or ""):
            run.archives.add(f"scala-library-{scala[0]}")
    for path in event.class_path or {}:
        name = path.rpartition("/")[2].rpartition("\\")[2]
        if name.endswith(".jar") and len(run.archives) < MAX_TEXTS:
            run.archives.add(shortened(name.removesuffix(".jar")) or "")
    command = (event.system or {}).get("sun.java.command") or ""
    for key, value in (event.properties or {}).items():
        if value is not None and (_KEPT_PROPERTIES.fullmatch(key) or key in ("spark.app.id", "spark.app.name")):
            run.properties[key] = _kept_value(key, value)
            if (source := _source(command, key, value)) is not None:
                run.set_by[key] = source


def _kept_value(key: str, value: str) -> str:
    return HIDDEN if is_secret(key) else spark.USER_IN_URL.sub("//", shortened(value) or "")


def _source(command: str, key: str, value: str) -> str | None:
    """The origin of a setting by the command of the driver's JVM; None for the command line, or if that is unknown.

    A Python program that starts Spark itself passes the settings of its builder in that command, as `pyspark-shell`.
    """
    if "SparkSubmit" not in command:
        return None
    if command.endswith("pyspark-shell") and "--name PySparkShell" not in command:
        return "program"
    if f"--conf {key}=" in command:
        return None if f"--conf {key}={value}" in command else "program"
    return None if key in ("spark.master", "spark.submit.deployMode") else "unclear"


def _on_application_start(run: LoggedRun, event: spark.ApplicationStart) -> None:
    if run.start is None:
        run.start, run.name = event.time, shortened(event.name)
        run.app_id, run.attempt = shortened(event.app_id), shortened(event.attempt)
    elif (event.time, shortened(event.app_id)) != (run.start, run.app_id):  # else it is a repetition
        meaning = "the log has the start of a second application; the name and id of the first are used"
        run.add("second_application", "error", meaning)


def _on_application_end(run: LoggedRun, event: spark.ApplicationEnd) -> None:
    run.ended, run.end = True, event.time
    if event.exit_code is not None and abs(event.exit_code) < _LARGEST_INT:
        run.exit_code = int(event.exit_code)


def _on_sql_start(run: LoggedRun, event: spark.SqlStart) -> None:
    sql_id = spark.whole_number(event.sql_id, _LARGEST_LONG)
    if sql_id is None:
        raise _IncompleteError("SQL query")
    root = spark.whole_number(event.root_sql_id, _LARGEST_LONG)
    first_line = (event.details or "").partition("\n")[0]
    tags = _tags(event.job_group, event.tags or ())
    query = SqlQuery(sql_id, root, shortened(event.description), shortened(first_line), event.time, tags)
    run.sql.setdefault(sql_id, query)
    for key, value in (event.modified or {}).items():
        if value is None or not _KEPT_PROPERTIES.fullmatch(key) or run.set_by.get(key) == "session":
            continue
        if run.properties.get(key) != _kept_value(key, value):
            run.properties[key] = _kept_value(key, value)
            run.set_by[key] = "session"
    _keep_plan(run, sql_id, event)


def _on_sql_plan(run: LoggedRun, event: spark.SqlPlanUpdate) -> None:
    sql_id = spark.whole_number(event.sql_id, _LARGEST_LONG)
    if sql_id is not None:
        _keep_plan(run, sql_id, event)


def _on_gluten_fallback(run: LoggedRun, event: spark.GlutenFallback) -> None:
    sql_id = spark.whole_number(event.sql_id, _LARGEST_LONG)
    if sql_id is None:
        raise _IncompleteError("SQL query")
    known = run.fallback_reasons.setdefault(sql_id, [])
    known += list(of_gluten(event.reasons or {}))[: MAX_REASONS - len(known)]


def _on_sql_end(run: LoggedRun, event: spark.SqlEnd) -> None:
    sql_id = spark.whole_number(event.sql_id, _LARGEST_LONG)
    if sql_id is None:
        raise _IncompleteError("SQL query")
    _read_plan(run, sql_id)
    if sql_id not in run.sql:
        run.sql[sql_id] = SqlQuery(sql_id, None, None, None, None)
        meaning = "SQL queries without a start in the log are known only from their end and their jobs"
        run.add("missing_sql_start", "data loss", meaning)
    query = run.sql[sql_id]
    query.end, query.error, query.records_errors = event.time, cause(event.error), event.error is not None


def _on_driver_metrics(run: LoggedRun, event: spark.SqlDriverMetrics) -> None:
    sql_id = spark.whole_number(event.sql_id, _LARGEST_LONG)
    if sql_id is None:
        raise _IncompleteError("SQL query")
    for update in event.updates or []:
        accumulator_id = spark.whole_number(update[0], _LARGEST_LONG) if len(update) == 2 else None
        if accumulator_id is not None:
            key = sql_id, accumulator_id
            run.driver_metrics[key] = run.driver_metrics.get(key, 0.0) + update[1]


def _on_query_progress(run: LoggedRun, event: spark.QueryProgress) -> None:
    if event.progress is None or not run.batches.add(event.progress):
        raise _IncompleteError("streaming batch")


def _on_statement(run: LoggedRun, event: spark.Event) -> None:
    if not run.statements.add(event):
        raise _IncompleteError("statement")


def _keep_plan(run: LoggedRun, sql_id: int, event: spark.SqlStart | spark.SqlPlanUpdate) -> None:
    """Keep the last plan undecoded: adaptive execution logs many, each up to megabytes."""
    if bytes(event.plan) not in (b"", b"null"):
        run.plans[sql_id] = event.plan.copy()  # a copy, because a slice would hold the whole line in memory
    if (explanation := explained(event.plan_text)) is not None:
        run.explanations[sql_id] = explanation


def _read_plan(run: LoggedRun, sql_id: int) -> None:
    explanation = run.explanations.pop(sql_id, None)
    if explanation is not None and (reasons := in_plan(explanation)) is not None:
        run.fallback_reasons[sql_id] = reasons
    plan = run.plans.pop(sql_id, None)
    if plan is None:
        return
    try:
        run.operators[sql_id] = spark.plan_rows(plan)
    except ValueError as error:
        meaning = f"a plan was left out because {error}; its query has no operators"
        run.add("unreadable_plan", "data loss", meaning, where=f"SQL query {sql_id}")


def _incomplete(run: LoggedRun, what: str) -> None:
    meaning = f"an event without an id, such as that of a {what}, was left out"
    run.add("incomplete_event", "data loss", meaning)


_HANDLERS: dict[type, Callable[[LoggedRun, Any], None]] = {
    spark.TaskStart: _on_task_start,
    spark.TaskEnd: _on_task_end,
    spark.StageExecutorMetrics: _on_stage_metrics,
    spark.ExecutorMetricsUpdate: _on_metrics_update,
    spark.StageSubmitted: _on_stage_submitted,
    spark.StageCompleted: _on_stage_completed,
    spark.JobStart: _on_job_start,
    spark.JobEnd: _on_job_end,
    spark.ExecutorAdded: _on_executor_added,
    spark.ExecutorRemoved: _on_executor_removed,
    spark.BlockManagerAdded: _on_block_manager_added,
    spark.ResourceProfile: _on_resource_profile,
    spark.LogStart: _on_version,
    spark.EnvironmentUpdate: _on_environment,
    spark.ApplicationStart: _on_application_start,
    spark.ApplicationEnd: _on_application_end,
    spark.SqlStart: _on_sql_start,
    spark.SqlPlanUpdate: _on_sql_plan,
    spark.GlutenFallback: _on_gluten_fallback,
    spark.SqlEnd: _on_sql_end,
    spark.SqlDriverMetrics: _on_driver_metrics,
    spark.QueryProgress: _on_query_progress,
    **dict.fromkeys(STATEMENT_EVENTS, _on_statement),
}
