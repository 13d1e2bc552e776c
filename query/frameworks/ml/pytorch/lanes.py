"""The assembly of a run's lanes: its threads and streams."""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.query.frameworks.ml.training.assembly import Assembly
from crystalperf.query.frameworks.ml.training.program import Operation

Launched = tuple[Operation, tuple[int, float] | None]
"""A kernel with the lane and the moment, ms, of its launch, if the trace has it."""


@dataclass
class Built(Assembly):
    """Lanes and signals under construction, and kernels by the lane of their stream."""

    launches: list[tuple[int, list[Launched]]] = field(default_factory=list)
