"""What the lanes of a run, its threads and streams, are put together in."""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.query.frameworks.ml.training.assembly import Assembly
from crystalperf.query.frameworks.ml.training.program import Operation

Launched = tuple[Operation, tuple[int, float] | None]
"""A kernel with the lane and the moment, ms, of its launch where the trace tells it."""


@dataclass
class Built(Assembly):
    """Lanes and signals being put together, and by lane of a stream its kernels."""

    launches: list[tuple[int, list[Launched]]] = field(default_factory=list)
