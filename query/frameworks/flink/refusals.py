"""Why a question about a run of Flink has no answer, where only Flink has the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.refusals import Refusal


@dataclass(frozen=True)
class EndlessStream(Refusal):
    """A stream goes on until it is stopped, so how long it took says nothing of it."""

    kind: ClassVar[str] = "endless-stream"


@dataclass(frozen=True)
class SubtasksForInputUnknown(Refusal):
    """How many subtasks Flink would use for other data."""

    kind: ClassVar[str] = "subtasks-for-input-unknown"


@dataclass(frozen=True)
class ParallelismOutOfRange(Refusal):
    """Another parallelism of a vertex, more than `most_ratio` times the recorded one either way."""

    kind: ClassVar[str] = "parallelism-out-of-range"
    vertex: str
    recorded: int
    wanted: int
    most_ratio: float
