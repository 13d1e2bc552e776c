-- Operations within a span by kind, place and operator.
-- In:  $start, $end, in ms since the start of the run.
-- Out: one row per kind, whether an accelerator ran them, and operator: their ms and number; their floating-point
--      operations and the bytes that they moved through the device's memory, NULL if not known of those with most of the
--      time; the bytes that crossed a link; the unit of most of their arithmetic.
SELECT
    kind, coalesce(accelerator, FALSE) AS accelerator, operator,
    sum(finish_ms - launch_ms) AS time_ms, count(*)::DOUBLE AS count,
    CASE WHEN coalesce(sum(finish_ms - launch_ms) FILTER (flops IS NOT NULL), 0) >= 0.5 * sum(finish_ms - launch_ms)
        THEN sum(flops) END AS flops,
    CASE WHEN coalesce(sum(finish_ms - launch_ms) FILTER (moved_bytes IS NOT NULL), 0)
            >= 0.5 * sum(finish_ms - launch_ms)
        THEN sum(moved_bytes) END AS moved_bytes,
    coalesce(sum(bytes), 0)::DOUBLE AS bytes,
    arg_max(unit, finish_ms - launch_ms) FILTER (unit IS NOT NULL) AS unit
FROM tasks
JOIN training_operations USING (task_id)
LEFT JOIN training_devices USING (worker_id)
WHERE finish_ms > $start AND launch_ms < $end
GROUP BY ALL
ORDER BY ALL
