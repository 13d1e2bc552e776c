-- Time of segments in an operator, or in operators whose names begin with its name and a colon.
-- In:  $operator, its name.
-- Out: one row per segment with it, the longest first: stage_id, ms, of these on the disk, the name of the longest
--      instance.
SELECT stage_id, sum(finish_ms - launch_ms) AS ms, sum(disk_ms) AS disk_ms, arg_max(name, finish_ms - launch_ms) AS name
FROM tasks JOIN training_operations USING (task_id)
WHERE operator = $operator OR starts_with(operator, concat($operator, ': '))
GROUP BY stage_id
ORDER BY ms DESC, stage_id
