-- Process loads in a scope, from recordings.
--
-- parameters  $begin, $end of the scope, ms
--
-- one row per measurement with its interval in the scope: worker_id, since_ms (the measurement before; the first
-- of a process has none and is left out), time_ms, cpu_cores, quota_cores, throttled, received_bytes_per_s (the last
-- three NULL if not measured), and whether any task ran on that worker meanwhile
WITH looks AS (
    SELECT
        worker_id,
        lag(time_ms) OVER (PARTITION BY worker_id ORDER BY time_ms) AS since_ms,
        time_ms,
        cpu_cores,
        quota_cores,
        throttled,
        received_bytes_per_s
    FROM loads
    QUALIFY since_ms < time_ms AND since_ms >= $begin AND time_ms <= $end
)
SELECT looks.*, EXISTS (
    FROM tasks
    WHERE tasks.worker_id = looks.worker_id AND launch_ms < looks.time_ms AND finish_ms > looks.since_ms
) AS has_tasks
FROM looks
ORDER BY worker_id, time_ms
