"""Kinds of remarks of Flink alone: helper threads, what the analysis of a stream lacks, and whether it kept up."""

from __future__ import annotations

from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.remarks import Remark

Lacking = Literal["metrics", "exchanges", "time", "order"]
"""The reason why CrystalPerf cannot analyze the record flow of a stream.

metrics    none were collected
exchanges  its vertices exchange no records, and Flink counts only these
time       no interval of it was long enough
order      its records loop
"""


@frozen
class Helper:
    """Threads with the same task, and how long they ran."""

    does: str
    time_ms: float


@frozen
class Helpers(Remark):
    """Threads of TaskManagers besides subtasks; `is_cpu_time` is whether their CPU time was measured."""

    kind: ClassVar[str] = "helpers"

    is_cpu_time: bool
    helpers: tuple[Helper, ...]


@frozen
class NoFlow(Remark):
    """Why neither rate nor latency of a stream is known."""

    kind: ClassVar[str] = "no-flow"

    lacking: Lacking


@frozen
class AssumedTimeout(Remark):
    """The buffer timeout is assumed to be Flink's default."""

    kind: ClassVar[str] = "assumed-timeout"

    due_ms: float


@frozen
class HeldRecords(Remark):
    """How long operators of a vertex hold a record, as for responses to asynchronous requests."""

    kind: ClassVar[str] = "held-records"

    vertex: str
    external_wait_ms: float


@frozen
class UntimedRequests(Remark):
    """Vertices make asynchronous requests, and how long these take is unknown."""

    kind: ClassVar[str] = "untimed-requests"

    vertices: tuple[str, ...]


# A stream that goes on until it is stopped ----------------------------------------------------------------------------


@frozen
class UnknownLoad(Remark):
    """How busy its vertices were is unknown."""

    kind: ClassVar[str] = "unknown-load"


@frozen
class FullVertex(Remark):
    """A vertex is at capacity and slows down its sources for `sources_held_share` of their time; None if for little."""

    kind: ClassVar[str] = "full-vertex"

    vertex: str
    busy_share: float
    sources_held_share: float | None


@frozen
class IdleSources(Remark):
    """It waits for records: its sources were idle for at least this share of their time."""

    kind: ClassVar[str] = "idle-sources"

    idle_share: float


@frozen
class KeptUp(Remark):
    """It kept up with its records: this vertex was the busiest of the `measured` of its `vertices`."""

    kind: ClassVar[str] = "kept-up"

    vertex: str
    busy_share: float
    measured: int
    vertices: int
