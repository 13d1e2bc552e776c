-- What the units of some groups were: their time by operator and resource.
--
-- parameters  $groups, ids of groups
--             {names}, the columns of time on each resource and on none
--
-- one row per group and operator
SELECT group_id, name, {names}
FROM operator_times
WHERE group_id IN (SELECT unnest($groups::VARCHAR[]))
ORDER BY group_id, node_id, name
