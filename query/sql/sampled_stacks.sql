-- Sampled time by stack and owner: a stage, or the driver.
--
-- parameters  start and end of the scope in ms since application start; the stages, a list
--             {sums}, the time on each resource and `other` (query.execution.evidence.sampled_sums)
--
-- one row per stack and stage:
--   stack_id              as in stacks
--   owner                 position of the stage in the list, from 0; -1 for the driver
--   waits                 whether a wait was skipped and there is no attributed frame
--   (resources), other    sampled time, ms
--   square_ms2            sum of the squared weights of its samples and measured waits: the variance of its time if
--                         each is an independent event
--
-- For the driver only samples with an attributed frame count, because waiting threads do not show its work.
-- Samples are summed before the join with stacks, because there are many times as many.
WITH seen AS (
    SELECT
        samples.stack_id, samples.kind, tasks.stage_id, sum(weight_ms) AS weight_ms,
        sum(weight_ms * weight_ms) AS square_ms2,
        task_id IS NULL AND worker_id IN (SELECT worker_id FROM workers WHERE kind = 'driver') AS is_driver
    FROM samples LEFT JOIN (SELECT task_id, stage_id FROM tasks) AS tasks USING (task_id)
    WHERE weight_ms > 0 AND time_ms BETWEEN $1 AND $2
    GROUP BY ALL
),
marked AS (
    SELECT
        *,
        attributed_depth IS NULL AND coalesce(skipped SIMILAR TO '(.*,)?(wait|peer|idle|rest)(,.*)?', false) AS waits,
        attributed_depth IS NOT NULL AND NOT contains(coalesce(skipped, ''), 'wait') AS is_decided
    FROM stacks
),
numbered AS (SELECT unnest($3::VARCHAR[]) AS stage_id, unnest(range(len($3::VARCHAR[]))) AS number)
SELECT stack_id, coalesce(number, -1) AS owner, any_value(waits) AS waits, {sums}, sum(square_ms2) AS square_ms2
FROM seen JOIN marked USING (stack_id) LEFT JOIN numbered USING (stage_id)
WHERE stage_id IS NOT NULL OR (is_driver AND is_decided)
GROUP BY stack_id, owner
ORDER BY stack_id, owner
