-- The stages of a scope for which the log lacks the ends of some tasks.
--
-- parameters  start and end of the scope in ms since application start
--
-- one row per stage that ran in the scope and lacks ends:
--   lost         tasks that succeeded by the stage's own count, but have no end in the log; for a stage without an end in
--                the log, tasks that ran when the log breaks off and left no samples
--   total        tasks of the stage, or those that began
--   submit_ms
--   end_ms       its end, or the last time of its tasks if the log lacks its end
--   last_ms      the last known end of its tasks, after which their work is unknown; NULL if none is known
--   share        share of the stage's work that is lost: by count, or the task time that ran when the log breaks off
WITH known AS (
    SELECT
        stage_id,
        count(*) AS begun,
        count(DISTINCT coalesce(partition_index, -task_id)) FILTER (status = 'succeeded') AS ended,
        count(*) FILTER (status = 'unfinished' AND sample_ms IS NULL) AS open,
        sum(finish_ms - launch_ms) AS task_ms,
        coalesce(sum(finish_ms - launch_ms) FILTER (status = 'unfinished' AND sample_ms IS NULL), 0) AS open_ms,
        max(finish_ms) FILTER (status <> 'unfinished') AS last_ms,
        max(finish_ms) AS stopped_ms
    FROM tasks
    GROUP BY stage_id
),
counted AS (
    SELECT
        stage_id,
        submit_ms,
        status = 'succeeded' AS finished,
        CASE WHEN finished THEN coalesce(stages.end_ms, $2) ELSE stopped_ms END AS end_ms,
        CASE WHEN finished THEN last_ms ELSE stopped_ms END AS last_ms,
        CASE WHEN finished THEN task_count - coalesce(ended, 0) ELSE coalesce(open, 0) END AS lost,
        CASE WHEN finished THEN task_count ELSE coalesce(begun, 0) END AS total,
        CASE WHEN finished THEN lost / nullif(task_count, 0) ELSE open_ms / nullif(task_ms, 0) END AS share
    FROM stages LEFT JOIN known USING (stage_id)
    WHERE submit_ms IS NOT NULL AND submit_ms < $2 AND coalesce(stages.end_ms, $2) > $1
)
SELECT stage_id, lost, total, submit_ms, end_ms, last_ms, share
FROM counted
WHERE lost > 0 AND share > 0
ORDER BY lost DESC, stage_id
