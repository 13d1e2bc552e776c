-- Tasks of a scope that failed or were killed, and succeeded ones that ran again because their output was lost.
--
-- parameters  $1, $2  start and end of the scope in ms since application start
--             $3      ids of its stages
--
-- one row per stage, worker and kind of end of the tasks:
--   status, reason   as in units
--   again            whether their parts were retried
--   with_worker      whether they ended within a second of the loss of their worker
--   units, unit_ms   their number, and the sum of their durations
SELECT
    group_id,
    worker_id,
    status,
    units.reason AS reason,
    coalesce(again, false) AS again,
    coalesce(abs(units.finish_ms - workers.removed_ms) <= 1000, false) AS with_worker,
    count(*) AS units,
    sum(units.finish_ms - units.launch_ms) AS unit_ms
FROM units LEFT JOIN workers USING (worker_id)
WHERE units.finish_ms >= $1 AND units.launch_ms <= $2 AND list_contains($3, group_id)
    AND (status IN ('failed', 'killed') OR again)
GROUP BY ALL
ORDER BY min(units.finish_ms), group_id, worker_id, status, units.reason, again, with_worker
