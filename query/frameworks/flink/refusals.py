"""Kinds of refusals of Flink alone: why a prediction is not possible."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.refusals import Refusal


@frozen
class EndlessStream(Refusal):
    """An unbounded stream runs until it is stopped, so there is no runtime to predict."""

    kind: ClassVar[str] = "endless-stream"


@frozen
class SubtasksForInputUnknown(Refusal):
    """How many subtasks Flink would use for other data is unknown."""

    kind: ClassVar[str] = "subtasks-for-input-unknown"


@frozen
class ParallelismOutOfRange(Refusal):
    """A parallelism of a vertex, more than `most_ratio` times above or below the recorded one."""

    kind: ClassVar[str] = "parallelism-out-of-range"
    vertex: str
    recorded: int
    wanted: int
    most_ratio: float
