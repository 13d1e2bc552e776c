"""Kinds of findings and advice of trainings alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import Finding


@frozen
class Input(Finding):
    """Steps waited `waited_ms` for their next batch."""

    kind: ClassVar[str] = "input"

    waited_ms: float


@frozen
class ReadAhead(Advice):
    """Have loaders prefetch batches: with `times` as many of them, steps would not wait; None if unknown."""

    kind: ClassVar[str] = "read-ahead"

    times: float | None
