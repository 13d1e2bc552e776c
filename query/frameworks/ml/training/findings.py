"""Kinds of findings and advice of trainings alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import Finding


@dataclass(frozen=True)
class Input(Finding):
    """Steps waited `waited_ms` for their next batch."""

    kind: ClassVar[str] = "input"

    waited_ms: float


@dataclass(frozen=True)
class ReadAhead(Advice):
    """Have loaders prefetch batches: with `times` as many of them, steps would not wait; None if unknown."""

    kind: ClassVar[str] = "read-ahead"

    times: float | None
