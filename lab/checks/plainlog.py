"""An independent reader of Spark event logs: figures to check a verdict against.

This reader shares no code with CrystalPerf.  It reads the lines of a log with `json`, uses no plan, critical path or
model, and only counts and adds up values of single events.  Times are ms since the epoch, lengths are ms.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import zstandard

Interval = tuple[float, float]
"""Begin and end."""

Event = Mapping[str, Any]

NAME = re.compile(rb'"Event"\s*:\s*"([A-Za-z0-9_.$]+)"')
"""Matches the name of a line's event."""

_PARTS = re.compile(r"events_(\d+)_")
_HOME = re.compile(r"killed by driver|idle|decommission|with code 0\b|termination request|dynamic allocation", re.I)
_LOST = re.compile(r"exited|heartbeat|timed? ?out|lost|killed|fail|disassociated|memory|error", re.I)
_PYTHON = re.compile(r"Python|Pandas|Arrow(?:Eval|Aggregate|Window)", re.I)
_CANCELLED = re.compile(r"cancelled(?! because SparkContext was shut down)|InterruptedException|was stopped")
_SHELL = re.compile(r"spark\.repl|pyspark-shell-main|sparkr-shell-main|zeppelin|livy|jupyter|notebook", re.I)
_GPU = re.compile(r"com\.nvidia\.spark|rapids", re.I)


class UnreadableError(Exception):
    """A file that this reader cannot read, or that is not an event log."""


# Figures -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One attempt of a task; `finish` is None if no end was logged.

    `ended` is its end reason: Success, TaskKilled, or the error.
    """

    stage: tuple[int, int]
    task: int
    index: int
    executor: str
    launch: float
    finish: float | None
    ended: str
    cpu_ms: float = 0.0
    gc_ms: float = 0.0
    deserialize_cpu_ms: float = 0.0
    serialize_ms: float = 0.0

    @property
    def failed(self) -> bool:
        return self.finish is not None and self.ended not in ("Success", "TaskKilled")


@dataclass
class Stage:
    """An attempt of a stage, as in its last event."""

    submitted: float | None = None
    completed: float | None = None
    failure: str | None = None
    tasks: int = 0
    python: bool = False


@dataclass
class Job:
    """A job, with the ids of its stages; `failed` is None if no end was logged."""

    submitted: float | None
    stages: tuple[int, ...]
    query: str | None
    completed: float | None = None
    failed: bool | None = None
    cancelled: bool = False


@dataclass
class Query:
    """An SQL execution; `error` is the error in its end event, None if that is not logged."""

    started: float | None
    ended: float | None = None
    error: str | None = None


@dataclass
class Executor:
    """An executor that registered, or was removed; `removed` with the reason that was logged."""

    added: float | None = None
    removed: float | None = None
    reason: str = ""


@dataclass
class Figures:
    """The figures of one application's events."""

    started: float | None = None
    ended: float | None = None
    first: float | None = None
    last: float | None = None
    tasks: list[Task] = field(default_factory=list)
    stages: dict[tuple[int, int], Stage] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    executors: dict[str, Executor] = field(default_factory=dict)
    logs_cpu: bool = False
    gpu: bool = False
    shell: bool = False
    scheduled: bool = False
    out_of_heap: int = 0

    # Time -----------------------------------------------------------------------------------------------------

    def note(self, at: float | None) -> None:
        """An event has this time."""
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)

    @property
    def zero(self) -> float:
        """When the application started, or the first event that has a time."""
        return next((each for each in (self.started, self.first) if each is not None), 0.0)

    @property
    def end(self) -> float:
        """When the application ended, or the last event that has a time."""
        return next((each for each in (self.ended, self.last) if each is not None), self.zero)

    @property
    def whole_ms(self) -> float:
        return self.end - self.zero

    def running(self, *, useful: bool = False) -> list[Interval]:
        """Intervals in which tasks ran: their union.  A task without an end counts up to the end of its stage.

        With `useful`, without work that nothing later can depend on: attempts that were killed or have no end, and the
        time of tasks after the end of their stage.
        """
        found = []
        for each in self.tasks:
            stage = self.stages.get(each.stage)
            over = stage.completed if stage is not None else None
            finish = each.finish if each.finish is not None else over or self.end
            if useful:
                if each.finish is None or each.ended == "TaskKilled":
                    continue
                finish = min(finish, over or finish)
            found.append((each.launch, finish))
        return union(found, (self.zero, self.end))

    def submitted(self) -> list[Interval]:
        """Intervals in which work was submitted: a job, a stage or an SQL execution was active, or a task ran.

        Attempts that outlive their stage do not count: nothing waits for them.  Old versions log no times of jobs; then
        the times of stages count.
        """
        spans = [(each.submitted, each.completed) for each in self.jobs.values()]
        spans += [(each.started, each.ended) for each in self.queries.values()]
        spans += [(each.submitted, each.completed) for each in self.stages.values()]
        found = [(begin, self.end if end is None else end) for begin, end in spans if begin is not None]
        return union([*found, *self.running(useful=True)], (self.zero, self.end))

    def unaccounted(self) -> list[Interval]:
        """Intervals in which stages with missing task ends ran, without a task that is known to run."""
        found = []
        for key in self.missing():
            stage = self.stages[key]
            if stage.submitted is not None:
                found.append((stage.submitted, stage.completed if stage.completed is not None else self.end))
        return minus(union(found, (self.zero, self.end)), self.running())

    # Counts ---------------------------------------------------------------------------------------------------

    def missing(self) -> dict[tuple[int, int], int]:
        """The number of missing task ends, by stage that completed without failure."""
        seen: dict[tuple[int, int], set[int]] = {}
        for each in self.tasks:
            if each.finish is not None and each.ended == "Success":
                seen.setdefault(each.stage, set()).add(each.index)
        earlier: dict[int, set[int]] = {}
        found = {}
        for (stage_id, attempt), stage in sorted(self.stages.items()):
            mine = seen.get((stage_id, attempt), set())
            known = earlier.setdefault(stage_id, set())
            known |= mine
            # A later attempt repeats lost tasks: an unknown number, each of which may have run once.
            lacking = stage.tasks - len(known)
            if stage.completed is not None and stage.failure is None and lacking > 0:
                found[stage_id, attempt] = lacking
        return found

    @property
    def failed_jobs(self) -> int:
        """Jobs that failed; cancelled ones are counted separately."""
        return sum(each.failed is True and not each.cancelled for each in self.jobs.values())

    @property
    def cancelled_jobs(self) -> int:
        return sum(each.cancelled for each in self.jobs.values())

    @property
    def unfinished_jobs(self) -> int:
        return sum(each.failed is None for each in self.jobs.values())

    @property
    def unread_jobs(self) -> int:
        """Jobs that the log does not have: Spark numbers them from 0."""
        return max(self.jobs, default=-1) + 1 - len(self.jobs)

    @property
    def failed_stages(self) -> int:
        """Attempts of stages that failed, except those whose job was cancelled."""
        return sum(each.failure is not None and not _CANCELLED.search(each.failure) for each in self.stages.values())

    @property
    def failed_queries(self) -> int:
        """SQL executions that ended with an error; if errors are not logged, those with a failed job.

        Cancelled ones do not count.
        """
        jobs = {each.query for each in self.jobs.values() if each.failed and not each.cancelled}
        return sum(
            (one.error is None and key in jobs) or (bool(one.error) and not _CANCELLED.search(str(one.error)))
            for key, one in self.queries.items()
        )

    def tasks_ended(self) -> Counter[str]:
        """Attempts by how they ended: succeeded, killed, failed, unfinished."""
        names = {"Success": "succeeded", "TaskKilled": "killed"}
        return Counter("unfinished" if each.finish is None else names.get(each.ended, "failed") for each in self.tasks)

    def lost(self) -> dict[str, str]:
        """Executors that were certainly lost, with the logged reason; it says so, and work continued afterwards.

        An executor that is removed after all work may have been released, because the application was about to end.
        """
        works = [at for job in self.jobs.values() for at in (job.submitted, job.completed) if at is not None]
        works += [each.finish or each.launch for each in self.tasks]
        last = max(works, default=self.zero)
        return {
            key: each.reason
            for key, each in self.executors.items()
            if each.removed is not None and each.removed < last
            if _LOST.search(each.reason) and not _HOME.search(each.reason)
        }

    def sent_home(self) -> set[str]:
        """Executors that the application released itself."""
        return {key for key, each in self.executors.items() if each.removed and _HOME.search(each.reason)}

    def most_alive(self) -> int:
        """The maximum number of executors at a time, including those that only occur in task events."""
        changes = []
        ran: dict[str, list[float]] = {}
        for each in self.tasks:
            ran.setdefault(each.executor, []).extend((each.launch, each.finish or each.launch))
        # In logs edited by hand, executors register years after the last task.
        over = max([self.end, *(each.added for each in self.executors.values() if each.added is not None)])
        for key in {*self.executors, *ran}:
            one = self.executors.get(key, Executor())
            begin = one.added if one.added is not None else min(ran.get(key, [self.zero]))
            end = one.removed if one.removed is not None else over
            if key not in ran and one.added is None:
                continue
            changes += [(begin, 1), (max(end, begin), -1)]
        alive = most = 0
        # If one is removed and another registers in the same ms, both count.
        for _, step in sorted(changes, key=lambda each: (each[0], -each[1])):
            alive += step
            most = max(most, alive)
        return most

    def without_executors(self) -> list[Interval]:
        """Intervals without an executor that could run a task."""
        ran: dict[str, list[float]] = {}
        for each in self.tasks:
            ran.setdefault(each.executor, []).extend((each.launch, each.finish or self.end))
        spans = list(self.running())
        for key, one in self.executors.items():
            begin = one.added if one.added is not None else min(ran.get(key, [self.end]))
            spans.append((begin, one.removed if one.removed is not None else self.end))
        spans += [(min(times), self.end) for key, times in ran.items() if key not in self.executors]
        return minus([(self.zero, self.end)], union(spans, (self.zero, self.end)))


# Intervals ---------------------------------------------------------------------------------------------------------


def union(spans: Iterable[Interval], within: Interval) -> list[Interval]:
    """The spans, cut to what is within, in order and without overlaps."""
    found: list[Interval] = []
    low, high = within
    for begin, end in sorted((max(begin, low), min(end, high)) for begin, end in spans):
        if end <= begin:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def both(one: Sequence[Interval], two: Sequence[Interval]) -> list[Interval]:
    """The intersection; both are in order and without overlaps."""
    found, first, second = [], 0, 0
    while first < len(one) and second < len(two):
        begin = max(one[first][0], two[second][0])
        end = min(one[first][1], two[second][1])
        if begin < end:
            found.append((begin, end))
        if one[first][1] <= two[second][1]:
            first += 1
        else:
            second += 1
    return found


def minus(one: Sequence[Interval], two: Sequence[Interval]) -> list[Interval]:
    """The difference, one without two; both are in order and without overlaps."""
    if not one:
        return []
    low, high = one[0][0], one[-1][1]
    edges = [low, *(edge for span in two for edge in span), high]
    gaps = [(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if begin < end]
    return both(one, sorted(gaps))


def length(spans: Iterable[Interval]) -> float:
    return sum(end - begin for begin, end in spans)


# Reading -----------------------------------------------------------------------------------------------------------


def logs_below(folder: Path) -> list[Path]:
    """All possible logs below a folder: files, and folders of rolled parts; for a file, the file itself."""
    if not folder.is_dir():
        return [folder]
    found = []
    for each in sorted(folder.iterdir()):
        if each.name.startswith((".", "_")):
            continue
        if each.is_dir():
            found += [each] if each.name.startswith("eventlog_v2_") else logs_below(each)
        elif each.is_file():
            found.append(each)
    return found


def figures(path: Path) -> Figures:
    """The figures of the log at the path.  Raises UnreadableError, also if no line is an event."""
    found = Figures()
    starts: dict[tuple[int, int, int], Task] = {}
    ends: dict[tuple[int, int, int], Task] = {}
    known = 0
    for line in _lines(path):
        name = NAME.search(line, 0, 400) or NAME.search(line)
        if name is None:
            continue
        kind = name[1].decode().rsplit(".", 1)[-1]
        if kind not in _TAKEN:
            known += 1
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict):
            continue
        known += 1
        _take(found, kind, event, starts, ends)
    if not known:
        raise UnreadableError("no line of it is an event of Spark")
    found.tasks = [*ends.values(), *(each for key, each in starts.items() if key not in ends)]
    return found


_TAKEN = {
    f"SparkListener{name}"
    for name in [
        "ApplicationStart",
        "ApplicationEnd",
        "EnvironmentUpdate",
        "JobStart",
        "JobEnd",
        "StageSubmitted",
        "StageCompleted",
        "TaskStart",
        "TaskEnd",
        "ExecutorAdded",
        "ExecutorRemoved",
        "SQLExecutionStart",
        "SQLExecutionEnd",
    ]
}


def _take(
    found: Figures,
    kind: str,
    event: Event,
    starts: dict[tuple[int, int, int], Task],
    ends: dict[tuple[int, int, int], Task],
) -> None:
    """Add the content of one event."""
    kind = kind.removeprefix("SparkListener")
    at = next((event[key] for key in ("Timestamp", "Submission Time", "Completion Time", "time") if key in event), None)
    at = _time(at)
    if kind == "ApplicationStart":
        found.started = at
        found.shell |= re.search(r"\bshell$|Shell$", str(event.get("App Name"))) is not None
    elif kind == "ApplicationEnd":
        found.ended = at
    elif kind == "EnvironmentUpdate":
        found.gpu |= _has_gpu(event)
        found.scheduled |= _settings(event).get("spark.databricks.clusterSource") == "JOB"
        system = event.get("System Properties") or {}  # a list of pairs in a redacted log
        found.shell |= _SHELL.search(str(dict(system).get("sun.java.command"))) is not None
    elif kind == "JobStart":
        properties = event.get("Properties") or {}
        stages = tuple(event.get("Stage IDs") or ())
        found.jobs[event["Job ID"]] = Job(at, stages, properties.get("spark.sql.execution.id"))
    elif kind == "JobEnd":
        job = found.jobs.setdefault(event["Job ID"], Job(None, (), None))
        job.completed = at
        result = event.get("Job Result") or {}
        job.failed = result.get("Result") != "JobSucceeded"
        job.cancelled = (
            job.failed and _CANCELLED.search(str((result.get("Exception") or {}).get("Message"))) is not None
        )
    elif kind in ("StageSubmitted", "StageCompleted"):
        _take_stage(found, event["Stage Info"], completed=kind == "StageCompleted")
        at = None
    elif kind == "TaskStart":
        task = _task(event, ended="")
        starts[*task.stage, task.task] = task
        at = task.launch
    elif kind == "TaskEnd":
        task = _take_end(found, event)
        # A task whose output was lost with its executor has a second end event, with the reason Resubmitted.
        if task.ended != "Resubmitted" or (*task.stage, task.task) not in ends:
            ends[*task.stage, task.task] = task
        at = task.finish
    elif kind == "ExecutorAdded":
        found.executors.setdefault(str(event["Executor ID"]), Executor()).added = at
        at = None  # in public logs edited by hand, an executor that registers years after all tasks does not count
    elif kind == "ExecutorRemoved":
        one = found.executors.setdefault(str(event["Executor ID"]), Executor())
        one.removed, one.reason = at, str(event.get("Removed Reason") or "")
        at = None
    elif kind == "SQLExecutionStart":
        found.queries[str(event["executionId"])] = Query(at)
    elif kind == "SQLExecutionEnd":
        query = found.queries.setdefault(str(event["executionId"]), Query(None))
        query.ended, query.error = at, event.get("errorMessage")
    found.note(at)


def _take_stage(found: Figures, info: Event, *, completed: bool) -> None:
    stage = found.stages.setdefault((info["Stage ID"], info.get("Stage Attempt ID") or 0), Stage())
    stage.tasks = info.get("Number of Tasks") or 0
    stage.submitted = _time(info.get("Submission Time")) or stage.submitted
    if completed:
        stage.completed = _time(info.get("Completion Time"))
        stage.failure = info.get("Failure Reason")
    names = (str(each.get("Name")) + str(each.get("Scope")) for each in info.get("RDD Info") or ())
    stage.python |= any(_PYTHON.search(each) for each in names)
    found.note(stage.submitted)
    found.note(stage.completed)


def _task(event: Event, ended: str) -> Task:
    info = event.get("Task Info") or {}
    metrics = event.get("Task Metrics") or {}
    return Task(
        (event["Stage ID"], event.get("Stage Attempt ID") or 0),
        info["Task ID"],
        info.get("Index", -1),
        str(info.get("Executor ID")),
        float(info["Launch Time"]),
        _time(info.get("Finish Time")) if ended else None,
        ended,
        (metrics.get("Executor CPU Time") or 0) / 1e6,
        metrics.get("JVM GC Time") or 0,
        (metrics.get("Executor Deserialize CPU Time") or 0) / 1e6,
        metrics.get("Result Serialization Time") or 0,
    )


def _take_end(found: Figures, event: Event) -> Task:
    task = _task(event, str((event.get("Task End Reason") or {}).get("Reason")))
    metrics = event.get("Task Metrics") or {}
    found.out_of_heap += (event.get("Task End Reason") or {}).get("Class Name") == "java.lang.OutOfMemoryError"
    found.logs_cpu |= (metrics.get("Executor CPU Time") or 0) > 0
    return task


def _has_gpu(event: Event) -> bool:
    """Whether a plugin that runs queries on a GPU is switched on."""
    settings = _settings(event)
    return any(_GPU.search(settings.get(key, "")) for key in ("spark.plugins", "spark.sql.extensions"))


def _settings(event: Event) -> dict[str, str]:
    """Old versions write a list of pairs."""
    return {str(key): str(value) for key, value in dict(event.get("Spark Properties") or {}).items()}


def _time(value: object) -> float | None:
    """A time of an event; None for 0 and less."""
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _lines(path: Path) -> Iterator[bytes]:
    for each in _streams(path):
        try:
            yield from each
        except (zstandard.ZstdError, EOFError, OSError):
            return  # a compressed log that was cut off; what came before counts


def _streams(path: Path) -> Iterator[IO[bytes]]:
    """The parts of a log, opened, in the order they were written."""
    if path.is_dir():
        parts = [each for each in path.iterdir() if _PARTS.match(each.name)]
        for each in sorted(parts, key=lambda part: int(_PARTS.match(part.name)[1])):  # type: ignore[index]
            with each.open("rb") as stream:
                yield _opened(stream, each)
        return
    with path.open("rb") as stream:
        if not zipfile.is_zipfile(path):
            yield _opened(stream, path)
            return
    with zipfile.ZipFile(path) as archive:
        names = [each for each in archive.namelist() if not each.endswith("/")]
        # Databricks names its parts by their dates and the last one `eventlog`.
        for name in sorted(names, key=lambda each: (each.rsplit("/", 1)[-1] == "eventlog", each)):
            with archive.open(name) as stream:
                yield stream


def _opened(stream: IO[bytes], path: Path) -> IO[bytes]:
    magic = stream.read(8)
    stream.seek(0)
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
        return io.BufferedReader(reader, 1 << 20)
    if magic[:2] == b"\x1f\x8b":
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    if magic in (b"LZ4Block", b"\x82SNAPPY\x00") or magic[:2] == b"ZV":
        raise UnreadableError(f"{path.name} has a compression that only CrystalPerf reads")
    return stream
