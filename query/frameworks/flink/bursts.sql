-- Vertices without an input that emit records in bursts: for most of their time all threads of their subtasks waited
-- for longer than the buffer timeout at once.
-- In:  $due_ms, the buffer timeout; $waits, kinds of intervals in which a thread waited.
-- Out: one row per such vertex; none if no recording covers half of the time of its threads.
WITH threads AS (
    SELECT
        stage_id, task_id, thread,
        sum(weight_ms) AS seen_ms,
        coalesce(sum(weight_ms) FILTER (weight_ms > $due_ms AND list_contains($waits, kind)), 0) AS long_ms,
        any_value(finish_ms - launch_ms) AS lasting_ms
    FROM samples JOIN tasks USING (task_id)
    WHERE stage_id NOT IN (SELECT target FROM dependencies)
    GROUP BY ALL
),
subtasks AS (
    SELECT stage_id, min(long_ms / seen_ms) AS share
    FROM threads
    WHERE seen_ms >= 0.5 * lasting_ms
    GROUP BY stage_id, task_id
)
SELECT stage_id FROM subtasks GROUP BY stage_id HAVING avg(share) > 0.5
