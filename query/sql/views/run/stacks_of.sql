-- Sampled stacks of tasks that contain a function, by the end of its name: stacks_of('Inflater.inflate').
--
-- one row per stack, most time first: stack_id, time_ms (task time), stages, frames (leaf first)
MACRO stacks_of(name) AS TABLE
SELECT stack_id, sum(weight_ms) AS time_ms, list(DISTINCT stage_id ORDER BY stage_id) AS stages, any_value(frames) AS frames
FROM samples JOIN stacks USING (stack_id) JOIN tasks USING (task_id)
WHERE len(list_filter(frames, lambda frame : ends_with(regexp_replace(frame, ':\d+$', ''), name))) > 0
GROUP BY stack_id
ORDER BY time_ms DESC, stack_id
