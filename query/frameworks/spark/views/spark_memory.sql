-- Memory that each executor of a Spark run used, and the heap that it needed, as far as the log records it.
--
-- one row per executor, and the driver of a local run, whose memory the log records (spark_executor_metrics):
--   worker_id      executor, or driver
--   tasks          task attempts that ran on it
--   heap_bytes     its heap: spark.executor.memory, of a local run spark.driver.memory
--   used_bytes     the largest use of the heap, garbage included
--   left_bytes     the largest use that a garbage collection left, by a recording of its JVM; NULL without one
--   managed_bytes  of the heap, the largest amount that Spark managed: execution and storage together
--   execution_bytes  memory of sorts, joins and aggregations, the largest amount; they spill if there is less
--   storage_bytes  cached rows and broadcasts, the largest amount
--   own_bytes      the largest use of the heap by anything else, garbage included if left_bytes is NULL
--   spill_memory_bytes  size in memory of the data that its tasks spilled
--   gc_share       garbage collection, as a share of its tasks' time
--   full_gcs       full collections of the heap
--   sampled_share  share of its tasks' time in stages whose memory the log records
--   outside_bytes  the largest use outside the heap: the JVM's own and direct buffers, off-heap execution and storage
--   processes_bytes  the largest resident memory of its Python workers and other processes; 0 if not recorded
--   resident_bytes   the largest resident memory of its JVM; 0 if not recorded
--   needed_outside_bytes  the memory of its container that it needed besides the heap: all that, and thread stacks; NULL
--                  without spark.executor.processTreeMetrics.enabled
--   floor_bytes    with a smaller heap, it would likely have run out of memory: own_bytes, if the heap was ever
--                  collected whole, and at least the heap with which Spark starts
--   safe_bytes     with this heap, all that was in use fits: it runs, but its tasks may spill more; at least 512 MiB. In
--                  a driver that broadcasts, twice what was stored fits besides Spark's 300 MiB: the peak of building a
--                  broadcast is short
--   needed_bytes   the heap that it needed to run as it did, without more spills
WITH collected AS (
    SELECT heaps.worker_id, stage_id, max(used_bytes) AS left_bytes
    FROM heaps JOIN stages ON time_ms BETWEEN first_launch_ms AND end_ms
    GROUP BY ALL
),
peaks AS (
    SELECT
        worker_id,
        max(jvm_heap_bytes) AS used_bytes,
        max(left_bytes) AS left_bytes,
        max(heap_unified_bytes) AS managed_bytes,
        max(heap_execution_bytes) AS execution_bytes,
        max(heap_storage_bytes) AS storage_bytes,
        max(coalesce(left_bytes, jvm_heap_bytes) - heap_unified_bytes) AS own_bytes,
        max(major_gcs) AS full_gcs,
        max(jvm_off_heap_bytes + direct_bytes + off_heap_unified_bytes) AS outside_bytes,
        max(python_resident_bytes + other_resident_bytes) AS processes_bytes,
        max(jvm_resident_bytes) AS resident_bytes
    FROM spark_executor_metrics LEFT JOIN collected USING (worker_id, stage_id)
    GROUP BY worker_id
),
sampled AS (SELECT DISTINCT worker_id, stage_id, true AS sampled FROM spark_executor_metrics),
ran AS (
    SELECT
        worker_id,
        count(*) AS tasks,
        coalesce(sum(spill_memory_bytes), 0) AS spill_memory_bytes,
        coalesce(sum(gc_ms) / nullif(sum(finish_ms - launch_ms), 0), 0) AS gc_share,
        coalesce(
            sum(finish_ms - launch_ms) FILTER (sampled) / nullif(sum(finish_ms - launch_ms), 0), 0
        ) AS sampled_share
    FROM tasks LEFT JOIN sampled USING (worker_id, stage_id)
    GROUP BY worker_id
),
given AS (
    SELECT
        worker_id,
        memory_bytes AS heap_bytes,
        coalesce(try_cast(nullif(properties['spark.memory.fraction'], '') AS DOUBLE), 0.6) AS share,
        300 * 1024 * 1024 AS reserved_bytes,
        512 * 1024 * 1024 AS least_bytes,
        CASE
            WHEN kind = 'driver' AND EXISTS (FROM operators AS o WHERE o.name LIKE '%BroadcastExchange%') THEN 1
            ELSE 0
        END AS is_building
    FROM workers, runs
)
SELECT
    worker_id, tasks, heap_bytes, used_bytes, left_bytes, managed_bytes, execution_bytes, storage_bytes, own_bytes,
    spill_memory_bytes, gc_share, full_gcs, sampled_share, outside_bytes, processes_bytes, resident_bytes,
    CASE WHEN resident_bytes > 0 THEN outside_bytes + processes_bytes + 64 * 1024 * 1024 END::BIGINT
        AS needed_outside_bytes,
    -- Only a full collection shows what is alive: young ones leave dead objects, in the lab 1168 MiB of a job that works
    -- in a heap of 460.
    greatest(CASE WHEN full_gcs > 0 THEN own_bytes END, 1.5 * reserved_bytes)::BIGINT AS floor_bytes,
    greatest(
        1.1 * greatest(used_bytes, is_building * (reserved_bytes + 2 * storage_bytes)), least_bytes
    )::BIGINT AS safe_bytes,
    greatest(safe_bytes, managed_bytes / share + reserved_bytes)::BIGINT AS needed_bytes
FROM peaks JOIN ran USING (worker_id) JOIN given USING (worker_id)
ORDER BY worker_id
