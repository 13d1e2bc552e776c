-- Time of tasks by segment and operator, for the table operator_times.
-- In:  {sums}, to fill with str.format(): the sum of tasks' time on each resource, named as the table's columns.
-- Out: one row per segment and operator, in that order; operators are numbered in order of first appearance in the run.
WITH kinds AS (
    SELECT operator, row_number() OVER (ORDER BY min(task_id)) AS node_id
    FROM training_operations GROUP BY operator
)
SELECT
    tasks.stage_id, any_value(stages.scope_id) AS scope_id, node_id::INTEGER AS node_id, operator AS name,
    'plan metrics' AS basis, {sums}
FROM tasks
JOIN training_operations USING (task_id)
JOIN kinds USING (operator)
LEFT JOIN stages ON stages.stage_id = tasks.stage_id
GROUP BY tasks.stage_id, node_id, operator
ORDER BY tasks.stage_id, node_id
