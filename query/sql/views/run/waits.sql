-- Waits of tasks: intervals that a recording measured, by kind of wait and function.
--
-- one row per stage, kind of wait and function:
--   stage_id       the stage of the waiting tasks
--   kind           park, sleep, wait, enter, socket read, file read …: the recording's term
--   function       the attributed function; if there is none, the one nearest the leaf
--   intervals      intervals measured
--   time_ms        task time in them
--   longest_ms     the longest
--   moved_bytes    bytes moved in them, for intervals of input or output
--   <resource>_ms  of the time, on <resource> by the attributed function's shares; 0 if there is none; if the framework measured it, the table tasks is more exact
SELECT
    tasks.stage_id, samples.kind,
    regexp_replace(stacks.frames[coalesce(stacks.attributed_depth, 0) + 1], ':\d+$', '') AS function,
    count(*) AS intervals, {weight_ms} AS time_ms, max(weight_ms) AS longest_ms, sum(bytes)::BIGINT AS moved_bytes,
    {waited}
FROM samples
JOIN tasks USING (task_id)
LEFT JOIN stacks USING (stack_id)
WHERE samples.kind NOT IN ('execution', 'native', 'wall', 'cpu', 'running', 'untimed') AND weight_ms > 0
GROUP BY ALL
