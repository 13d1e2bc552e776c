"""Kinds of recommendations of Flink alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.recommendations import Recommendation


@frozen(kw_only=True)
class ShortenBufferTimeout(Recommendation):
    """Send network buffers sooner: they are not full when they are due, and more of them cost more CPU."""

    kind: ClassVar[str] = "shorten-buffer-timeout"

    before_ms: float
    after_ms: int


@frozen(kw_only=True)
class CollectMetrics(Recommendation):
    """Collect a stream's metrics while it runs, for its latency and the rate that it can sustain."""

    kind: ClassVar[str] = "collect-metrics"


@frozen(kw_only=True)
class CollectMetricsLonger(Recommendation):
    """Collect a stream's metrics for longer, without a restart and with the same subtasks."""

    kind: ClassVar[str] = "collect-metrics-longer"


@frozen(kw_only=True)
class BreakChain(Recommendation):
    """Break the single chain of a stream once, because Flink counts only records that vertices exchange."""

    kind: ClassVar[str] = "break-chain"
