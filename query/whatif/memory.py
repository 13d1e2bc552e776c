"""Memory as a reversed roofline (paper §5): flat above what the run needs, transfers below it."""

from __future__ import annotations

import numpy as np

from indexes import resources
from indexes.errors import NoAnswerError
from query.model.dag import Floats
from query.model.execution import Execution
from query.model.world import World
from query.whatif.bandwidth import BUFFERING

MUCH_COLLECTING = 0.1
"""Share of task time in garbage collection from which another heap changes more than is known of it."""

HEAP_RESERVED_BYTES = 300 * 2**20
"""Spark keeps this much of the heap for itself (UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES)."""


class BoundedError(NoAnswerError):
    """No figure, but a bound: the runtime is at least `low` or at most `high` times the recorded one."""

    def __init__(self, reason: str, *, low: float | None = None, high: float | None = None) -> None:
        super().__init__(reason)
        self.low, self.high = low, high


def with_memory(execution: Execution, world: World) -> tuple[Floats, list[str]]:
    """Task parts with the transfers that less memory adds or more memory saves, and what was assumed.

    The roofline is flat above the turning point: the execution memory that the slots of an executor hold at their
    peak.  Below it every missing byte is written and read again at disk speed (§5, ours for the seconds); where tasks
    were sampled spilling, what that kept them from grows and shrinks with the bytes that are missing.  And the JVM
    collects garbage as much more often as the heap is smaller, at the same price each time.  Raises NoAnswerError where
    the run does not tell how much it needed.
    """
    ratio, tasks, volumes = world.ratio("memory"), execution.tasks, execution.volumes
    if ratio == 1:
        return tasks.parts_ms, []
    cpu, disk = (resources().index(name) for name in ("cpu", "disk"))
    spilled = bool(volumes.spill_memory.any())
    busy = float(tasks.duration_ms.sum()) or 1.0
    gc = float(volumes.gc_ms.sum()) / busy
    if ratio > 1 and not spilled:
        if gc > MUCH_COLLECTING:
            raise BoundedError(
                f"memory: {gc:.0%} of task time went to garbage collection, which more memory would shorten by an"
                " amount this run does not tell",
                high=1.0,
            )
        return tasks.parts_ms, [
            f"nothing was spilled and {gc:.0%} of task time was garbage collection: memory sufficed"
        ]
    memory = execution.recorded.memory
    if memory is None:
        raise NoAnswerError("memory: the run does not tell how much each executor had; add --recorded memory=…")
    fraction = float(execution.properties.get("spark.memory.fraction", "0.6"))
    usable = [max(size - HEAP_RESERVED_BYTES, 0.0) * fraction for size in (memory, memory * ratio)]
    if memory * ratio < 1.5 * HEAP_RESERVED_BYTES:
        raise NoAnswerError(f"memory: {memory * ratio / 2**20:.0f} MiB is less than Spark starts with (450 MiB)")
    if not execution.tells_memory and not spilled:
        raise BoundedError("memory: nothing in the run tells how much of its memory it needed", low=1.0)
    if ratio < 1 and gc > MUCH_COLLECTING:
        raise BoundedError(
            f"memory: {gc:.0%} of task time went to garbage collection already, and this run does not tell how much of"
            " the heap is in use for good",
            low=1.0,
        )
    per_slot = [size / max(execution.recorded.cores or 1, 1) for size in usable]
    # A task that spilled lacked what it spilled, and every byte its slot gains or loses is one less or more of it;
    # one that did not spill lacks what of its peak no longer fits.
    missing = np.where(
        volumes.spill_memory > 0,
        np.maximum(volumes.spill_memory - (per_slot[1] - per_slot[0]), 0.0),
        np.maximum(volumes.peak_memory - per_slot[1], 0.0),
    )
    # On disk the data are as small as the spills were.
    squeeze = volumes.spill_disk.sum() / volumes.spill_memory.sum() if spilled else 0.5
    rate = execution.recorded.disk or BUFFERING["disk"].rate_bps
    change_ms = (missing - volumes.spill_memory) * squeeze * 2 / rate * 1e3
    parts = tasks.parts_ms.copy()
    saved = np.minimum(np.maximum(-change_ms, 0.0), parts[:, disk])
    parts[:, disk] += np.maximum(change_ms, 0.0) - saved
    if spilled:
        share = np.divide(missing, volumes.spill_memory, out=np.ones(len(tasks)), where=volumes.spill_memory > 0)
        parts[:, cpu] += np.minimum(volumes.spill_ms, parts[:, cpu]) * (share - 1)
    assumed = [f"missing memory is written and read once at {rate / 1e6:.0f} MB/s"]
    if volumes.spill_ms.any():
        seen = volumes.spill_ms.sum() / busy
        assumed.append(f"spilling, {seen:.0%} of task time by its samples, grows and shrinks with its bytes")
    if ratio < 1:
        parts[:, cpu] += np.minimum(volumes.gc_ms, parts[:, cpu]) * (1 / ratio - 1)
        if not missing.any():
            assumed = ["every task's peak memory still fits; cached blocks and objects that live long are not counted"]
        assumed.append(f"garbage collection, {gc:.1%} of task time, comes {1 / ratio:.1f} times as often")
    return parts, assumed
