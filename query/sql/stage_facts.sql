-- Statistics of the tasks of each stage.
--
-- parameters  $1 and $2, start and end of the scope in ms since application start
--             {moved}, for each resource with a device that moves bytes, their sum: moved_<resource>
--
-- one row per stage with a task in the scope:
--   longest_…              its longest task that is not a losing copy, of several the one that read most; longest_first
--                          is whether no task had ended on its worker when it began, longest_cpu_ms is NULL if the log
--                          has no CPU time
--   firsts, firsts_ms      number of other such first tasks, and the median of their durations
--   alike, alike_ms        other tasks that read at least two thirds of what the longest read: number and median
--   loaded, loaded_ms      tasks with input: those that read a row, or if rows are unknown, the fewest that together read
--                          95 % of the stage's bytes: number and median
--
-- Window functions over all tasks would take longer than all else here, so most facts about several tasks are joined.
WITH first_ends AS (SELECT worker_id, min(finish_ms) AS first_end_ms FROM tasks GROUP BY worker_id),
raced AS (
    SELECT DISTINCT stage_id, coalesce(partition_index, -1) AS part
    FROM tasks
    WHERE status = 'succeeded' AND (stage_id, coalesce(partition_index, -1)) IN (
        SELECT (stage_id, coalesce(partition_index, -1)) FROM tasks WHERE status = 'killed'
    )
),
in_scope AS (
    SELECT
        tasks.*,
        finish_ms - launch_ms AS duration_ms,
        coalesce(input_bytes, 0) + coalesce(remote_read_bytes, 0) + coalesce(local_read_bytes, 0) AS read_bytes,
        launch_ms < first_end_ms AS is_first,
        status = 'killed' AND raced.part IS NOT NULL AS has_lost
    FROM tasks
    JOIN first_ends ON tasks.worker_id IS NOT DISTINCT FROM first_ends.worker_id
    LEFT JOIN raced ON tasks.stage_id = raced.stage_id AND coalesce(tasks.partition_index, -1) = raced.part
    WHERE finish_ms > $1 AND launch_ms < $2
),
longest AS (
    SELECT
        stage_id,
        sum(read_bytes) AS all_bytes,
        count(input_rows) = count(*) AND max(input_rows) > 0 AS knows_rows,
        arg_max(
            {{
                task_id: task_id, duration_ms: duration_ms, worker: worker_id, host: host, read_bytes: read_bytes,
                gc_ms: least(coalesce(gc_ms, 0), duration_ms), first: is_first, cpu_ms: own_cpu_ms
            }},
            (NOT has_lost, duration_ms, read_bytes, -task_id)
        ) AS it
    FROM in_scope
    GROUP BY stage_id
),
reading AS (
    SELECT in_scope.*, it, input_rows > 0 AS has_input FROM in_scope JOIN longest USING (stage_id) WHERE knows_rows
    UNION ALL
    SELECT
        in_scope.*,
        it,
        coalesce(
            sum(read_bytes) OVER (
                PARTITION BY stage_id ORDER BY read_bytes DESC, task_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0
        ) < 0.95 * all_bytes AS has_input
    FROM in_scope JOIN longest USING (stage_id)
    WHERE NOT knows_rows
)
SELECT
    stage_id,
    count(*) AS tasks,
    median(duration_ms) AS median_ms,
    any_value(it.duration_ms) AS longest_ms,
    median(read_bytes) AS median_bytes,
    max(read_bytes) AS most_bytes,
    sum(duration_ms) AS task_ms,
    sum(coalesce(starting_ms, 0)) AS starting_ms,
    coalesce(median(starting_ms / duration_ms) FILTER (duration_ms > 0), 0) AS median_starting,
    sum(coalesce(scheduler_delay_ms, 0)) AS scheduler_delay_ms,
    sum(least(coalesce(gc_ms, 0), duration_ms)) AS gc_ms,
    median(least(coalesce(gc_ms, 0), duration_ms)) AS median_gc_ms,
    sum(coalesce(spill_disk_bytes, 0))::BIGINT AS spill_bytes,
    sum(coalesce(spill_memory_bytes, 0))::BIGINT AS spill_memory_bytes,
    sum(coalesce(own_ms, 0)) AS own_ms,
    sum(coalesce(own_cpu_ms, 0)) AS own_cpu_ms,
    median(own_cpu_ms) AS median_cpu_ms,
    sum(coalesce(fetch_wait_ms, 0)) AS fetch_wait_ms,
    sum(read_bytes)::BIGINT AS read_bytes,
    {moved},
    any_value(it.task_id) AS longest_task,
    any_value(it.worker) AS longest_worker,
    any_value(it.host) AS longest_host,
    any_value(it.read_bytes) AS longest_read_bytes,
    any_value(it.gc_ms) AS longest_gc_ms,
    any_value(it.first) AS longest_first,
    any_value(it.cpu_ms) AS longest_cpu_ms,
    count(*) FILTER (is_first AND task_id <> it.task_id) AS firsts,
    median(duration_ms) FILTER (is_first AND task_id <> it.task_id) AS firsts_ms,
    count(*) FILTER (read_bytes * 3 >= it.read_bytes * 2 AND task_id <> it.task_id) AS alike,
    median(duration_ms) FILTER (read_bytes * 3 >= it.read_bytes * 2 AND task_id <> it.task_id) AS alike_ms,
    count(*) FILTER (has_input) AS loaded,
    median(duration_ms) FILTER (has_input) AS loaded_ms
FROM reading
GROUP BY stage_id
ORDER BY stage_id
