"""What a log lacks, so that it may not say what holds a scope up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.kinds import Kind


@dataclass(frozen=True)
class Missing(Kind):
    """Something that a log lacks."""


@dataclass(frozen=True)
class UnendedTasks(Missing):
    """`lost` of `total` tasks have no end in the log: of `stage`, or where that is None of so many stages."""

    kind: ClassVar[str] = "unended-tasks"

    lost: int
    total: int
    stage: str | None
    stages: int


@dataclass(frozen=True)
class UnreadPart:
    """A problem of reading the log after which it may lack scopes, by its reader's name, and how often it occurred."""

    problem: str
    count: int


@dataclass(frozen=True)
class UnreadParts(Missing):
    """Parts of the log are missing."""

    kind: ClassVar[str] = "unread-parts"

    parts: tuple[UnreadPart, ...]


@dataclass(frozen=True)
class UnannouncedWorkers(Missing):
    """The log does not have when so many workers came."""

    kind: ClassVar[str] = "unannounced-workers"

    workers: int
