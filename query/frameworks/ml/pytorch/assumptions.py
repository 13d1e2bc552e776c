"""Kinds of assumptions of PyTorch alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.assumptions import Assumption


@frozen
class BatchesMade(Assumption):
    """Loader processes make a batch every `recorded_ms`, `period_ms` in the scenario; without waits for them, a step
    takes `alone_ms` there."""

    kind: ClassVar[str] = "batches-made"
    recorded_ms: float
    period_ms: float
    alone_ms: float


@frozen
class LaunchesRemoved(Assumption):
    """The host has nothing to do for a step except making batches."""

    kind: ClassVar[str] = "launches-removed"
