"""An archive's pages as typed values.

Pages are the answers of Flink's REST interface, by path.  Fields differ between versions and any may be missing; times
are Unix ms, and -1, 0 or a missing field means unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.bounds import is_dense
from crystalperf.query.inputs.containers import LogFile, pieces
from crystalperf.query.trace.records import Problems

_JOB = regex(r"/jobs/(?P<job>[0-9a-f]{32})(?P<rest>/.*)?")
_VERTEX = regex(r"/vertices/(?P<id>[0-9a-f]{1,64})(?P<rest>/.*)?")
_ATTEMPT = regex(r"/subtasks/\d{1,9}/attempts/\d{1,9}")

_MAX_PAGES = 2_000_000
_MAX_BYTES = 512 << 20
"""Maximum size of an archive, unpacked: it is in memory as a whole."""

_MAX_VALUES = 1 << 20
"""Maximum values of one page."""


class Times(msgspec.Struct, rename={"start_ms": "start-time", "end_ms": "end-time"}):
    """Start and end."""

    start_ms: float | None = None
    end_ms: float | None = None


class Metrics(
    msgspec.Struct,
    rename={
        "read_bytes": "read-bytes",
        "written_bytes": "write-bytes",
        "read_records": "read-records",
        "written_records": "write-records",
        "backpressured_ms": "accumulated-backpressured-time",
        "idle_ms": "accumulated-idle-time",
        "busy_ms": "accumulated-busy-time",
        "knows_read_bytes": "read-bytes-complete",
        "knows_written_bytes": "write-bytes-complete",
        "knows_read_records": "read-records-complete",
        "knows_written_records": "write-records-complete",
    },
):
    """Flink's sums of a subtask; busy time is NaN if it was not measured.

    A sum is unknown if Flink says that it is not complete.  Each moment of a subtask is busy, idle or back-pressured:
    if all three sums are 0, none was measured.
    """

    read_bytes: int | None = None
    written_bytes: int | None = None
    read_records: int | None = None
    written_records: int | None = None
    backpressured_ms: float | str | None = None
    idle_ms: float | str | None = None
    busy_ms: float | str | None = None
    knows_read_bytes: bool | None = None
    knows_written_bytes: bool | None = None
    knows_read_records: bool | None = None
    knows_written_records: bool | None = None

    def __post_init__(self) -> None:
        for name in ("read_bytes", "written_bytes", "read_records", "written_records"):
            if getattr(self, f"knows_{name}") is False:
                setattr(self, name, None)
        if self.busy_ms == 0 and self.idle_ms == 0 and self.backpressured_ms == 0:
            self.busy_ms = self.idle_ms = self.backpressured_ms = None


class Attempt(
    Times, rename={"worker": "taskmanager-id", "spent_ms": "status-duration", "others": "other-concurrent-attempts"}
):
    """One attempt of a subtask; `spent_ms` is its time in each state, `others` are concurrent attempts."""

    subtask: int = 0
    attempt: int = 0
    status: str = ""
    host: str | None = None
    worker: str | None = None
    spent_ms: dict[str, float | None] = {}
    metrics: Metrics = msgspec.field(default_factory=Metrics)
    others: list[Attempt] | None = None


class Vertex(msgspec.Struct, rename={"most": "maxParallelism"}):
    """A job vertex: operators chained into one kind of subtask; `most` is its maximum parallelism, 0 or less if
    unknown."""

    id: str
    name: str = ""
    parallelism: int = 0
    most: int = 0
    subtasks: list[Attempt] = []


class _StateTimes(msgspec.Struct):
    subtask: int = 0
    timestamps: dict[str, float | None] = {}


class _SubtaskTimes(msgspec.Struct):
    subtasks: list[_StateTimes] = []


class _PlanPage(msgspec.Struct):
    plan: Plan


class Input(msgspec.Struct, rename={"source": "id", "strategy": "ship_strategy"}):
    """The source vertex of an edge, and how rows are shipped over it."""

    source: str
    strategy: str = ""
    exchange: str = ""


class PlanNode(msgspec.Struct, rename={"optimized": "optimizer_properties"}):
    """A vertex in the plan; `optimized` has properties from the optimizer of batch jobs, and is empty for others."""

    id: str
    optimized: dict[str, Any] = {}
    description: str = ""
    inputs: list[Input] = []


class Plan(msgspec.Struct):
    type: str = ""
    nodes: list[PlanNode] = []


class Summary(Times, rename={"most": "maxParallelism"}, kw_only=True):
    """A vertex on the job's own page: sums over its subtasks; `most` is its maximum parallelism, 0 or less if
    unknown."""

    id: str
    name: str = ""
    parallelism: int = 1
    most: int = 0
    status: str = ""
    metrics: Metrics = msgspec.field(default_factory=Metrics)


class Job(Times, rename={"start_ms": "start-time", "end_ms": "end-time", "type": "job-type"}):
    """The job itself; `state` is FINISHED, FAILED, CANCELED or a state of a running job."""

    type: str = ""
    vertices: list[Summary] = []
    plan: Plan | None = None

    jid: str = ""
    name: str = ""
    state: str = ""
    now: float | None = None
    timestamps: dict[str, float | None] = {}
    """When it last entered each state; 0 if never."""


class _Cluster(msgspec.Struct, rename={"version": "flink-version"}):
    version: str | None = None


class Failure(msgspec.Struct, rename={"name": "exceptionName", "stack": "stacktrace", "task": "taskName"}):
    """The failure of a subtask, or of the job."""

    name: str | None = None
    stack: str | None = None
    timestamp: float | None = None
    task: str | None = None


class _History(msgspec.Struct):
    entries: list[Failure] = []


class _Exceptions(msgspec.Struct, rename={"root": "root-exception", "history": "exceptionHistory"}):
    root: str | None = None
    history: _History | None = None


@dataclass
class Archive:
    """The contents of an archive; vertices and states by vertex id."""

    job: Job = field(default_factory=Job)
    plan: Plan = field(default_factory=Plan)
    vertices: dict[str, Vertex] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    states_ms: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    """By vertex and subtask, when its last attempt entered each state."""
    error: str | None = None
    failures: list[Failure] = field(default_factory=list)
    """The last few failures, including those after which the job continued."""
    version: str | None = None
    """Flink's version; only archives of `crystalperf collect` have it."""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def job_type(self) -> str:
        """STREAMING or BATCH; empty for older versions."""
        return self.job.type


def read(log: LogFile, problems: Problems) -> Archive:
    """The pages of an archive.  Raises InputError if it is damaged, or lacks the page of the job itself."""
    text = _text(log, problems)
    if _JOB_PAGE.match(text) is not None:
        return _of_page(text, log.origin, problems)
    try:
        pages = msgspec.json.decode(text, type=_Pages).archive
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{log.origin}: not a complete archive of a Flink job ({error}); copy it again") from error
    found = Archive()
    for page in pages[:_MAX_PAGES]:
        path, body = page.path, page.json
        match = _JOB.fullmatch(path)
        if match is None and path != "/overview":
            continue
        try:
            if is_dense(body, _MAX_VALUES):
                raise msgspec.ValidationError(f"more than {_MAX_VALUES} values")
            if match is None:
                found.version = msgspec.json.decode(body, type=_Cluster).version
            else:
                _take(found, match["rest"] or "", body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problems.add("damaged page", "data loss", log.origin, path, f"pages that cannot be read ({error})")
    if not found.job.jid:
        raise InputError(
            f"{log.origin}: an archive of Flink without a page of its job; give the file as Flink wrote it"
        )
    _complete(found)
    return found


class _Page(msgspec.Struct, gc=False):
    """A page: both members are required, so that a list of millions of empty objects is refused at its first."""

    path: str
    json: str


class _Pages(msgspec.Struct):
    archive: list[_Page] = []


def _text(log: LogFile, problems: Problems) -> bytes:
    """The text of an archive.  Raises InputError for one that is too large."""
    found: list[bytes] = []
    size = 0
    for piece in pieces(log.parts[0], problems):
        found.append(piece)
        size += len(piece)
        if size > _MAX_BYTES:
            raise InputError(f"{log.origin}: an archive of Flink of more than {_MAX_BYTES >> 20} MiB")
    return b"".join(found).removeprefix(b"\xef\xbb\xbf")


_JOB_PAGE = regex(rb'\s*\{\s*"jid"')


def _of_page(text: bytes, origin: str, problems: Problems) -> Archive:
    """The contents of a saved copy of the job's own page.  Raises InputError."""
    if is_dense(text, _MAX_VALUES):
        raise InputError(f"{origin}: a page of a Flink job with more than {_MAX_VALUES} values")
    try:
        job = msgspec.json.decode(text, type=Job, strict=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{origin}: not a complete page of a Flink job ({error}); save it again") from error
    meaning = (
        "only the job's own page was saved: subtasks of a vertex are assumed equal, and their TaskManagers are unknown"
    )
    problems.add("job page", "data loss", origin, None, meaning)
    found = Archive(job=job)
    _complete(found)
    return found


def _complete(found: Archive) -> None:
    """Fill gaps from the job's own page: the plan, and vertices in sum."""
    if not found.plan.nodes and found.job.plan is not None:
        found.plan = found.job.plan
    for each in found.job.vertices:
        if each.id not in found.vertices:
            found.vertices[each.id] = Vertex(each.id, each.name, each.parallelism, each.most, _alike(each))


def _alike(each: Summary) -> list[Attempt]:
    """A vertex' subtasks, each with an equal share of the sums."""
    count = min(max(each.parallelism, 1), _MAX_ALIKE)
    sums = each.metrics
    metrics = Metrics(
        **{
            name: None
            if (value := getattr(sums, name)) is None or isinstance(value, str)
            else type(value)(value / count)
            for name in Metrics.__struct_fields__
            if not name.startswith("knows_")
        }
    )
    state = each.status or "RUNNING"
    return [
        Attempt(start_ms=each.start_ms, end_ms=each.end_ms, subtask=number, status=state, metrics=metrics)
        for number in range(count)
    ]


_MAX_ALIKE = 10_000


def _take(found: Archive, rest: str, body: str) -> None:
    """Add the contents of one page of the job."""
    if not rest:
        found.job = msgspec.json.decode(body, type=Job, strict=False)
    elif rest == "/plan":
        found.plan = msgspec.json.decode(body, type=_PlanPage).plan
    elif rest == "/exceptions":
        page = msgspec.json.decode(body, type=_Exceptions)
        found.error = page.root
        found.failures = [] if page.history is None else page.history.entries
    elif rest in ("/config", "/jobmanager/config"):
        found.settings |= dict(_settings(msgspec.json.decode(body)))
    elif match := _VERTEX.fullmatch(rest):
        _take_vertex(found, match["id"], match["rest"] or "", body)


def _take_vertex(found: Archive, vertex: str, rest: str, body: str) -> None:
    if not rest:
        page = msgspec.json.decode(body, type=Vertex, strict=False)
        page.subtasks += [other for each in page.subtasks for other in each.others or ()]
        found.vertices[vertex] = page
    elif rest == "/subtasktimes":
        for each in msgspec.json.decode(body, type=_SubtaskTimes, strict=False).subtasks:
            known = {state: at for state, at in each.timestamps.items() if at is not None and at > 0}
            found.states_ms[vertex, each.subtask] = known
    elif _ATTEMPT.fullmatch(rest):
        found.attempts.setdefault(vertex, []).append(msgspec.json.decode(body, type=Attempt, strict=False))


def _settings(page: Any) -> Iterator[tuple[str, str]]:
    """The settings of a page: of the job (`execution-config`), or of the cluster (key and value pairs)."""
    if isinstance(page, dict) and isinstance(page.get("execution-config"), dict):
        for key, value in page["execution-config"].items():
            if isinstance(value, str | int | float | bool):
                yield key, str(value)
    elif isinstance(page, list):
        for each in page:
            if isinstance(each, dict) and isinstance(each.get("key"), str):
                yield each["key"], str(each.get("value", ""))
