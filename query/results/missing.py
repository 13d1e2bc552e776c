"""Data missing from a log, which can make the bottleneck of a scope inconclusive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.kinds import Kind


@dataclass(frozen=True)
class Missing(Kind):
    """Data missing from a log."""


@dataclass(frozen=True)
class UnendedTasks(Missing):
    """`lost` of `total` tasks have no end in the log, of `stage`, or if that is None, of `stages` stages."""

    kind: ClassVar[str] = "unended-tasks"

    lost: int
    total: int
    stage: str | None
    stages: int


@dataclass(frozen=True)
class UnreadPart:
    """A problem of reading the log that may have lost scopes: the reader's name for it, and its count."""

    problem: str
    count: int


@dataclass(frozen=True)
class UnreadParts(Missing):
    """Parts of the log are missing."""

    kind: ClassVar[str] = "unread-parts"

    parts: tuple[UnreadPart, ...]


@dataclass(frozen=True)
class UnannouncedWorkers(Missing):
    """The log has no start time for `workers` workers."""

    kind: ClassVar[str] = "unannounced-workers"

    workers: int
