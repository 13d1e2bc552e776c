-- The comparable hosts of each stage: of at least two, and of at most {most_hosts}.
--
-- parameters  $begin and $end of the scope in ms since application start
--             {most_hosts}
--
-- one row per stage and host with at least three succeeded tasks:
--   stage_id, host
--   tasks     number of these tasks
WITH hosts AS (
    SELECT stage_id, host, count(*) AS tasks
    FROM tasks
    WHERE finish_ms > $begin AND launch_ms < $end AND status = 'succeeded' AND host IS NOT NULL
    GROUP BY ALL
    HAVING count(*) >= 3
)
SELECT stage_id, host, tasks
FROM hosts
WHERE stage_id IN (SELECT stage_id FROM hosts GROUP BY ALL HAVING count(*) BETWEEN 2 AND {most_hosts})
ORDER BY ALL
