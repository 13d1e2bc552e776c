-- Sampled time by worker, stage and stack, for other tools.
--
-- parameters  {sums}, the time on each resource and `other` (query.execution.evidence.sampled_sums)
--
-- one row per worker, stage and stack:
--   worker_id, stage_id   of the task that the thread worked for; stage_id is NULL for the driver
--   stack_id              as in stacks
--   count                 rows of `samples`
--   (resources), other    sampled time, ms
--
-- As on the page of a run, other threads are left out, of the driver stacks without an attributed frame, and samples
-- before the start or after the end of the run.
CREATE OR REPLACE TEMP TABLE exported_stacks AS
WITH seen AS (
    SELECT
        samples.worker_id, samples.stack_id, samples.kind, tasks.stage_id,
        count(*) AS rows_seen, sum(weight_ms) AS weight_ms,
        task_id IS NULL AND samples.worker_id IN (SELECT worker_id FROM workers WHERE kind = 'driver') AS is_driver
    FROM samples LEFT JOIN (SELECT task_id, stage_id FROM tasks) AS tasks USING (task_id)
    WHERE weight_ms > 0 AND time_ms BETWEEN 0 AND (SELECT duration_ms FROM runs)
    GROUP BY ALL
),
marked AS (
    SELECT *, attributed_depth IS NOT NULL AND NOT contains(coalesce(skipped, ''), 'wait') AS is_decided
    FROM stacks
)
SELECT worker_id, stage_id, stack_id, sum(rows_seen)::BIGINT AS count, {sums}
FROM seen JOIN marked USING (stack_id)
WHERE stage_id IS NOT NULL OR (is_driver AND is_decided)
GROUP BY worker_id, stage_id, stack_id
