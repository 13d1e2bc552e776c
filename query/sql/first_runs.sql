-- Whether the code of a stage ran before (JVM warm-up): on first use a process loads and compiles code.
--
-- one row per stage that has tasks:
--   stage_id
--   is_repeated   whether a task of a stage with the same name and `what` had ended before its first launch
WITH ran AS (
    SELECT stage_id, coalesce(io_kinds, '') || name AS words, min(launch_ms) AS began_ms, min(finish_ms) AS ended_ms
    FROM tasks
    JOIN stages USING (stage_id)
    GROUP BY ALL
)
SELECT stage_id, min(ended_ms) OVER (PARTITION BY words) <= began_ms AS is_repeated FROM ran
