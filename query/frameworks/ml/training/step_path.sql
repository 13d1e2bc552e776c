-- Time of the operations of some stages by kind, place and operator.
-- In:  $stages, ids of stages; {names}, to fill with str.format(): the columns of time on each resource and of `other`.
-- Out: one row per stage and name, which has the kind, whether an accelerator ran it, and the operator, with tabs between.
WITH named AS (
    SELECT
        stage_id, concat_ws(chr(9), coalesce(kind, ''), coalesce(accelerator, FALSE)::VARCHAR, operator) AS name,
        tasks.* EXCLUDE (stage_id)
    FROM tasks
    JOIN training_operations USING (task_id)
    LEFT JOIN training_devices USING (worker_id)
    WHERE stage_id IN (SELECT unnest($stages::VARCHAR[]))
)
SELECT stage_id, name, {names}
FROM named
ORDER BY stage_id, name, task_id
