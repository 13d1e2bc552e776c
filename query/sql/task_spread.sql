-- Quantiles of durations and bytes of the tasks of each stage.
--
-- parameters  quantiles, twice; start and end of the scope in ms since application start
--
-- one row per stage with a task in the scope:
--   durations   durations of its tasks at those quantiles, ms
--   read_bytes  bytes that its tasks read from storage and other tasks, at those quantiles
SELECT
    stage_id,
    quantile_cont(finish_ms - launch_ms, ?::DOUBLE[]) AS durations,
    quantile_cont((coalesce(input_bytes, 0) + coalesce(remote_read_bytes, 0) + coalesce(local_read_bytes, 0))::DOUBLE, ?::DOUBLE[])
        AS read_bytes
FROM tasks
WHERE finish_ms > ? AND launch_ms < ?
GROUP BY stage_id
ORDER BY stage_id
