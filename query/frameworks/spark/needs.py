"""The memory that a run's executors needed, by what its log records of their memory (views/spark_memory.sql).

A log says how much heap was in use, not how much of that was garbage.  Memory that Spark manages for sorts, joins,
aggregations and cached rows can be on disk instead; anything else has to be in the heap, or the executor runs out.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution, MemoryUse
from crystalperf.query.frameworks.spark.remarks import HeapNearLimit, HeapOversized
from crystalperf.query.frameworks.spark.settings import duration_ms
from crystalperf.query.results.remarks import Remark

POLLING = "spark.executor.metrics.pollingInterval"

OVERSIZED = 2.0
"""A heap is too large if it is this many times the needed one."""

NEAR = 0.8
"""Share of the heap from which the floor is near it: a heap of 20 % less would likely not do."""

MOST_OF_TIME = 0.9
"""Share of task time in stages with memory metrics from which their peaks count as those of the run."""


@frozen
class Needs:
    """The heap of a run's executors and its use, the largest of all of them, bytes.

    floor_bytes   with a smaller heap, an executor would likely have run out
    safe_bytes    with this heap it runs, but may spill more
    needed_bytes  the heap to run as it did
    outside_bytes the memory of a container that an executor needed besides its heap; None if not recorded
    full_gcs      full collections of the heap; `gc_share` is the share of task time in garbage collection
    is_polled     whether Spark polled the memory often enough for these to be peaks
    lifetime_ms   the time that executors lived, summed
    """

    executors: int
    heap_bytes: float
    used_bytes: float
    floor_bytes: float
    safe_bytes: float
    needed_bytes: float
    outside_bytes: float | None
    full_gcs: int
    gc_share: float
    is_polled: bool
    lifetime_ms: float


def needs(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, str]) -> Needs | None:
    """The memory that the run needed; None if its log has no memory of executors, or executors differ in their heap."""
    if not sql.has_rows(connection, "spark_executor_metrics"):
        return None
    row = connection.execute(
        f"""
        WITH used AS ({sql.text("views/spark_memory", __package__)})
        SELECT
            count(*), min(used.heap_bytes), max(used_bytes), max(floor_bytes), max(safe_bytes), max(needed_bytes),
            max(needed_outside_bytes), max(full_gcs), max(gc_share), min(sampled_share),
            sum(coalesce(removed_ms, (SELECT duration_ms FROM runs)) - added_ms),
            max(used.heap_bytes)
        FROM used JOIN workers USING (worker_id)
        """
    ).fetchall()[0]
    count, heap, used, floor, safe, needed, outside, full_gcs, gc_share, sampled, lifetime_ms, largest = row
    if not count or heap is None or heap != largest:
        return None
    return Needs(
        executors=count,
        heap_bytes=float(heap),
        used_bytes=float(used),
        floor_bytes=float(floor),
        safe_bytes=float(safe),
        needed_bytes=float(needed),
        outside_bytes=None if outside is None else float(outside),
        full_gcs=full_gcs,
        gc_share=gc_share,
        is_polled=sampled >= MOST_OF_TIME and bool(duration_ms(properties.get(POLLING))),
        lifetime_ms=float(lifetime_ms),
    )


def memory_use(connection: duckdb.DuckDBPyConnection, properties: Mapping[str, str]) -> MemoryUse | None:
    """The use of executors of their heap, for predictions; None if it was not recorded."""
    found = needs(connection, properties)
    return None if found is None or not found.is_polled else MemoryUse(found.floor_bytes, found.safe_bytes)


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """That executors had far more heap than they needed, or hardly more.

    The latter only if full collections show it: garbage alone fills any heap.
    """
    found = needs(connection, execution.properties)
    if found is None:
        return []
    if found.is_polled and found.heap_bytes >= OVERSIZED * found.safe_bytes:
        return [HeapOversized(found.heap_bytes, found.used_bytes, found.safe_bytes)]
    if found.floor_bytes >= NEAR * found.heap_bytes and found.full_gcs:
        return [HeapNearLimit(found.heap_bytes, found.floor_bytes, found.gc_share, found.full_gcs)]
    return []
