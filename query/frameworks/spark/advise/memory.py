"""Recommendations on memory that was exhausted, or too small for tasks and cached data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import duckdb

from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.advise.changes import changed, changed_size
from crystalperf.query.frameworks.spark.advise.executors import DEFAULT_MEMORY, DRIVER_MEMORY, MEMORY, resized
from crystalperf.query.frameworks.spark.advise.partitions import PARTITIONS
from crystalperf.query.frameworks.spark.advise.stages import reads_shuffle
from crystalperf.query.frameworks.spark.memory import usable_bytes
from crystalperf.query.frameworks.spark.needs import OVERSIZED, Needs, needs
from crystalperf.query.frameworks.spark.partitions import DEFAULT_PARTITIONS, MIB
from crystalperf.query.frameworks.spark.python.memory_lines import LIMIT
from crystalperf.query.frameworks.spark.recommendations import (
    ExtendMemory,
    FewerTasksPerGpu,
    FitTasksInMemory,
    RightSizeMemory,
)
from crystalperf.query.frameworks.spark.settings import is_local, share, size_bytes, whole
from crystalperf.query.results.answers import Debug
from crystalperf.query.results.findings import CacheMissTime, GarbageCollection, Spilling
from crystalperf.query.results.recommendations import GUESSED, MODELLED, Candidate, MoreMemory, SettingChange

PYTHON_MEMORY = "spark.python.worker.memory"
DEFAULT_PYTHON_MEMORY = 512 * 2**20
"""Memory of a Python worker for an RDD before it spills."""

GPU_TASKS = "spark.rapids.sql.concurrentGpuTasks"

OVERHEAD = "spark.executor.memoryOverhead"
MIN_OVERHEAD = 384 * MIB
OVERHEAD_SAFETY = 1.2
OVERHEAD_SHARE = 0.1
"""Share of executor memory that Spark adds for off-heap use, if not set (spark.executor.memoryOverhead)."""


def overhead_bytes(properties: Mapping[str, str], heap_bytes: float) -> float:
    """The memory of an executor's container besides its heap."""
    stated = size_bytes(properties.get(OVERHEAD), "m")
    return stated or max(MIN_OVERHEAD, (share(properties.get(f"{OVERHEAD}Factor")) or OVERHEAD_SHARE) * heap_bytes)


def _in_container(properties: Mapping[str, str]) -> bool:
    """Whether the cluster manager gives executors containers of heap and overhead, and ends those that use more."""
    return (properties.get("spark.master") or "").startswith(("yarn", "k8s"))


def exhausted(execution: Execution, debug: Debug) -> Iterator[Candidate]:
    """The cause of the run's failure, if it was memory."""
    memory = None if debug.outcome is None else debug.outcome.memory
    properties = execution.properties
    if memory == "delegate":
        limit = size_bytes(properties.get(LIMIT), "m")
        if limit:
            change = changed_size(properties, LIMIT, 2 * limit, limit)
            extended = ExtendMemory(
                price="setting", because="outcome", saving=MODELLED, settings=(change,), ratio=2.0, exhausted=memory
            )
            yield Candidate(extended, comes_first=True)
        return
    if memory is None or is_local(properties):
        return
    if memory == "device":
        change = SettingChange(GPU_TASKS, properties.get(GPU_TASKS), 1)
        value = FewerTasksPerGpu(price="setting", because="outcome", saving=MODELLED, settings=(change,))
        yield Candidate(value, comes_first=True)
        return
    heap = size_bytes(properties.get(MEMORY)) or DEFAULT_MEMORY
    if memory == "heap":
        change, sure = changed_size(properties, MEMORY, 2 * heap, heap), True
    else:
        before = overhead_bytes(properties, heap)
        change, sure = changed_size(properties, OVERHEAD, 2 * before, before), memory == "container"
    failed = debug.outcome is not None and debug.outcome.status == "failed"
    extended = ExtendMemory(
        price="machine", because="outcome", saving=MODELLED if sure else GUESSED, settings=(change,),
        ratio=2.0, exhausted=memory,
    )  # fmt: skip
    yield Candidate(extended, comes_first=sure or failed)


def short(execution: Execution, details: Sequence[StageStats], debug: Debug) -> Iterator[Candidate]:
    """More memory against garbage collection, spills and cache misses; more partitions against spills of stages that
    read a shuffle."""
    costs = {
        each.kind: each.cost_ms
        for each in debug.findings
        if isinstance(each, GarbageCollection | Spilling | CacheMissTime)
    }
    if not costs:
        return
    if "cache-misses" in costs:  # a heap full of cached data causes useless garbage collection, too
        costs = {**costs, "cache-misses": costs["cache-misses"] + costs.get("garbage-collection", 0.0)}
    worst = max(costs, key=lambda each: costs[each])
    by_python = [each.spills_apart for each in details if each.facts.spill_bytes]
    if worst == "spilling" and by_python and all(by_python):
        before = size_bytes(execution.properties.get(PYTHON_MEMORY)) or DEFAULT_PYTHON_MEMORY
        change = changed_size(execution.properties, PYTHON_MEMORY, 2 * before, before)
        value = MoreMemory(price="setting", because=worst, saving=MODELLED, settings=(change,), ratio=2.0)
        yield Candidate(value, at_most_ms=costs[worst])
        return
    resize = resized(execution, "memory", 2.0)
    if resize is not None:
        yield replace(resize, recommendation=replace(resize.recommendation, because=worst), at_most_ms=costs[worst])
    yield from _smaller_partitions(execution, details, costs.get("spilling"))


def right_size(connection: duckdb.DuckDBPyConnection, execution: Execution, debug: Debug) -> Iterator[Candidate]:
    """Smaller heaps, if the log shows that executors needed at most half of theirs and nothing ran out of memory: the
    smallest that is safe, if its spills take no noticeable time, else the one without more spills."""
    found = needs(connection, execution.properties)
    if found is None or not found.is_polled or found.heap_bytes < OVERSIZED * found.safe_bytes:
        return
    if debug.outcome is None or debug.outcome.memory is not None or debug.outcome.lost:
        return
    for after_bytes, may_spill in ((found.safe_bytes, True), (found.needed_bytes, False)):
        if found.heap_bytes >= OVERSIZED * after_bytes:
            value = _resized_to(execution.properties, found, after_bytes)
            ratio = (value.settings[0].after_bytes or after_bytes) / found.heap_bytes
            yield Candidate(value, f"memory={ratio:.4f}x" if may_spill else None)


def _resized_to(properties: Mapping[str, str], found: Needs, after_bytes: float) -> RightSizeMemory:
    name = DRIVER_MEMORY if is_local(properties) else MEMORY
    changes = [changed_size(properties, name, after_bytes, found.heap_bytes)]
    if _in_container(properties) and found.outside_bytes is not None:
        outside_bytes = max(OVERHEAD_SAFETY * found.outside_bytes, MIN_OVERHEAD)
        changes.append(changed_size(properties, OVERHEAD, outside_bytes, overhead_bytes(properties, found.heap_bytes)))
    before = sum(each.before_bytes or 0.0 for each in changes)
    after = sum(each.after_bytes or 0.0 for each in changes)
    return RightSizeMemory(
        price="setting", because="memory", saving=MODELLED, settings=tuple(changes),
        freed_byte_ms=(before - after) * found.lifetime_ms, share=1 - after / before,
        heap_bytes=found.heap_bytes, used_bytes=found.used_bytes, floor_bytes=found.floor_bytes,
    )  # fmt: skip


def _smaller_partitions(
    execution: Execution, details: Sequence[StageStats], most_ms: float | None
) -> Iterator[Candidate]:
    """More partitions, enough for the rows of a task to fit into its memory."""
    properties = execution.properties
    count = whole(properties.get(PARTITIONS)) or DEFAULT_PARTITIONS
    spilled = [
        each
        for each in details
        if each.spill_memory_bytes and each.facts.scope is not None and reads_shuffle(each)
        if each.facts.tasks >= count
    ]
    if not spilled:
        return
    largest = max(spilled, key=lambda each: each.spill_memory_bytes)
    heap = size_bytes(properties.get(MEMORY)) or DEFAULT_MEMORY
    a_task = usable_bytes(heap, properties) / max(execution.recorded.get("cores") or 1.0, 1.0)
    times = 1 + largest.spill_memory_bytes / largest.facts.tasks / max(a_task, 1.0)
    change = changed(properties, PARTITIONS, min(math.ceil(times), 8) * count, DEFAULT_PARTITIONS)
    value = FitTasksInMemory(
        price="setting", because="spilling", saving=MODELLED, settings=(change,), stage=largest.facts.id
    )
    yield Candidate(value, at_most_ms=most_ms)
