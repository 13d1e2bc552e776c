"""Kinds of findings and of advice that only trainings have."""

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
    """Have loaders make batches ahead of the steps."""

    kind: ClassVar[str] = "read-ahead"
