"""What an answer about a run of Flink takes for granted, where only Flink has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.assumptions import Assumption


@dataclass(frozen=True)
class ParallelismKept(Assumption):
    """Vertices keep their parallelism, whatever slots there are."""

    kind: ClassVar[str] = "parallelism-kept"


@dataclass(frozen=True)
class RecordsRespread(Assumption):
    """Records are spread over the subtasks of so many vertices in equal parts of the recorded subtasks' work."""

    kind: ClassVar[str] = "records-respread"
    vertices: int


@dataclass(frozen=True)
class HotSubtask(Assumption):
    """One subtask of a vertex has far more than the others, and may have one key."""

    kind: ClassVar[str] = "hot-subtask"
    vertex: str


@dataclass(frozen=True)
class ParallelismLimited(Assumption):
    """A vertex can have no more than so many subtasks."""

    kind: ClassVar[str] = "parallelism-limited"
    vertex: str
    most: int


@dataclass(frozen=True)
class SingleSubtasksKept(Assumption):
    """Vertices of one subtask keep it."""

    kind: ClassVar[str] = "single-subtasks-kept"
    vertices: tuple[str, ...]


@dataclass(frozen=True)
class SlotsForSubtasks(Assumption):
    """There are as many slots as so many subtasks of a vertex take, for the run has no number of them."""

    kind: ClassVar[str] = "slots-for-subtasks"
    subtasks: int
