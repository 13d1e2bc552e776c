"""Parts of the difference of two streams that only streams have: query.compare.streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.comparison import NotCompared, Part


@dataclass(frozen=True)
class RecordTime(Part):
    """A stage takes longer or shorter for a record."""

    kind: ClassVar[str] = "record-time"

    name: str
    before_ms: float
    after_ms: float


@dataclass(frozen=True)
class ChangedParallelism(Part):
    """The stage at the limit has more or fewer parallel tasks."""

    kind: ClassVar[str] = "parallelism"

    name: str
    before: int
    after: int


@dataclass(frozen=True)
class BatchPart(Part):
    """A part of a batch takes longer or shorter; `name` is the framework's key of it."""

    kind: ClassVar[str] = "batch-part"

    name: str
    before_ms: float
    after_ms: float


@dataclass(frozen=True)
class OtherRate(NotCompared):
    """The records come at another rate, so that latencies are those of another load; rates are per second."""

    kind: ClassVar[str] = "other-rate"

    before_per_s: float
    after_per_s: float


@dataclass(frozen=True)
class OtherLimit(NotCompared):
    """Only one side is at its limit, so that its latency has no steady value."""

    kind: ClassVar[str] = "other-limit"

    after: bool


@dataclass(frozen=True)
class LoadOnly(NotCompared):
    """The logs of streams without an end record neither rates nor latencies, only how busy stages were."""

    kind: ClassVar[str] = "load-only"
