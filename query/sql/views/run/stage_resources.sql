-- Time of each stage's tasks by resource, and its skew.
--
-- one row per attempt of a stage that ran:
--   stage_id       the stage
--   scope_id       the scope it works for
--   name           its name in the framework's own UI
--   io_kinds       what its tasks read and write
--   status         succeeded, failed or unfinished
--   tasks          tasks that ran, counting each attempt
--   launch_ms      launch of its first task
--   end_ms         end of its last task
--   length_ms      from launch_ms to end_ms
--   task_ms        sum of its tasks' times: the columns by resource and other_ms add up to it
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on no resource, or unknown
--   most           the resource with the most of it, or other
--   median_ms      median length of a task
--   longest_ms     length of the longest
--   skew           the longest over the median; NULL for one task
--   gc_ms          garbage collection of processes while tasks ran, summed over tasks
--   input_bytes    read from storage
--   remote_read_bytes   read from other workers
--   local_read_bytes    read from tasks of the same worker
--   exchange_write_bytes   written for other tasks
--   output_bytes   written to storage
--   spill_disk_bytes  size on disk of spilled data
WITH of_tasks AS (
    SELECT
        stage_id, count(*) AS tasks, min(launch_ms) AS launch_ms, max(finish_ms) AS end_ms,
        max(finish_ms) - min(launch_ms) AS length_ms, sum(finish_ms - launch_ms) AS task_ms,
        {sums_ms},
        median(finish_ms - launch_ms) AS median_ms, max(finish_ms - launch_ms) AS longest_ms,
        CASE WHEN count(*) > 1 THEN max(finish_ms - launch_ms) / nullif(median(finish_ms - launch_ms), 0) END AS skew,
        sum(gc_ms) AS gc_ms, sum(input_bytes)::BIGINT AS input_bytes, sum(remote_read_bytes)::BIGINT AS remote_read_bytes,
        sum(local_read_bytes)::BIGINT AS local_read_bytes, sum(exchange_write_bytes)::BIGINT AS exchange_write_bytes,
        sum(output_bytes)::BIGINT AS output_bytes, sum(spill_disk_bytes)::BIGINT AS spill_disk_bytes
    FROM tasks
    GROUP BY stage_id
)
SELECT g.stage_id, g.scope_id, g.name, g.io_kinds, g.status, u.* EXCLUDE (stage_id)
FROM stages AS g JOIN (SELECT *, {most_ms} AS most FROM of_tasks) AS u USING (stage_id)
