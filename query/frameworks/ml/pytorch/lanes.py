"""What the lanes of a run, its threads and streams, are put together in."""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.query.frameworks.ml.training.collectives import Collective
from crystalperf.query.frameworks.ml.training.lanes import Lane, Signal
from crystalperf.query.frameworks.ml.training.program import Device, Operation

Launched = tuple[Operation, tuple[int, float] | None]
"""A kernel with the lane and the moment, ms, of its launch where the trace tells it."""


@dataclass
class Built:
    """Lanes and signals being put together."""

    lanes: list[Lane] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    devices: dict[str, Device] = field(default_factory=dict)
    launches: list[tuple[int, list[Launched]]] = field(default_factory=list)
    """By lane of a stream, its kernels."""
