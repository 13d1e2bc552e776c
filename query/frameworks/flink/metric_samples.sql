-- Samples of a job's metrics with records, and which of them begin a new segment.
-- In:  $start, $end, in ms since the start of the run.
-- Out: one row per sample in order of time.  A segment begins after a restart, at which a subtask's sums fall, and when
--      the job's subtasks change.
WITH subtasks AS (
    SELECT time_ms, stage_id, subtask, records_in, records_out,
        records_in < lag(records_in IGNORE NULLS) OVER by_subtask
            OR records_out < lag(records_out IGNORE NULLS) OVER by_subtask AS fell
    FROM flink_series
    WHERE time_ms BETWEEN $start AND $end
    WINDOW by_subtask AS (PARTITION BY stage_id, subtask ORDER BY time_ms)
),
sampled AS (
    SELECT time_ms, coalesce(bool_or(fell), FALSE) AS restarted,
        list((stage_id, subtask) ORDER BY stage_id, subtask) AS subtasks
    FROM subtasks
    GROUP BY time_ms
    HAVING sum(records_in) + sum(records_out) > 0
)
SELECT time_ms, restarted OR coalesce(subtasks <> lag(subtasks) OVER (ORDER BY time_ms), FALSE) AS begins
FROM sampled
ORDER BY time_ms
