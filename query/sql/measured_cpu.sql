-- Sets the CPU time of tasks without one in the log, from their recording's measurements of their threads.
--
-- parameters  $least, the minimum share of a task's time that measurements cover for an extrapolation
--
-- one row per task changes: total_cpu_ms, in ms, if it is NULL and its threads were measured for long enough.
-- Measurements are of intervals, which seldom cover all of a task: the rest counts with their mean.
UPDATE tasks SET total_cpu_ms = least(finish_ms - launch_ms, (finish_ms - launch_ms) * found.cpu_ms / found.covered_ms)
FROM (
    SELECT
        task_id,
        sum(thread_loads.cpu_ms) AS cpu_ms,
        max(end_ms) - min(start_ms) AS covered_ms  -- a task may have several threads, each with its own measurements
    FROM thread_loads
    WHERE task_id IS NOT NULL
    GROUP BY ALL
) AS found
WHERE tasks.task_id = found.task_id AND total_cpu_ms IS NULL AND covered_ms >= $least * (finish_ms - launch_ms)
