"""What Spark measured of its streaming queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crystalperf.query.results.remarks import Remark

Pace = Literal["falls-behind", "no-room", "keeps-up", "unknown"]
"""Whether a query keeps up.

falls-behind  more came in than could be processed, or more and more waited at its sources
no-room       nearly all the time is in batches
keeps-up      less came in than could be processed
unknown       the log has no rates
"""


@dataclass(frozen=True)
class BatchPart:
    """A part of a batch, by Spark's key, and its share of the time in triggers."""

    key: str
    share: float


@dataclass(frozen=True)
class StreamingQuery(Remark):
    """A streaming query's batches, what they spent most time on, and whether they keep up.

    `middle_ms` is the median batch.  Each is None where the log does not have it: rows per second that came in and that
    could be processed, rows that waited at its sources at first and at last, how far apart batches begin, and the share
    of that in which one runs; of few batches the last is None too.
    """

    kind: ClassVar[str] = "streaming-query"

    query: str
    triggers: int
    batches: int
    middle_ms: float | None
    longest_ms: float | None
    parts: tuple[BatchPart, ...]
    input_per_s: float | None
    processed_per_s: float | None
    waiting_first: float | None
    waiting_last: float | None
    interval_ms: float | None
    busy_share: float | None
    pace: Pace


@dataclass(frozen=True)
class MoreQueries(Remark):
    """So many more streaming queries are in the table spark_batches."""

    kind: ClassVar[str] = "more-streaming-queries"

    count: int
