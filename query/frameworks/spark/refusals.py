"""Why a question about a run of Spark has no answer, where only Spark has the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.refusals import Refusal


@dataclass(frozen=True)
class LocalRun(Refusal):
    """A local run is one process, so it has no second executor."""

    kind: ClassVar[str] = "local-run"
