-- Why frames of task stacks were passed over before one decided, or none did.
--
-- parameters  start and end of the scope in ms since application start
--
-- one row per reason, most frequent first:
--   reason   'not indexed', a role (scaffolding, wait, collection, generated, task, idle), or 'nothing decides'
--   samples  samples on task threads whose stack has such a frame above the deciding one
WITH task_samples AS (
    SELECT skipped, deciding_depth
    FROM samples JOIN stacks USING (stack_id)
    WHERE task_id IS NOT NULL AND time_ms BETWEEN ? AND ? AND kind <> 'waking'
),
reasons AS (
    SELECT unnest(string_split(skipped, ',')) AS reason FROM task_samples WHERE skipped IS NOT NULL
    UNION ALL
    SELECT 'nothing decides' FROM task_samples WHERE deciding_depth IS NULL
)
SELECT reason, count(*) AS samples
FROM reasons
GROUP BY reason
ORDER BY samples DESC, reason
