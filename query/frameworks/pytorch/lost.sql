-- What stretches lost to something that counts as an operator of its own.
-- In:  $operator, its name.
-- Out: one row per stretch that has it, the longest first: group_id, ms, the name of one instance.
SELECT group_id, sum(finish_ms - launch_ms) AS ms, any_value(name) AS name
FROM units JOIN training_operations USING (unit_id)
WHERE operator = $operator
GROUP BY group_id
ORDER BY ms DESC, group_id
