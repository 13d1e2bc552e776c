"""What Flink reports of a job: its helper threads, what a stream lacks for an answer, and whether it kept up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crystalperf.query.results.remarks import Remark

Lacking = Literal["metrics", "exchanges", "time", "order"]
"""What keeps a stream from being analysed as a flow.

metrics    none were collected
exchanges  its vertices exchange no records, which is what Flink counts
time       no stretch of it was long enough
order      its records go round in it
"""


@dataclass(frozen=True)
class Helper:
    """Threads that do the same, and for how long they ran."""

    does: str
    time_ms: float


@dataclass(frozen=True)
class Helpers(Remark):
    """Threads of TaskManagers besides subtasks; `is_cpu_time` is whether their CPU time was measured."""

    kind: ClassVar[str] = "helpers"

    is_cpu_time: bool
    helpers: tuple[Helper, ...]


@dataclass(frozen=True)
class NoFlow(Remark):
    """Why neither rate nor latency of a stream is known."""

    kind: ClassVar[str] = "no-flow"

    lacking: Lacking


@dataclass(frozen=True)
class AssumedTimeout(Remark):
    """Buffers are assumed to be due after Flink's default."""

    kind: ClassVar[str] = "assumed-timeout"

    due_ms: float


@dataclass(frozen=True)
class HeldRecords(Remark):
    """Operators of a vertex hold a record for so long, as for answers of asynchronous requests."""

    kind: ClassVar[str] = "held-records"

    vertex: str
    held_ms: float


@dataclass(frozen=True)
class UntimedRequests(Remark):
    """Vertices make asynchronous requests of which nothing says how long they take."""

    kind: ClassVar[str] = "untimed-requests"

    vertices: tuple[str, ...]


# A stream that goes on until it is stopped ----------------------------------------------------------------------------


@dataclass(frozen=True)
class UnknownLoad(Remark):
    """Nothing says how busy its vertices were."""

    kind: ClassVar[str] = "unknown-load"


@dataclass(frozen=True)
class FullVertex(Remark):
    """A vertex has no time left, and holds its sources up for `sources_held_share` of their time; None for little."""

    kind: ClassVar[str] = "full-vertex"

    vertex: str
    busy_share: float
    sources_held_share: float | None


@dataclass(frozen=True)
class IdleSources(Remark):
    """It waits for records: its sources were idle for at least this share of their time."""

    kind: ClassVar[str] = "idle-sources"

    idle_share: float


@dataclass(frozen=True)
class KeptUp(Remark):
    """It kept up with its records: of the `measured` of its `vertices` this one was the busiest."""

    kind: ClassVar[str] = "kept-up"

    vertex: str
    busy_share: float
    measured: int
    vertices: int
