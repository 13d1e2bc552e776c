-- Time of the tasks of some stages by operator and resource.
--
-- parameters  $stages, ids of stages
--             {names}, the columns of time on each resource and of `other`
--
-- one row per stage and operator
SELECT stage_id, name, {names}
FROM operator_times
WHERE stage_id IN (SELECT unnest($stages::VARCHAR[]))
ORDER BY stage_id, node_id, name
