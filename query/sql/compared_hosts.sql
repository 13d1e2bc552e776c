-- The hosts of each group that can be held against each other: of at least two, and of at most {most_hosts}.
--
-- parameters  start and end of the scope in ms since application start
--             {most_hosts}
--
-- one row per group and host on which it ran at least three units to their end:
--   group_id, host
--   units     how many it ran there
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
