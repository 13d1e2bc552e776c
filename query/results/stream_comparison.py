"""The comparison of streams: rates, whether they keep up, and their vertices; shares are of time."""

from __future__ import annotations

from typing import Literal

from crystalperf.indexes.frozen import frozen

StreamMeasure = Literal["latency", "throughput", "batch"]
"""The time that is compared: of a record from its source to its end, between two records of a stream that is at its
limit, or of a batch of a stream that is processed in batches."""


@frozen
class StreamSide:
    """A stream; unknown values are None.

    input_per_s, output_per_s  records of its sources, and records that reach its last stage, per second
    max_per_s                  the highest rate that it can sustain, by the model of `predict`
    latency_ms                 of a record, as measured; None for a stream at its limit
    keeps_up                   whether it takes all records that come
    queued_per_s               records per second by which a queue before a stage grows
    limit                      the name of what is saturated first
    """

    input_per_s: float | None
    output_per_s: float | None
    max_per_s: float | None
    latency_ms: float | None
    keeps_up: bool | None
    queued_per_s: float | None
    limit: str


@frozen
class StationSide:
    """A stage of a stream: its parallel tasks, records per second, and shares of its tasks' time.

    `record_ms` is its own time for one record; unknown values are None.
    """

    tasks: int
    records_per_s: float | None
    busy_share: float
    busiest_share: float
    blocked_share: float
    idle_share: float
    record_ms: float | None


@frozen
class ComparedStation:
    """A stage on both sides, None where a side has none of that name."""

    name: str
    before: StationSide | None
    after: StationSide | None


@frozen
class StreamComparison:
    """Both sides' streams, and their stages in the order of the data flow.

    `measure` is that of the compared times; None if the logs record none, so that only loads are compared.
    """

    measure: StreamMeasure | None
    before: StreamSide
    after: StreamSide
    stations: tuple[ComparedStation, ...]
