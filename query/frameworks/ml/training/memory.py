"""Memory of an accelerator at its peak, and what another batch would need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.ml.training.assumptions import MemoryNeeded

Part = Literal["before", "forward", "backward", "gradients", "optimizer"]
BEFORE: Part = "before"
"""Parameters, the optimizer's state and data: all that was there before the trace."""

PEAK, RESERVED, CAPACITY = "memory_peak_bytes", "memory_reserved_bytes", "memory_bytes"
POINTS = "memory_points"
"""Properties of a run; POINTS are pairs of bytes that stay and bytes that grow with the batch, `STAY:GROW …`."""


@frozen
class DeviceMemory:
    """The memory of an accelerator, bytes: at most `peak` in blocks of the program, `reserved` by the framework.

    `parts` is what held it at the peak.  `points` are pairs of bytes that stay and bytes that grow with the batch: the
    most for some batch each.
    """

    device: str
    peak: int
    reserved: int
    capacity: int | None
    parts: Mapping[Part, int]
    points: Sequence[tuple[int, int]]

    def properties(self) -> dict[str, str]:
        """The same for the run file, without the parts."""
        return {
            PEAK: str(self.peak),
            RESERVED: str(self.reserved),
            CAPACITY: "" if self.capacity is None else str(self.capacity),
            POINTS: " ".join(f"{stays}:{grows}" for stays, grows in self.points),
        }


def needed(properties: Mapping[str, str], ratio: float) -> MemoryNeeded | None:
    """The memory of a batch that is `ratio` times as large; None if the trace does not show it.

    The framework reserves more than blocks need, because freed ones have other sizes: at most the recorded ratio.
    """
    if POINTS not in properties:
        return None
    pairs = (each.partition(":") for each in properties[POINTS].split())
    least = max(int(stays) + ratio * int(grows) for stays, _, grows in pairs)
    peak = float(properties[PEAK])
    most = least * max(float(properties[RESERVED]) / peak, 1.0)
    capacity = properties.get(CAPACITY)
    return MemoryNeeded(ratio, least, most, None if capacity is None else float(capacity))
