-- Utilization of each worker, by resource.
--
-- one row per worker that ran tasks:
--   worker_id      the framework's id
--   host           node it ran on
--   slots          slots: concurrent tasks
--   tasks          tasks that it ran, counting each attempt
--   there_ms       how long it existed
--   task_ms        sum of its tasks' times
--   busy           task time over the time of its slots, 0 to 1; NULL if their number is unknown
--   <resource>_ms  task time on <resource>
--   other_ms       task time on no resource, or unknown
--   most           the resource with the most of it, or other
--   gc_ms          garbage collection of its process while tasks ran, summed over tasks
WITH of_tasks AS (
    SELECT worker_id, count(*) AS tasks, sum(finish_ms - launch_ms) AS task_ms, {sums_ms}, sum(gc_ms) AS gc_ms
    FROM tasks
    GROUP BY worker_id
)
SELECT
    w.worker_id, w.host, w.slots, u.tasks, there_ms, u.task_ms,
    u.task_ms / nullif(w.slots * there_ms, 0) AS busy, {all_ms}, {most_ms} AS most, u.gc_ms
FROM (
    SELECT *, coalesce(removed_ms, (SELECT duration_ms FROM runs)) - added_ms AS there_ms FROM workers
) AS w JOIN of_tasks AS u USING (worker_id)
