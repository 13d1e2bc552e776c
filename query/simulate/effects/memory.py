"""memory: a reversed roofline (paper §5), flat above what the run needs, transfers below it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexes.resources import CPU, DISK
from crystalperf.query.execution.execution import MemoryRule
from crystalperf.query.execution.scenario import World
from crystalperf.query.results.assumptions import (
    Assumption,
    GarbageScales,
    MemorySufficed,
    MissingMemory,
    PeakFits,
    SpillingScales,
)
from crystalperf.query.results.refusals import (
    GarbageSavingUnknown,
    LiveHeapUnknown,
    MemoryBelowMinimum,
    MemoryNeedUnknown,
    MemoryUnknown,
    RefusedError,
    SpilledMemoryUnknown,
)
from crystalperf.query.simulate.caching import cache_refusal
from crystalperf.query.simulate.effects import State
from crystalperf.query.simulate.transfers import moves_known
from crystalperf.query.trace.records import Floats

MUCH_COLLECTING = 0.1
"""Share of the units' time in garbage collection from which another heap changes more than is known of it."""


@dataclass(frozen=True)
class _Request:
    """Another memory: `ratio` times as much for `slots` times as many slots, in a run that had `memory` bytes a worker.

    `gc` is the share of garbage collection in unit time, `spilled` whether workers spilled.
    """

    ratio: float
    slots: float
    memory: float | None
    gc: float
    spilled: bool


def apply(state: State, world: World) -> State:
    """The state with the transfers that less memory adds or more memory saves.

    The roofline is flat above the turning point: the memory that the slots of a worker hold at their peak.  Below it
    every missing byte is written and read again at disk speed (§5, ours for the seconds); where units were sampled
    spilling, what that kept them from grows and shrinks with the bytes that are missing.  And garbage is collected as
    much more often as the heap is smaller, at the same price each time.  Where another number of slots is asked for
    beside it, these share it; slots alone leave each unit its spills, as a sort on half of them bears out (suite
    `kinds`).  Raises RefusedError where the run has too little about its memory.
    """
    execution = state.execution
    if world.ratio("memory") == 1:
        return state
    volumes = execution.worker_volumes
    busy = float(execution.units.duration_ms.sum()) or 1.0
    asked = _Request(
        ratio=world.ratio("memory"),
        slots=world.ratio("cores"),
        memory=execution.recorded.get("memory"),
        gc=float(volumes.gc_ms.sum()) / busy,
        spilled=bool(volumes.spill_memory.any()),
    )
    _refuse_unknown_spills(state, world, asked)
    if asked.ratio > 1 and not asked.spilled and (asked.slots <= asked.ratio or asked.memory is None):
        return state.assuming(MemorySufficed(asked.gc, bool(execution.volumes.spill_memory.any())))
    missing = _missing(state, asked)
    rate_bps, parts = _on_disk(state, world, missing, asked)
    cpu = execution.names.index(CPU)
    if asked.spilled:
        share = np.divide(missing, volumes.spill_memory, out=np.ones(len(missing)), where=volumes.spill_memory > 0)
        parts[:, cpu] += np.minimum(volumes.spill_ms, parts[:, cpu]) * (share - 1)
    assumed: list[Assumption] = [MissingMemory(float(rate_bps))]
    if volumes.spill_ms.any():
        assumed.append(SpillingScales(float(volumes.spill_ms.sum() / busy)))
    if asked.ratio < 1:
        parts[:, cpu] += np.minimum(volumes.gc_ms, parts[:, cpu]) * (1 / asked.ratio - 1)
        if not missing.any():
            assumed = [PeakFits()]
        assumed.append(GarbageScales(asked.gc, 1 / asked.ratio))
    return replace(state, parts_ms=parts).assuming(*assumed)


def _refuse_unknown_spills(state: State, world: World, asked: _Request) -> None:
    """Raise RefusedError where cached data, spills or garbage collection change by an unknown amount."""
    volumes = state.execution.worker_volumes
    if refusal := cache_refusal(state.execution, world):
        raise RefusedError(refusal, low=1.0)
    if volumes.spill_disk.any() and not asked.spilled:  # Photon logs no more
        low, high = (1.0 if asked.ratio < 1 else None), (1.0 if asked.ratio > 1 else None)
        raise RefusedError(SpilledMemoryUnknown(float(volumes.spill_disk.sum())), low=low, high=high)
    if asked.ratio > 1 and not asked.spilled and asked.gc > MUCH_COLLECTING:
        raise RefusedError(GarbageSavingUnknown(asked.gc), high=1.0)


def _missing(state: State, asked: _Request) -> Floats:
    """The bytes that each unit lacks.  Raises RefusedError where what units held is unknown, or workers do not start.

    A unit that spilled lacked the spilled bytes; more memory of its slot lowers that, less raises it.  One that did not
    spill lacks the part of its peak that no longer fits.
    """
    execution, volumes = state.execution, state.execution.worker_volumes
    if asked.memory is None:
        raise RefusedError(MemoryUnknown(execution.words.vocabulary.word_of("memory")))
    rule = execution.planner.memory or MemoryRule(lambda memory_bytes, _properties: memory_bytes)
    wanted = asked.memory * asked.ratio
    if wanted < rule.least_bytes:
        raise RefusedError(MemoryBelowMinimum(execution.title, wanted, rule.least_bytes))
    if not (execution.tells_memory or asked.spilled):
        raise RefusedError(MemoryNeedUnknown(), low=1.0)
    if asked.ratio < 1 and asked.gc > MUCH_COLLECTING:
        raise RefusedError(LiveHeapUnknown(asked.gc), low=1.0)
    before, after = (rule.usable(size, execution.properties) for size in (asked.memory, wanted))
    cores = max(execution.recorded.get("cores") or 1, 1)
    per_slot = before / cores, after / (cores * asked.slots)
    found: Floats = np.where(
        volumes.spill_memory > 0,
        np.maximum(volumes.spill_memory - (per_slot[1] - per_slot[0]), 0.0),
        np.maximum(volumes.peak_memory - per_slot[1], 0.0),
    )
    return found


def _on_disk(state: State, world: World, missing: Floats, asked: _Request) -> tuple[float, Floats]:
    """The bytes a second of the disk, and the parts of each unit with the time on it that missing memory makes."""
    execution, volumes = state.execution, state.execution.worker_volumes
    disk = execution.names.index(DISK)
    # On disk the data are as small as the spills were.
    squeeze = volumes.spill_disk.sum() / volumes.spill_memory.sum() if asked.spilled else 0.5
    storage = execution.resources[disk]
    rate_bps = execution.recorded.get(storage.setting) or storage.rate_bps
    assert rate_bps is not None  # every run's disk has one
    if moves_known(execution, storage):  # else all time on the disk changes with it later on
        rate_bps *= world.ratio(storage.setting)
    change_ms = (missing - volumes.spill_memory) * squeeze * 2 / rate_bps * 1e3
    parts = state.parts_ms.copy()
    saved = np.minimum(np.maximum(-change_ms, 0.0), parts[:, disk])
    parts[:, disk] += np.maximum(change_ms, 0.0) - saved
    return rate_bps, parts
