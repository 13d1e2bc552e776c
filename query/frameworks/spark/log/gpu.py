"""Times of tasks on GPUs, as RAPIDS adds them to the accumulators of a stage (23.04 and newer)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.log.events import Accumulable

_CLOCK = regex(rb'"(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)"')
"""A time as RAPIDS writes it: hours:minutes:seconds."""


class GpuTimes(NamedTuple):
    """Sums over the tasks of a stage, ms: of holding a GPU, and of waiting for one (its semaphore)."""

    held_ms: float
    waited_ms: float


def gpu_times(accumulables: Iterable[Accumulable]) -> GpuTimes | None:
    """The times of a stage; None if its tasks held no GPU, or RAPIDS is older."""
    found = {each.name: _ms(bytes(each.value)) for each in accumulables if each.name in ("gpuTime", "gpuSemaphoreWait")}
    held_ms = found.get("gpuTime")
    return None if held_ms is None else GpuTimes(held_ms, found.get("gpuSemaphoreWait") or 0.0)


def _ms(text: bytes) -> float | None:
    match = _CLOCK.fullmatch(text)
    return None if match is None else 1e3 * (3600 * int(match[1]) + 60 * int(match[2]) + float(match[3]))
