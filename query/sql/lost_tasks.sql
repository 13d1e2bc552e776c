-- Tasks of a scope that failed or were killed, and succeeded ones that ran again because their output was lost.
--
-- parameters  $1, $2  start and end of the scope in ms since application start
--             $3      ids of its stages
--
-- one row per stage, worker and kind of end of the tasks:
--   status, reason   as in tasks
--   recomputed       whether their parts were retried
--   with_worker      whether they ended within a second of the loss of their worker
--   tasks, task_ms   their number, and the sum of their durations
SELECT
    stage_id,
    worker_id,
    status,
    tasks.reason AS reason,
    coalesce(recomputed, false) AS recomputed,
    coalesce(abs(tasks.finish_ms - workers.removed_ms) <= 1000, false) AS with_worker,
    count(*) AS tasks,
    sum(tasks.finish_ms - tasks.launch_ms) AS task_ms
FROM tasks LEFT JOIN workers USING (worker_id)
WHERE tasks.finish_ms >= $1 AND tasks.launch_ms <= $2 AND list_contains($3, stage_id)
    AND (status IN ('failed', 'killed') OR recomputed)
GROUP BY ALL
ORDER BY min(tasks.finish_ms), stage_id, worker_id, status, tasks.reason, recomputed, with_worker
