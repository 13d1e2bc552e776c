"""memory: a reversed roofline (paper §5), flat above what the run needs, transfers below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from crystalperf.indexes.errors import NoAnswerError, Remedy
from crystalperf.indexes.resources import CPU, DISK
from crystalperf.query.frameworks import MemoryRule
from crystalperf.query.model.world import World
from crystalperf.query.whatif.effects import State
from crystalperf.query.whatif.limits import no_room
from crystalperf.query.whatif.transfers import moves_known

MUCH_COLLECTING = 0.1
"""Share of the units' time in garbage collection from which another heap changes more than is known of it."""

_MIB = 2**20


class BoundedError(NoAnswerError):
    """No figure, but a bound: the runtime is at least `low` or at most `high` times the recorded one."""

    def __init__(self, reason: str, *, low: float | None = None, high: float | None = None) -> None:
        super().__init__(reason)
        self.low, self.high = low, high


def apply(state: State, world: World) -> State:
    """The state with the transfers that less memory adds or more memory saves.

    The roofline is flat above the turning point: the memory that the slots of a worker hold at their peak.  Below it
    every missing byte is written and read again at disk speed (§5, ours for the seconds); where units were sampled
    spilling, what that kept them from grows and shrinks with the bytes that are missing.  And garbage is collected as
    much more often as the heap is smaller, at the same price each time.  Where another number of slots is asked for
    beside it, these share it; slots alone leave each unit its spills, as a sort on half of them bears out (suite
    `kinds`).  Raises NoAnswerError where the run does not tell how much it needed.
    """
    execution = state.execution
    ratio, slots, memory = world.ratio("memory"), world.ratio("cores"), execution.recorded.get("memory")
    units, volumes, words = execution.units, execution.worker_volumes, execution.framework
    spilled = bool(volumes.spill_memory.any())
    tells = execution.tells_memory or spilled
    if ratio == 1:
        return state
    cpu, disk = (execution.names.index(name) for name in (CPU, DISK))
    busy = float(units.duration_ms.sum()) or 1.0
    gc = float(volumes.gc_ms.sum()) / busy
    unit_time = f"{words.vocabulary.unit} time"
    if reason := no_room(execution, world):
        raise BoundedError(reason, low=1.0)
    if volumes.spill_disk.any() and not spilled:  # Photon logs no more
        raise BoundedError(
            f"{volumes.spill_disk.sum() / _MIB:.0f} MiB were spilled to disk, and the log does not tell how much memory"
            f" {words.vocabulary.units} lacked for that",
            low=1.0 if ratio < 1 else None,
            high=1.0 if ratio > 1 else None,
        )
    if ratio > 1 and not spilled and gc > MUCH_COLLECTING:
        raise BoundedError(
            f"{100 * gc:.0f} % of {unit_time} went to garbage collection, which more memory would shorten by an"
            " amount this run does not tell",
            high=1.0,
        )
    if ratio > 1 and not spilled and (slots <= ratio or memory is None):
        who = "nothing was spilled"
        if execution.volumes.spill_memory.any():
            who = f"processes that compute for {words.vocabulary.units} spilled, and no {words.vocabulary.worker} did"
        return state.assuming(f"{who}, and {100 * gc:.0f} % of {unit_time} was garbage collection: memory sufficed")
    if memory is None:
        raise NoAnswerError(
            f"the run does not tell how much memory each {words.vocabulary.worker} had",
            Remedy("state a setting", {"setting": words.vocabulary.word_of("memory")}),
        )
    rule = words.planner.memory or MemoryRule(_all_of_it)
    usable = [rule.usable(size, execution.properties) for size in (memory, memory * ratio)]
    if memory * ratio < rule.least_bytes:
        raise NoAnswerError(
            f"{memory * ratio / _MIB:.0f} MiB of memory is less than {words.title} starts with"
            f" ({rule.least_bytes / _MIB:.0f} MiB)"
        )
    if not tells:
        raise BoundedError("nothing in the run tells how much of its memory it needed", low=1.0)
    if ratio < 1 and gc > MUCH_COLLECTING:
        raise BoundedError(
            f"{100 * gc:.0f} % of {unit_time} went to garbage collection already, and this run does not tell how much"
            " of the heap is in use for good",
            low=1.0,
        )
    cores = max(execution.recorded.get("cores") or 1, 1)
    per_slot = usable[0] / cores, usable[1] / (cores * slots)
    # A unit that spilled lacked the spilled bytes; more memory of its slot lowers that, less raises it.  One that did
    # not spill lacks the part of its peak that no longer fits.
    missing = np.where(
        volumes.spill_memory > 0,
        np.maximum(volumes.spill_memory - (per_slot[1] - per_slot[0]), 0.0),
        np.maximum(volumes.peak_memory - per_slot[1], 0.0),
    )
    # On disk the data are as small as the spills were.
    squeeze = volumes.spill_disk.sum() / volumes.spill_memory.sum() if spilled else 0.5
    storage = execution.resources[disk]
    rate = execution.recorded.get(storage.setting) or storage.rate_bps
    assert rate is not None  # every run's disk has one
    if moves_known(execution, storage):  # else all time on the disk changes with it later on
        rate *= world.ratio(storage.setting)
    change_ms = (missing - volumes.spill_memory) * squeeze * 2 / rate * 1e3
    parts = state.parts_ms.copy()
    saved = np.minimum(np.maximum(-change_ms, 0.0), parts[:, disk])
    parts[:, disk] += np.maximum(change_ms, 0.0) - saved
    if spilled:
        share = np.divide(missing, volumes.spill_memory, out=np.ones(len(units)), where=volumes.spill_memory > 0)
        parts[:, cpu] += np.minimum(volumes.spill_ms, parts[:, cpu]) * (share - 1)
    assumed = [f"missing memory is written and read once at {rate / 1e6:.0f} MB/s"]
    if volumes.spill_ms.any():
        seen = volumes.spill_ms.sum() / busy
        assumed.append(f"spilling, {100 * seen:.0f} % of {unit_time} by its samples, grows and shrinks with its bytes")
    if ratio < 1:
        parts[:, cpu] += np.minimum(volumes.gc_ms, parts[:, cpu]) * (1 / ratio - 1)
        if not missing.any():
            assumed = [
                f"every {words.vocabulary.unit}'s peak memory still fits; cached blocks and objects that live long are"
                " not counted"
            ]
        assumed.append(f"garbage collection, {100 * gc:.1f} % of {unit_time}, comes {1 / ratio:.1f} times as often")
    return replace(state, parts_ms=parts).assuming(*assumed)


def _all_of_it(memory_bytes: float, _properties: Mapping[str, str]) -> float:
    return memory_bytes
