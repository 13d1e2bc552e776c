-- Reasons why frames of task stacks were skipped above the attributed one, or why there is none.
--
-- parameters  start and end of the scope in ms since application start
--
-- one row per reason, most frequent first:
--   reason   'not indexed', a role (scaffolding, wait, collection, generated, task, idle), or 'nothing decides'
--   samples  samples on task threads with such a frame above the attributed one
WITH mine AS (
    SELECT skipped, attributed_depth
    FROM samples JOIN stacks USING (stack_id)
    WHERE task_id IS NOT NULL AND time_ms BETWEEN ? AND ? AND kind <> 'waking'
),
reasons AS (
    SELECT unnest(string_split(skipped, ',')) AS reason FROM mine WHERE skipped IS NOT NULL
    UNION ALL
    SELECT 'nothing decides' FROM mine WHERE attributed_depth IS NULL
)
SELECT reason, count(*) AS samples
FROM reasons
GROUP BY reason
ORDER BY samples DESC, reason
