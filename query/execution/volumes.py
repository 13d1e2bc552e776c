"""What a framework logged of the bytes and times of each unit, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.resources import NET, Resource
from crystalperf.query.trace.records import Floats, Ints

SPILL_BPS = 50e6
"""Bytes per second at which a unit at least writes or reads back what it spills, rows packed and unpacked."""

_READ = ("input_bytes", "remote_bytes")


def most_spilling_ms(disk_bytes: Ints | int, memory_bytes: Ints | int) -> Floats:
    """How long spilling so much and reading it back takes at most, ms; the larger of its two sizes counts."""
    longest: Floats = 2 * np.maximum(disk_bytes, memory_bytes) / SPILL_BPS * 1000
    return longest


@dataclass(frozen=True)
class Volumes:
    """What the framework logged per unit, aligned with the units; 0 where it logged nothing.  Bytes unless named ms."""

    input: Ints
    far: Ints
    """Of the input, what lies on other machines."""
    kept: Ints
    """Of the input, what workers kept in memory: it crosses no device, but for the network where it was far."""
    remote: Ints
    local: Ints
    handed: Ints
    output: Ints
    spill_memory: Ints
    spill_disk: Ints
    peak_memory: Ints
    gc_ms: Floats
    on_cpu_ms: Floats
    overhead_ms: Floats
    spill_ms: Floats
    """Time in which a unit was seen spilling or reading back what it had spilled."""
    peers_ms: Floats
    """Time measured waiting for data of other workers."""
    starved_ms: Floats
    """As much of its time as its container had used up its CPU quota in, by the quota's periods, where that was
    measured."""

    @property
    def tell_bytes(self) -> bool:
        """Whether the log has bytes of anything that moved."""
        return any(each.any() for each in (self.input, self.remote, self.local, self.handed, self.output))

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Whether the CPU time of each unit was measured; of a log without CPU times, `on_cpu_ms` is collections of
        garbage alone."""
        return self.on_cpu_ms > self.gc_ms

    def moved(self, resource: Resource) -> Ints:
        """Bytes that each unit logged of a resource's device; what the page cache took or gave is among a disk's."""
        return self._of(resource, resource.moves)

    def read(self, resource: Resource) -> Ints:
        """The same without what was written, which stays in memory as a rule."""
        return self._of(resource, [name for name in resource.moves if name in _READ])

    def _of(self, resource: Resource, names: Sequence[str]) -> Ints:
        found = np.zeros(len(self.input), dtype=np.int64)
        for name in names:
            found = found + getattr(self, name.removesuffix("_bytes"))
            if name == "input_bytes":
                found = found - np.maximum(self.far, self.kept)
        return found + self.far if resource.name == NET else found


def no_volumes(units: int) -> Volumes:
    """The volumes of so many units of which nothing is known."""
    columns: dict[str, Any] = {
        each.name: np.zeros(units, dtype=np.float64 if each.name.endswith("_ms") else np.int64)
        for each in fields(Volumes)
    }
    return Volumes(**columns)
