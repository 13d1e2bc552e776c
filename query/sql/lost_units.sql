-- Units of a scope that did not succeed, and those that did in vain, for what they had made was lost.
--
-- parameters  $1, $2  start and end of the scope in ms since application start
--             $3      ids of its groups
--
-- one row per group, worker and way in which units of that group ended on it:
--   status, reason   as in units
--   again            whether their parts were tried again
--   with_worker      whether they ended as their worker did, within a second
--   units, unit_ms   how many they are, and how long they ran in sum
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
