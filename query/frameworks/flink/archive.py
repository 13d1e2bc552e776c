"""An archive's pages as typed values.

Pages are what Flink's REST interface answers, by path.  Fields differ between versions and any may be missing; times
are Unix ms, and -1, 0 or a missing field is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from indexes.errors import InputError
from query.inputs.containers import LogFile, lines
from query.model.records import Problems

_JOB = re.compile(r"/jobs/(?P<job>[0-9a-f]{32})(?P<rest>/.*)?")
_VERTEX = re.compile(r"/vertices/(?P<id>[0-9a-f]{1,64})(?P<rest>/.*)?")
_ATTEMPT = re.compile(r"/subtasks/\d{1,9}/attempts/\d{1,9}")

_MOST_PAGES = 2_000_000


class Times(msgspec.Struct, rename={"start_ms": "start-time", "end_ms": "end-time"}):
    """When something began and ended."""

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
    },
):
    """What Flink summed up of a subtask; busy time is NaN where it was not measured."""

    read_bytes: int | None = None
    written_bytes: int | None = None
    read_records: int | None = None
    written_records: int | None = None
    backpressured_ms: float | str | None = None
    idle_ms: float | str | None = None
    busy_ms: float | str | None = None


class Attempt(Times, rename={"worker": "taskmanager-id", "spent_ms": "status-duration"}):
    """One attempt of a subtask; `spent_ms` is its time in each state."""

    subtask: int = 0
    attempt: int = 0
    status: str = ""
    host: str | None = None
    worker: str | None = None
    spent_ms: dict[str, float | None] = {}
    metrics: Metrics = msgspec.field(default_factory=Metrics)


class Vertex(msgspec.Struct):
    """A job vertex: operators chained into one kind of subtask."""

    id: str
    name: str = ""
    parallelism: int = 0
    subtasks: list[Attempt] = []


class _StateTimes(msgspec.Struct):
    subtask: int = 0
    timestamps: dict[str, float | None] = {}


class _SubtaskTimes(msgspec.Struct):
    subtasks: list[_StateTimes] = []


class Input(msgspec.Struct, rename={"source": "id", "strategy": "ship_strategy"}):
    """Which vertex another reads, and how rows get there."""

    source: str
    strategy: str = ""
    exchange: str = ""


class PlanNode(msgspec.Struct):
    """A vertex in the plan."""

    id: str
    description: str = ""
    inputs: list[Input] = []


class Plan(msgspec.Struct):
    type: str = ""
    nodes: list[PlanNode] = []


class _PlanPage(msgspec.Struct):
    plan: Plan


class Job(Times):
    """The job itself; `state` is FINISHED, FAILED, CANCELED or one of a job that still runs."""

    jid: str = ""
    name: str = ""
    state: str = ""
    now: float | None = None


class _Cluster(msgspec.Struct, rename={"version": "flink-version"}):
    version: str | None = None


class _Exceptions(msgspec.Struct, rename={"root": "root-exception"}):
    root: str | None = None


@dataclass
class Archive:
    """What an archive tells of a job; vertices and states by vertex id."""

    job: Job = field(default_factory=Job)
    plan: Plan = field(default_factory=Plan)
    vertices: dict[str, Vertex] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    states_ms: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    """By vertex and subtask, when its last attempt entered each state."""
    error: str | None = None
    version: str | None = None
    """Flink's; only what `crystalperf collect` made tells it."""
    settings: dict[str, str] = field(default_factory=dict)


def read(log: LogFile, problems: Problems) -> Archive:
    """The pages of an archive.  Raises InputError where it is damaged, or has no page of the job itself."""
    text = b"\n".join(lines(log, problems))
    try:
        pages = msgspec.json.decode(text, type=dict[str, list[dict[str, str]]]).get("archive", [])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{log.origin}: not a whole archive of a Flink job ({error}); copy it again") from error
    found = Archive()
    for page in pages[:_MOST_PAGES]:
        path, body = page.get("path", ""), page.get("json", "")
        match = _JOB.fullmatch(path)
        if match is None and path != "/overview":
            continue
        try:
            if match is None:
                found.version = msgspec.json.decode(body, type=_Cluster).version
            else:
                _take(found, match["rest"] or "", body)
        except (msgspec.DecodeError, RecursionError) as error:
            problems.add("damaged page", "data loss", log.origin, path, f"pages that cannot be read ({error})")
    if not found.job.jid:
        raise InputError(
            f"{log.origin}: an archive of Flink without a page of its job; give the file as Flink wrote it"
        )
    return found


def _take(found: Archive, rest: str, body: str) -> None:
    """Keep what one page of the job tells."""
    if not rest:
        found.job = msgspec.json.decode(body, type=Job, strict=False)
    elif rest == "/plan":
        found.plan = msgspec.json.decode(body, type=_PlanPage).plan
    elif rest == "/exceptions":
        found.error = msgspec.json.decode(body, type=_Exceptions).root
    elif rest in ("/config", "/jobmanager/config"):
        found.settings |= dict(_settings(msgspec.json.decode(body)))
    elif match := _VERTEX.fullmatch(rest):
        _take_vertex(found, match["id"], match["rest"] or "", body)


def _take_vertex(found: Archive, vertex: str, rest: str, body: str) -> None:
    if not rest:
        found.vertices[vertex] = msgspec.json.decode(body, type=Vertex, strict=False)
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
