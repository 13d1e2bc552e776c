"""The heap of an executor and its share for tasks."""

from __future__ import annotations

from collections.abc import Mapping

from crystalperf.query.frameworks import MemoryRule
from crystalperf.query.frameworks.spark.needs import memory_use
from crystalperf.query.frameworks.spark.settings import share

HEAP_RESERVED_BYTES = 300 * 2**20
"""Spark keeps this much of the heap for itself (UnifiedMemoryManager.RESERVED_SYSTEM_MEMORY_BYTES)."""

DEFAULT_FRACTION = 0.6
"""Spark's default of spark.memory.fraction."""


def usable_bytes(heap_bytes: float, properties: Mapping[str, str]) -> float:
    """Memory of an executor's tasks together: a fraction of the heap, less Spark's reserve."""
    return max(heap_bytes - HEAP_RESERVED_BYTES, 0.0) * _fraction(properties)


def heap_bytes(usable: float, properties: Mapping[str, str]) -> float:
    """The heap with that much memory for tasks, the inverse of usable_bytes."""
    return usable / _fraction(properties) + HEAP_RESERVED_BYTES


def _fraction(properties: Mapping[str, str]) -> float:
    return share(properties.get("spark.memory.fraction")) or DEFAULT_FRACTION


MEMORY = MemoryRule(usable_bytes, least_bytes=1.5 * HEAP_RESERVED_BYTES, use=memory_use)
