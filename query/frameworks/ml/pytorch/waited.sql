-- Waits of threads in Python functions, within the time of a span that is on no resource and not input.
-- In:  $operator, its name; $since, $until, in ms since the start of the run.
-- Out: one row: ms of such waits, ms of all, the name of the longest wait.
SELECT
    coalesce(sum(open_ms) FILTER (waits), 0) AS waited_ms, coalesce(sum(open_ms), 0) AS open_ms,
    arg_max(name, open_ms) FILTER (waits) AS name
FROM (
    SELECT
        name, other_ms - coalesce(pipeline_wait_ms, 0) AS open_ms,
        operator = $operator OR starts_with(operator, concat($operator, ': ')) AS waits
    FROM tasks JOIN training_operations USING (task_id)
    WHERE finish_ms > $since AND launch_ms < $until
)
