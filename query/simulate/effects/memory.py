"""memory: a reversed roofline (paper §5), flat above the memory that the run needs, transfers below it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, DISK
from crystalperf.query.execution.execution import MemoryRule
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.results.assumptions import (
    Assumption,
    GarbageCollectionScales,
    LiveDataFits,
    MemorySufficed,
    MissingMemory,
    PeakFits,
    SpillingScales,
)
from crystalperf.query.results.refusals import (
    GarbageCollectionSavingUnknown,
    LiveHeapUnknown,
    MemoryBelowMinimum,
    MemoryNeedUnknown,
    MemoryRunsOut,
    MemoryUnknown,
    RefusedError,
    SpilledMemoryUnknown,
)
from crystalperf.query.simulate.caching import cache_refusal
from crystalperf.query.simulate.effects import State
from crystalperf.query.simulate.transfers import moves_known
from crystalperf.query.trace.records import Floats

MUCH_COLLECTING = 0.1
"""Share of task time in garbage collection from which the effect of another heap size is unknown."""


@frozen
class _Request:
    """Another memory size: `ratio` times as much for `slots` times as many slots; workers had `memory` bytes each.

    `gc` is the share of garbage collection in task time, `spilled` whether workers spilled.
    """

    ratio: float
    slots: float
    memory: float | None
    gc: float
    spilled: bool


def apply(state: State, scenario: Scenario) -> State:
    """The state with the transfers that less memory adds or more memory saves.

    The roofline is flat above the turning point: the peak memory of a worker's slots. Below it every missing byte is
    written and read again at disk speed (§5; the formula for the seconds is ours). If samples show tasks spilling, the
    CPU time of spilling scales with the missing bytes. The number of garbage collections grows as the heap shrinks, at
    the same cost each; a part of it that was never in use costs none. If the scenario also changes the number of slots,
    they share the memory; a change of slots alone leaves each task its spills, which a sort on half of the slots
    confirms (suite `kinds`). Raises RefusedError if the run has too little data about its memory.
    """
    execution = state.execution
    if scenario.ratio("memory") == 1:
        return state
    volumes = execution.worker_volumes
    busy = float(execution.tasks.duration_ms.sum()) or 1.0
    request = _Request(
        ratio=scenario.ratio("memory"),
        slots=scenario.ratio("cores"),
        memory=execution.recorded.get("memory"),
        gc=float(volumes.gc_ms.sum()) / busy,
        spilled=bool(volumes.spill_memory.any()),
    )
    _refuse_unknown_spills(state, scenario, request)
    if request.ratio > 1 and not request.spilled and (request.slots <= request.ratio or request.memory is None):
        return state.assuming(MemorySufficed(request.gc, bool(execution.volumes.spill_memory.any())))
    missing = _missing(state, request)
    rate_bps, parts = _on_disk(state, scenario, missing, request)
    cpu = execution.names.index(CPU)
    if request.spilled:
        share = np.divide(missing, volumes.spill_memory, out=np.ones(len(missing)), where=volumes.spill_memory > 0)
        parts[:, cpu] += np.minimum(volumes.spill_ms, parts[:, cpu]) * (share - 1)
    assumed: list[Assumption] = [MissingMemory(float(rate_bps))]
    if volumes.spill_ms.any():
        assumed.append(SpillingScales(float(volumes.spill_ms.sum() / busy)))
    if request.ratio < 1:
        times = _collections(state, request)
        parts[:, cpu] += np.minimum(volumes.gc_ms, parts[:, cpu]) * (times - 1)
        if not missing.any():
            assumed = [PeakFits()]
        if times > 1:
            assumed.append(GarbageCollectionScales(request.gc, times))
        wanted, use = (request.memory or 0.0) * request.ratio, execution.memory_use
        if use is not None and wanted < use.safe_bytes:
            assumed.append(LiveDataFits(wanted, use.safe_bytes))
    return replace(state, parts_ms=parts).assuming(*assumed)


def _collections(state: State, request: _Request) -> float:
    """How many times as many garbage collections there are: a heap that was never full loses only its unused part."""
    use = state.execution.memory_use
    if use is None or request.memory is None:
        return 1 / request.ratio
    return max(min(request.memory, use.safe_bytes) / (request.memory * request.ratio), 1.0)


def _refuse_unknown_spills(state: State, scenario: Scenario, request: _Request) -> None:
    """Raise RefusedError if cached data, spills or garbage collection change by an unknown amount."""
    volumes = state.execution.worker_volumes
    if refusal := cache_refusal(state.execution, scenario):
        raise RefusedError(refusal, low=1.0)
    if volumes.spill_disk.any() and not request.spilled:  # Photon logs no more
        low, high = (1.0 if request.ratio < 1 else None), (1.0 if request.ratio > 1 else None)
        raise RefusedError(SpilledMemoryUnknown(float(volumes.spill_disk.sum())), low=low, high=high)
    if request.ratio > 1 and not request.spilled and request.gc > MUCH_COLLECTING:
        raise RefusedError(GarbageCollectionSavingUnknown(request.gc), high=1.0)


def _missing(state: State, request: _Request) -> Floats:
    """The missing bytes of each task.  Raises RefusedError if the tasks' memory is unknown, or workers would not start.

    A task that spilled lacked the spilled bytes; more memory of its slot reduces them, less increases them.  A task
    that did not spill lacks the part of its peak that no longer fits.
    """
    execution, volumes = state.execution, state.execution.worker_volumes
    if request.memory is None:
        raise RefusedError(MemoryUnknown(execution.words.vocabulary.word_of("memory")))
    rule = execution.planner.memory or MemoryRule(lambda memory_bytes, _properties: memory_bytes)
    wanted = request.memory * request.ratio
    if wanted < rule.least_bytes:
        raise RefusedError(MemoryBelowMinimum(execution.title, wanted, rule.least_bytes))
    use = execution.memory_use
    if request.ratio < 1 and use is not None and wanted < use.floor_bytes:
        raise RefusedError(MemoryRunsOut(wanted, use.floor_bytes))
    if not (execution.has_peak_memory or request.spilled):
        raise RefusedError(MemoryNeedUnknown(), low=1.0)
    if request.ratio < 1 and request.gc > MUCH_COLLECTING:
        raise RefusedError(LiveHeapUnknown(request.gc), low=1.0)
    before, after = (rule.usable(size, execution.properties) for size in (request.memory, wanted))
    cores = max(execution.recorded.get("cores") or 1, 1)
    per_slot = before / cores, after / (cores * request.slots)
    found: Floats = np.where(
        volumes.spill_memory > 0,
        np.maximum(volumes.spill_memory - (per_slot[1] - per_slot[0]), 0.0),
        np.maximum(volumes.peak_memory - per_slot[1], 0.0),
    )
    return found


def _on_disk(state: State, scenario: Scenario, missing: Floats, request: _Request) -> tuple[float, Floats]:
    """The disk bandwidth, bytes per second, and the parts of each task with the disk time of missing memory."""
    execution, volumes = state.execution, state.execution.worker_volumes
    disk = execution.names.index(DISK)
    # Missing bytes are compressed on disk as much as the recorded spills.
    squeeze = volumes.spill_disk.sum() / volumes.spill_memory.sum() if request.spilled else 0.5
    storage = execution.resources[disk]
    rate_bps = execution.recorded.get(storage.setting) or storage.rate_bps
    assert rate_bps is not None  # every run's disk has one
    if moves_known(execution, storage):  # else effects.bandwidth scales all time on the disk later
        rate_bps *= scenario.ratio(storage.setting)
    change_ms = (missing - volumes.spill_memory) * squeeze * 2 / rate_bps * 1e3
    parts = state.parts_ms.copy()
    saved = np.minimum(np.maximum(-change_ms, 0.0), parts[:, disk])
    parts[:, disk] += np.maximum(change_ms, 0.0) - saved
    return rate_bps, parts
