-- Which code had run before: a process that meets code for the first time loads and compiles it.
--
-- one row per group that has units:
--   group_id
--   is_repeated   whether a unit of another group of the same words had ended before its first one was launched
WITH ran AS (
    SELECT group_id, coalesce(what, '') || name AS words, min(launch_ms) AS began_ms, min(finish_ms) AS ended_ms
    FROM units
    JOIN groups USING (group_id)
    GROUP BY ALL
)
SELECT group_id, min(ended_ms) OVER (PARTITION BY words) <= began_ms AS is_repeated FROM ran
