"""Kinds of assumptions of Flink alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.assumptions import Assumption


@frozen
class ParallelismKept(Assumption):
    """Vertices keep their parallelism with any number of slots."""

    kind: ClassVar[str] = "parallelism-kept"


@frozen
class RecordsRespread(Assumption):
    """The records of so many vertices are spread over subtasks in equal parts of the recorded subtasks' work."""

    kind: ClassVar[str] = "records-respread"
    vertices: int


@frozen
class HotSubtask(Assumption):
    """One subtask of a vertex has far more work than the others, possibly because of one key."""

    kind: ClassVar[str] = "hot-subtask"
    vertex: str


@frozen
class ParallelismLimited(Assumption):
    """A vertex is limited to so many subtasks."""

    kind: ClassVar[str] = "parallelism-limited"
    vertex: str
    most: int


@frozen
class SingleSubtasksKept(Assumption):
    """Vertices of one subtask keep it."""

    kind: ClassVar[str] = "single-subtasks-kept"
    vertices: tuple[str, ...]


@frozen
class SlotsForSubtasks(Assumption):
    """There are as many slots as so many subtasks of a vertex take, because the run does not record its slots."""

    kind: ClassVar[str] = "slots-for-subtasks"
    subtasks: int
