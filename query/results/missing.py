"""Data missing from a log, which can make the bottleneck of a scope inconclusive."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.kinds import Kind


@frozen
class Missing(Kind):
    """Data missing from a log."""


@frozen
class UnendedTasks(Missing):
    """`lost` of `total` tasks have no end in the log, of `stage`, or if that is None, of `stages` stages."""

    kind: ClassVar[str] = "unended-tasks"

    lost: int
    total: int
    stage: str | None
    stages: int


@frozen
class UnreadPart:
    """A problem of reading the log that may have lost scopes: the reader's name for it, and its count."""

    problem: str
    count: int


@frozen
class UnreadParts(Missing):
    """Parts of the log are missing."""

    kind: ClassVar[str] = "unread-parts"

    parts: tuple[UnreadPart, ...]


@frozen
class UnannouncedWorkers(Missing):
    """The log has no start time for `workers` workers."""

    kind: ClassVar[str] = "unannounced-workers"

    workers: int
