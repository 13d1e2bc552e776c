-- The workers of a run, with unknown values filled in from their tasks.
--
-- one row per worker that is in the log or ran a task, by the time it was added:
--   worker_id, host
--   slots          tasks it can run at a time; for a worker known only from its tasks, the most that it ran at a time
--   added_ms       when it registered, at the latest with its first task
--   removed_ms     when it was lost; NULL if it lived to the end
--   memory_bytes   its memory
WITH unregistered AS (
    SELECT worker_id, launch_ms, finish_ms
    FROM tasks ANTI JOIN (SELECT worker_id FROM workers WHERE slots <> 0) USING (worker_id)
),
moments AS (
    SELECT worker_id, launch_ms AS at_ms, 1 AS change FROM unregistered
    UNION ALL SELECT worker_id, finish_ms, -1 FROM unregistered
),
levels AS (
    SELECT worker_id, sum(change) OVER (PARTITION BY worker_id ORDER BY at_ms, change) AS level FROM moments
),
used AS (SELECT worker_id, max(level) AS slots FROM levels GROUP BY worker_id),
seen AS (SELECT worker_id, any_value(host) AS host, min(launch_ms) AS first_ms FROM tasks GROUP BY worker_id)
SELECT
    coalesce(workers.worker_id, seen.worker_id) AS worker_id,
    coalesce(workers.host, seen.host, '?') AS host,
    coalesce(nullif(workers.slots, 0), used.slots) AS slots,
    least(coalesce(workers.added_ms, seen.first_ms), coalesce(seen.first_ms, workers.added_ms)) AS added_ms,
    workers.removed_ms,
    workers.memory_bytes
FROM workers FULL JOIN seen USING (worker_id) LEFT JOIN used ON used.worker_id = seen.worker_id
ORDER BY added_ms, worker_id
