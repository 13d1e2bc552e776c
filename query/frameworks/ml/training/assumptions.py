"""What an answer about a training takes for granted, where only trainings have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.assumptions import Assumption


@dataclass(frozen=True)
class MoreProcesses(Assumption):
    """So many processes, each with its batch, do `ratio` times the work a step.

    `synchronous` is whether collectives of rings exchange gradients, and not parameter servers.
    """

    kind: ClassVar[str] = "more-processes"
    recorded: int
    processes: float
    ratio: float
    synchronous: bool


@dataclass(frozen=True)
class BatchGrows(Assumption):
    """What works on examples grows with the batch; what works on parameters does not.

    `launches` is whether a CPU has an accelerator compute, which does not grow either.
    """

    kind: ClassVar[str] = "batch-grows"
    launches: bool


@dataclass(frozen=True)
class StepsSettle(Assumption):
    """Workers of parameter servers that do not wait for each other: the mean step once they have settled.

    The recorded steps took `traced_ms`.  Workers in step would take `in_step_ms`, and those that fetch while others
    send `apart_ms`.
    """

    kind: ClassVar[str] = "steps-settle"
    settled_ms: float
    traced_ms: float
    in_step_ms: float
    apart_ms: float


@dataclass(frozen=True)
class SendingCost(Assumption):
    """CPU time of sending and receiving a MB, at least and at most, and the cores that each process had."""

    kind: ClassVar[str] = "sending-cost"
    least_ms: float
    most_ms: float
    cores: float


@dataclass(frozen=True)
class StepsByAccelerator(Assumption):
    """The accelerator marks the end of steps: `queued_ms` of their work were left when the last was marked."""

    kind: ClassVar[str] = "steps-by-accelerator"
    queued_ms: float
