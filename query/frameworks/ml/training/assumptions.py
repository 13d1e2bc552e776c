"""Kinds of assumptions of trainings alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.assumptions import Assumption


@frozen
class MoreProcesses(Assumption):
    """`processes` processes, each with its own batch, do `ratio` times the work per step.

    `synchronous` is whether collectives of rings exchange gradients, and not parameter servers.
    """

    kind: ClassVar[str] = "more-processes"
    recorded: int
    processes: float
    ratio: float
    synchronous: bool


@frozen
class BatchGrows(Assumption):
    """Work on examples grows with the batch; work on parameters does not.

    `launches` is whether a CPU submits work to an accelerator, which does not grow either.
    """

    kind: ClassVar[str] = "batch-grows"
    launches: bool


@frozen
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


@frozen
class SendingCost(Assumption):
    """The range of the CPU time of sending and receiving a MB, and the cores that each process had."""

    kind: ClassVar[str] = "sending-cost"
    least_ms: float
    most_ms: float
    cores: float


@frozen
class WithoutProfiler(Assumption):
    """Steps of one accelerator are modelled without their profiler: `step_ms` instead of `traced_ms`."""

    kind: ClassVar[str] = "without-profiler"
    traced_ms: float
    step_ms: float


@frozen
class StepsByAccelerator(Assumption):
    """The accelerator defines the end of steps: `queued_ms` of their work was left when the last step was
    marked."""

    kind: ClassVar[str] = "steps-by-accelerator"
    queued_ms: float


@frozen
class Narrower(Assumption):
    """All products in float32 and TF32 are done in 16-bit numbers, `arithmetic` times as fast; the time of kernels on
    memory is divided by `memory`."""

    kind: ClassVar[str] = "narrower-numbers"
    arithmetic: float
    memory: float


@frozen
class OtherHost(Assumption):
    """Another device is in another machine, whose CPU is assumed to be as fast."""

    kind: ClassVar[str] = "other-host"


@frozen
class MemoryNeeded(Assumption):
    """A batch `ratio` times as large needs `least_bytes` of the accelerator's memory for its blocks, and at most
    `most_bytes` with what the framework reserves, of `capacity_bytes`; None if that is unknown."""

    kind: ClassVar[str] = "memory-needed"
    ratio: float
    least_bytes: float
    most_bytes: float
    capacity_bytes: float | None

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None if that is unknown."""
        if self.capacity_bytes is None or self.least_bytes <= self.capacity_bytes < self.most_bytes:
            return None
        return self.most_bytes <= self.capacity_bytes
