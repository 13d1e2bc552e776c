"""Kinds of refusals of Spark alone: why a prediction is not possible."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.refusals import Refusal


@frozen
class LocalRun(Refusal):
    """A local run is one process, so it has no second executor."""

    kind: ClassVar[str] = "local-run"


@frozen
class BarrierTooWide(Refusal):
    """All `tasks` of a barrier stage start at the same time, but there would be only so many `slots`."""

    kind: ClassVar[str] = "barrier-too-wide"
    stage: str
    tasks: int
    slots: int


@frozen
class TaskTooWide(Refusal):
    """A task of a stage takes so many `slots` of an executor by its resource profile, which would have fewer."""

    kind: ClassVar[str] = "task-too-wide"
    stage: str
    slots: float
    executor_slots: float


@frozen
class ProfilesDiffer(Refusal):
    """A number of slots for each executor, of a run whose executors have different resource profiles; `stage` is one
    with executors of its own."""

    kind: ClassVar[str] = "profiles-differ"
    stage: str


@frozen
class ShuffleElsewhere(Refusal):
    """Another `device`, disk or network, of a run whose shuffled data a remote service kept, by its name."""

    kind: ClassVar[str] = "shuffle-elsewhere"
    service: str
    device: str
