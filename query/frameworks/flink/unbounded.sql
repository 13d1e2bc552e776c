-- Shares of time in which the subtasks of a stream's vertices were busy, idle and back-pressured, from Flink's sums.
-- Out: one row per vertex in the order of the plan: its name; whether it is a source, judged by its bytes if the plan
--      has no edges; the share of its time that its busiest subtask had work, NULL if unknown; and the shares that all
--      of its subtasks were idle and back-pressured.
-- Without a sum of busy time, it is the rest besides idle and back-pressured time, if one of these is known.
WITH shares AS (
    SELECT
        stage_id,
        finish_ms - launch_ms - coalesce(starting_ms, 0) AS ran_ms,
        nullif(idle_ms, 'nan') AS idle_ms,
        nullif(backpressured_ms, 'nan') AS backpressured_ms,
        nullif(busy_ms, 'nan') AS busy_ms,
        read_bytes
    FROM tasks JOIN flink_subtasks USING (task_id)
    WHERE state <> 'FINISHED'
),
measured AS (
    SELECT
        *,
        coalesce(
            busy_ms, CASE WHEN idle_ms + backpressured_ms > 0 THEN greatest(ran_ms - idle_ms - backpressured_ms, 0) END
        ) AS worked_ms
    FROM shares
    WHERE ran_ms > 0
)
SELECT
    any_value(name),
    stage_id NOT IN (SELECT target FROM dependencies) AND coalesce(sum(read_bytes), 0) <= 0,
    max(worked_ms / ran_ms),
    sum(idle_ms) / sum(ran_ms),
    sum(backpressured_ms) / sum(ran_ms)
FROM measured JOIN stages USING (stage_id)
GROUP BY stage_id
ORDER BY min(priority)
