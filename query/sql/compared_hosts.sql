-- The comparable hosts of each stage: of at least two, and of at most {most_hosts}.
--
-- parameters  start and end of the scope in ms since application start
--             {most_hosts}
--
-- one row per stage and host with at least three succeeded tasks:
--   group_id, host
--   units     number of these tasks
WITH hosts AS (
    SELECT group_id, host, count(*) AS units
    FROM units
    WHERE finish_ms > ? AND launch_ms < ? AND status = 'succeeded' AND host IS NOT NULL
    GROUP BY ALL
    HAVING count(*) >= 3
)
SELECT group_id, host, units
FROM hosts
WHERE group_id IN (SELECT group_id FROM hosts GROUP BY ALL HAVING count(*) BETWEEN 2 AND {most_hosts})
ORDER BY ALL
