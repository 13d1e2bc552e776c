"""Parts of the difference of two runs of repeated steps that only such runs have: query.compare.steps.

Times are ms of one step; a part's `ms` is positive if it makes a step of the runs after longer.
"""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.comparison import OperatorChange, Part


@frozen
class ChangedBatch(Part):
    """A batch has more or fewer examples."""

    kind: ClassVar[str] = "batch"

    before: float
    after: float


@frozen
class ChangedAccelerator(Part):
    """Another model of accelerator: kernels take longer or shorter for the same work."""

    kind: ClassVar[str] = "accelerator"

    before: str
    after: str
    before_ms: float
    after_ms: float


@frozen
class ChangedPrecision(Part):
    """Most arithmetic uses numbers of another size; both values are units, such as tf32 or 16-bit."""

    kind: ClassVar[str] = "precision"

    before: str
    after: str
    before_ms: float
    after_ms: float


@frozen
class KernelTime(Part):
    """Kernels take longer or shorter for the same work, on the same model of accelerator."""

    kind: ClassVar[str] = "kernel-time"

    before_ms: float
    after_ms: float


@frozen
class ChangedOperators(Part):
    """Operators that a step has more or less often; `operators` has their numbers in ten steps, on each side."""

    kind: ClassVar[str] = "operators"

    operators: tuple[OperatorChange, ...]


@frozen
class ChangedShapes(Part):
    """The same kernels do more or less work, although the batch is the same or not known; `ratio` is of their work."""

    kind: ClassVar[str] = "shapes"

    ratio: float


@frozen
class HostTime(Part):
    """Threads of processes take longer or shorter for the same operators: computing, or launching work."""

    kind: ClassVar[str] = "host-time"

    before_ms: float
    after_ms: float


@frozen
class Communication(Part):
    """Exchanges with other processes take more or less of a step: `exposed`, without work that hides them.

    Bytes are those of one process, 0 if not recorded.
    """

    kind: ClassVar[str] = "communication"

    before_ms: float
    after_ms: float
    before_bytes: float
    after_bytes: float
    before_processes: float | None
    after_processes: float | None


@frozen
class LoaderWait(Part):
    """A step waits longer or shorter for its batch of input."""

    kind: ClassVar[str] = "input-wait"

    before_ms: float
    after_ms: float


@frozen
class Copies(Part):
    """Copies between a process and its accelerator take more or less of a step."""

    kind: ClassVar[str] = "copies"

    before_ms: float
    after_ms: float


@frozen
class Overlap(Part):
    """More or less of the work is hidden behind other work; times are of all operators together."""

    kind: ClassVar[str] = "overlap"

    before_ms: float
    after_ms: float
