-- How long other operations hid the collectives of a scope.
-- In:  $start, $end, the scope in ms since the start of the run.
-- Out: one row: hidden_ms, how long something else ran on the process or device of a collective while its bytes moved,
--      summed over the collectives that began in the scope.  Time hidden by two streams at once counts once.
WITH busy AS (
    SELECT
        worker_id, launch_ms, finish_ms,
        max(finish_ms) OVER (
            PARTITION BY worker_id ORDER BY launch_ms, finish_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS until_ms
    FROM tasks JOIN training_operations USING (task_id)
    WHERE kind IN ('op', 'kernel', 'python')
)
SELECT
    coalesce(sum(greatest(least(finish_ms, ended_ms) - greatest(launch_ms, began_ms, until_ms), 0)), 0) AS hidden_ms
FROM training_collectives JOIN busy USING (worker_id)
WHERE launch_ms < ended_ms AND finish_ms > began_ms AND began_ms BETWEEN $start AND $end
