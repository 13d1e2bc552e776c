"""Parts of the difference of two streams that only streams have: query.compare.streams."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.comparison import NotCompared, Part


@frozen
class RecordTime(Part):
    """A stage takes longer or shorter for a record."""

    kind: ClassVar[str] = "record-time"

    name: str
    before_ms: float
    after_ms: float


@frozen
class ChangedParallelism(Part):
    """The stage at the limit has more or fewer parallel tasks."""

    kind: ClassVar[str] = "parallelism"

    name: str
    before: int
    after: int


@frozen
class BatchPart(Part):
    """A part of a batch takes longer or shorter; `name` is the framework's key of it."""

    kind: ClassVar[str] = "batch-part"

    name: str
    before_ms: float
    after_ms: float


@frozen
class OtherRate(NotCompared):
    """The records come at another rate, so that latencies are those of another load; rates are per second."""

    kind: ClassVar[str] = "other-rate"

    before_per_s: float
    after_per_s: float


@frozen
class OtherLimit(NotCompared):
    """Only one side is at its limit, so that its latency has no steady value."""

    kind: ClassVar[str] = "other-limit"

    after: bool


@frozen
class LoadOnly(NotCompared):
    """The logs of streams without an end record neither rates nor latencies, only how busy stages were."""

    kind: ClassVar[str] = "load-only"
