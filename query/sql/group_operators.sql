-- Time of the tasks of some stages by operator and resource.
--
-- parameters  $groups, ids of groups
--             {names}, the columns of time on each resource and of `other`
--
-- one row per stage and operator
SELECT group_id, name, {names}
FROM operator_times
WHERE group_id IN (SELECT unnest($groups::VARCHAR[]))
ORDER BY group_id, node_id, name
