-- How the tasks of each stage attempt went.
--
-- parameters  start and end of the scope in ms since application start
--
-- one row per stage attempt with a task in the scope; of its longest task, the columns that begin with longest_
WITH mine AS (
    SELECT
        *,
        finish_ms - launch_ms AS duration_ms,
        coalesce(input_bytes, 0) + coalesce(shuffle_remote_bytes, 0) + coalesce(shuffle_local_bytes, 0) AS read_bytes,
        coalesce(scheduler_delay_ms, 0) + coalesce(deserialize_ms, 0) AS starting_ms,
        row_number() OVER (PARTITION BY executor_id ORDER BY launch_ms, task_id) AS nth_of_executor
    FROM tasks
)
SELECT
    stage_id,
    stage_attempt,
    count(*) AS tasks,
    median(duration_ms) AS median_ms,
    max(duration_ms) AS longest_ms,
    median(read_bytes) AS median_bytes,
    max(read_bytes) AS most_bytes,
    sum(duration_ms) AS task_ms,
    sum(starting_ms) AS starting_ms,
    sum(coalesce(scheduler_delay_ms, 0)) AS scheduler_delay_ms,
    sum(coalesce(gc_ms, 0)) AS gc_ms,
    sum(coalesce(spill_disk_bytes, 0))::BIGINT AS spill_bytes,
    sum(coalesce(run_ms, 0)) AS run_ms,
    sum(coalesce(run_cpu_ms, 0) + coalesce(gc_ms, 0)) AS on_cpu_ms,
    sum(coalesce(fetch_wait_ms, 0)) AS fetch_wait_ms,
    sum(read_bytes)::BIGINT AS read_bytes,
    sum(coalesce(shuffle_remote_bytes, 0))::BIGINT AS remote_bytes,
    sum(coalesce(input_bytes, 0))::BIGINT AS input_bytes,
    sum(coalesce(shuffle_write_bytes, 0) + coalesce(spill_disk_bytes, 0) + coalesce(output_bytes, 0))::BIGINT
        AS written_bytes,
    arg_max(task_id, duration_ms) AS longest_task,
    arg_max(executor_id, duration_ms) AS longest_executor,
    arg_max(host, duration_ms) AS longest_host,
    arg_max(read_bytes, duration_ms) AS longest_read_bytes,
    arg_max(coalesce(gc_ms, 0), duration_ms) AS longest_gc_ms,
    arg_max(nth_of_executor, duration_ms) AS longest_nth
FROM mine
WHERE finish_ms > ? AND launch_ms < ?
GROUP BY stage_id, stage_attempt
ORDER BY stage_id, stage_attempt
