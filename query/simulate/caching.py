"""Cached data: what workers hold in memory between stages, and cache misses, tasks that read it from files again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crystalperf.query.execution.dag import AT_HOME, ELSEWHERE
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.results.refusals import CacheFull, CacheTooSmall, Refusal
from crystalperf.query.trace.arrays import median, members, safe_divide
from crystalperf.query.trace.records import Floats

QUICKEST = 0.25
"""Quantile of the durations of tasks with cached input that estimates a task's duration without any cache misses: tasks
with misses slow the others down too."""

SAFE_CAPACITY = 0.8
"""Share of memory capacity up to which all cached data fit: partitions are not spread evenly, and one that is being
unpacked needs its memory twice."""


def cache_misses(execution: Execution) -> NDArray[np.bool_]:
    """Which tasks had a cache miss, (tasks,): they read files, while others of their stage read cached data."""
    volumes, stage = execution.volumes, execution.tasks.stage
    keeps = np.bincount(stage, volumes.cached > 0, len(execution.dag.stages)) > 0
    found: NDArray[np.bool_] = keeps[stage] & (volumes.cached == 0) & (volumes.input > 0)
    return found


def cache_miss_ms(execution: Execution) -> Floats:
    """The maximum extra time of each task because of cache misses, (tasks,) in ms."""
    tasks, volumes, is_miss = execution.tasks, execution.volumes, cache_misses(execution)
    found = np.zeros(len(tasks))
    if not is_miss.any():
        return found
    for own in members(tasks.stage, len(execution.dag.stages)):
        if is_miss[own].any():
            takes = tasks.duration_ms[own]
            found[own] = np.maximum(takes - np.quantile(takes[volumes.cached[own] > 0], QUICKEST), 0.0)
    return found


def with_memory_capacity(execution: Execution, times: float) -> Execution:
    """The execution with `times` as much memory capacity for cached data, more than 1, of a run with cache misses.

    A worker caches as much as fits, so cache hits grow with the capacity until there are no misses.  The tasks that
    become hits are evenly spaced among those with a miss; the others keep their miss.
    """
    is_miss, spared = cache_misses(execution), avoided_miss_share(execution, times)
    rank = np.zeros(len(is_miss))
    rank[is_miss] = np.arange(is_miss.sum())
    becomes_hit = np.floor((rank + 1.0) * spared) > np.floor(rank * spared)
    share = np.where(is_miss, becomes_hit, spared)  # tasks with a hit slow each other down less, too
    found = _spared(execution, cache_miss_ms(execution) * share)
    tasks, volumes, now = found.tasks, found.volumes, is_miss & becomes_hit
    placement = np.where(now & (tasks.placement == ELSEWHERE), AT_HOME, tasks.placement)
    volumes = replace(volumes, cached=np.where(now, volumes.input, volumes.cached), far=np.where(now, 0, volumes.far))
    return replace(found, tasks=replace(tasks, placement=placement), volumes=volumes)


def avoided_miss_share(execution: Execution, times: float) -> float:
    """The share of cache misses that become hits with `times` as much memory capacity."""
    is_miss = cache_misses(execution)
    hits = int(in_stages_with_misses(execution).sum()) - int(is_miss.sum())
    return min(hits * (times - 1.0) / int(is_miss.sum()), 1.0) if is_miss.any() else 0.0


def in_stages_with_misses(execution: Execution) -> NDArray[np.bool_]:
    """Which tasks belong to stages with cache misses, (tasks,)."""
    stage = execution.tasks.stage
    found: NDArray[np.bool_] = (np.bincount(stage, cache_misses(execution), len(execution.dag.stages)) > 0)[stage]
    return found


def _spared(execution: Execution, less_ms: Floats) -> Execution:
    """The execution with `less_ms` less time for each task; CPU time and garbage collection shrink in proportion,
    because full memory caused part of them."""
    tasks, volumes = execution.tasks, execution.volumes
    left = 1.0 - safe_divide(less_ms, tasks.duration_ms)
    volumes = replace(volumes, total_cpu_ms=volumes.total_cpu_ms * left, gc_ms=volumes.gc_ms * left)
    return replace(execution, tasks=replace(tasks, parts_ms=tasks.parts_ms * left[:, None]), volumes=volumes)


def memory_capacity_ratio(execution: Execution, scenario: Scenario) -> float:
    """The factor on the memory capacity of all workers for cached data in a scenario."""
    before, after = usable_bytes(execution, scenario)
    return scenario.ratio("workers") * (after / before if before > 0 else scenario.ratio("memory"))


def usable_bytes(execution: Execution, scenario: Scenario) -> tuple[float, float]:
    """Usable memory of a worker for tasks and cached data, bytes, as recorded and in the scenario; 0 if unknown."""
    memory, rule = float(execution.recorded.get("memory") or 0.0), execution.planner.memory
    sizes = memory, memory * scenario.ratio("memory")
    before, after = (each if rule is None else max(rule.usable(each, execution.properties), 0.0) for each in sizes)
    return before, after


def kept_bytes(execution: Execution) -> float:
    """The cached bytes that a stage reads, the median over stages that read any: the size that must fit in memory.

    A stage may read the same data twice, so the maximum may be more than the size of the cache.
    """
    kept = np.bincount(execution.tasks.stage, execution.volumes.cached, len(execution.dag.stages))
    return median(kept[kept > 0]) if kept.any() else 0.0


def cache_refusal(execution: Execution, scenario: Scenario) -> Refusal | None:
    """Why the effect of too little memory for cached data is unknown, or None if the data fit."""
    ratio = scenario.ratio("workers") * scenario.ratio("memory")
    if ratio >= 1 or not (kept := kept_bytes(execution)):
        return None
    if cache_misses(execution).any():
        return CacheFull()
    workers = execution.recorded.get("workers")
    before, after = usable_bytes(execution, scenario)
    if not before or not workers:
        return None
    capacity = after * workers * scenario.ratio("workers")
    if kept <= SAFE_CAPACITY * capacity or kept > before * workers:
        return None
    return CacheTooSmall(float(kept), float(capacity))
