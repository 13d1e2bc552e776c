"""Kinds of assumptions of trainings alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.assumptions import Assumption


@dataclass(frozen=True)
class MoreProcesses(Assumption):
    """`processes` processes, each with its own batch, do `ratio` times the work per step.

    `synchronous` is whether collectives of rings exchange gradients, and not parameter servers.
    """

    kind: ClassVar[str] = "more-processes"
    recorded: int
    processes: float
    ratio: float
    synchronous: bool


@dataclass(frozen=True)
class BatchGrows(Assumption):
    """Work on examples grows with the batch; work on parameters does not.

    `launches` is whether a CPU submits work to an accelerator, which does not grow either.
    """

    kind: ClassVar[str] = "batch-grows"
    launches: bool


@dataclass(frozen=True)
class StepsReachSteadyState(Assumption):
    """Asynchronous workers of parameter servers: the mean step in steady state.

    The recorded steps took `traced_ms`.  Workers in step would take `in_step_ms`, and those that fetch while others
    send `apart_ms`.
    """

    kind: ClassVar[str] = "steps-reach-steady-state"
    steady_ms: float
    traced_ms: float
    in_step_ms: float
    apart_ms: float


@dataclass(frozen=True)
class SendingCost(Assumption):
    """The range of the CPU time of sending and receiving a MB, and the cores that each process had."""

    kind: ClassVar[str] = "sending-cost"
    least_ms: float
    most_ms: float
    cores: float


@dataclass(frozen=True)
class WithoutProfiler(Assumption):
    """Steps of one accelerator are modelled without their profiler: `step_ms` instead of `traced_ms`."""

    kind: ClassVar[str] = "without-profiler"
    traced_ms: float
    step_ms: float


@dataclass(frozen=True)
class StepsByAccelerator(Assumption):
    """The accelerator defines the end of steps: `queued_ms` of their work was left when the last step was
    marked."""

    kind: ClassVar[str] = "steps-by-accelerator"
    queued_ms: float
