-- Time of tasks by segment and operator, for the table operator_times.
-- In:  {sums}, to fill with str.format(): the sum of tasks' time on each resource, named as the table's columns.
-- Out: one row per segment and operator, in that order; operators are numbered in order of first appearance in the run.
WITH kinds AS (
    SELECT operator, row_number() OVER (ORDER BY min(unit_id)) AS node_id
    FROM training_operations GROUP BY operator
)
SELECT
    units.group_id, any_value(groups.scope_id) AS scope_id, node_id::INTEGER AS node_id, operator AS name,
    'plan metrics' AS basis, {sums}
FROM units
JOIN training_operations USING (unit_id)
JOIN kinds USING (operator)
LEFT JOIN groups ON groups.group_id = units.group_id
GROUP BY units.group_id, node_id, operator
ORDER BY units.group_id, node_id
