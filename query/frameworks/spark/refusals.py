"""Kinds of refusals of Spark alone: why a prediction is not possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.refusals import Refusal


@dataclass(frozen=True)
class LocalRun(Refusal):
    """A local run is one process, so it has no second executor."""

    kind: ClassVar[str] = "local-run"
