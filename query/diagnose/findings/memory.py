"""Findings about too little memory: spills, garbage collection, and cache misses."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.indexes.resources import DISK, OTHER
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.volumes import most_spilling_ms
from crystalperf.query.results.advice import AvoidSpilling, FitCache, MoreMemory
from crystalperf.query.results.findings import CacheMissTime, GarbageCollection, Spilling, StageRef

GC = 0.1
"""Garbage collection is reported from this share of a stage's task time."""


def spilling(details: Sequence[StageStats], spilled_by: Sequence[str]) -> list[Spilling]:
    """Spills: too little memory, so that rows went to disk; `spilled_by` are names of operators, worst first.

    Evidence: spilled bytes.  The cost is at most the time on disk plus `other`, the latter limited to the time that
    writing and reading back those bytes takes (most_spilling_ms).
    """
    stages = [detail for detail in details if detail.facts.spill_bytes and detail.facts.task_ms > 0]
    if not stages:
        return []
    spilled = sum(each.facts.spill_bytes for each in stages)
    cost = 0.0
    for each in stages:
        facts = each.facts
        moved_ms = float(most_spilling_ms(facts.spill_bytes, each.spill_memory_bytes))
        on_disk_ms = facts.resource_ms[DISK] + min(facts.resource_ms[OTHER], moved_ms)
        cost += facts.path_ms * min(on_disk_ms / facts.task_ms, 1.0)
    worst = max((each.facts for each in stages), key=lambda each: each.spill_bytes)
    advice = AvoidSpilling(delegated=all(each.spills_apart for each in stages))
    operator = spilled_by[0] if spilled_by else None
    return [Spilling(cost, "modelled", advice, spilled, StageRef(worst.id, worst.name), operator)]


def garbage_collection(details: Sequence[StageStats]) -> list[GarbageCollection]:
    """Garbage collection that takes a good part of the tasks' time, because heaps are nearly full."""
    found = [each.facts for each in details if each.facts.gc_ms > GC * each.facts.task_ms > 0]
    if not found:
        return []
    cost = sum(each.path_ms * min(each.gc_ms / each.task_ms, 1.0) for each in found)
    worst = max(found, key=lambda each: each.gc_ms)
    share, advice = worst.gc_ms / worst.task_ms, MoreMemory(fewer_slots=True)
    return [GarbageCollection(cost, "measured", advice, StageRef(worst.id, worst.name), share, len(found) - 1)]


def cache_miss_findings(details: Sequence[StageStats]) -> list[CacheMissTime]:
    """Cache misses: too little memory for cached data, so that tasks read and computed it again.

    Evidence: tasks that read files while others of their stage read the same data from memory.  The cost is at most
    the time that stages would save if all tasks were as fast as the fastest quarter of cache hits.
    """
    found = [each for each in details if each.cache_misses and each.facts.task_ms > 0]
    cost = sum(each.facts.path_ms * min(each.cache_miss_ms / each.facts.task_ms, 1.0) for each in found)
    if cost <= 0:
        return []
    worst = max(found, key=lambda each: each.cache_miss_ms)
    others, facts = sum(each.cache_misses for each in found) - worst.cache_misses, worst.facts
    stage = StageRef(facts.id, facts.name)
    return [CacheMissTime(cost, "modelled", FitCache(), stage, worst.cache_misses, facts.tasks, others, len(found) - 1)]
