"""Logged bytes and times of each task, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import NET, Resource
from crystalperf.query.trace.records import Floats, Ints

SPILL_BPS = 50e6
"""Minimum rate, bytes per second, at which a task writes or reads back spills, serialization included."""

_READ = ("input_bytes", "remote_read_bytes")


def most_spilling_ms(disk_bytes: Ints | int, memory_bytes: Ints | int) -> Floats:
    """The maximum time to spill these bytes and read them back, ms; the larger of the two sizes counts."""
    longest: Floats = 2 * np.maximum(disk_bytes, memory_bytes) / SPILL_BPS * 1000
    return longest


@frozen
class Volumes:
    """Logged volumes per task, aligned with the tasks; 0 if not logged.  Bytes, or ms if the name says so."""

    input: Ints
    far: Ints
    """Input bytes that are on other machines."""
    cached: Ints
    """Input bytes that workers had cached in memory: they use no device, except the network if they were far."""
    remote_read: Ints
    local_read: Ints
    exchange_write: Ints
    output: Ints
    spill_memory: Ints
    spill_disk: Ints
    peak_memory: Ints
    gc_ms: Floats
    total_cpu_ms: Floats
    overhead_ms: Floats
    spill_ms: Floats
    """Sampled time of a task in spilling or in reading spills back."""
    fetch_wait_ms: Floats
    """Measured waits for data of other workers."""
    starved_ms: Floats
    """Time of a task in which its container had used up its CPU quota, by the quota's periods; 0 if not measured."""

    @property
    def record_bytes(self) -> bool:
        """Whether the log has any bytes of input, exchange or output."""
        return any(
            each.any() for each in (self.input, self.remote_read, self.local_read, self.exchange_write, self.output)
        )

    @property
    def timed(self) -> NDArray[np.bool_]:
        """Whether the CPU time of each task was measured, (tasks,); without CPU times in the log, `total_cpu_ms` is
        only garbage collection."""
        return self.total_cpu_ms > self.gc_ms

    def moved(self, resource: Resource) -> Ints:
        """Bytes that each task moved over a resource's device; those of a disk include the page cache's."""
        return self._of(resource, resource.moves)

    def read(self, resource: Resource) -> Ints:
        """The same without written bytes, which usually stay in memory."""
        return self._of(resource, [name for name in resource.moves if name in _READ])

    def _of(self, resource: Resource, names: Sequence[str]) -> Ints:
        found = np.zeros(len(self.input), dtype=np.int64)
        for name in names:
            found = found + getattr(self, name.removesuffix("_bytes"))
            if name == "input_bytes":
                found = found - np.maximum(self.far, self.cached)
        return found + self.far if resource.name == NET else found


def no_volumes(tasks: int) -> Volumes:
    """Volumes of 0 for so many tasks."""
    columns: dict[str, Any] = {
        each.name: np.zeros(tasks, dtype=np.float64 if each.name.endswith("_ms") else np.int64)
        for each in fields(Volumes)
    }
    return Volumes(**columns)
