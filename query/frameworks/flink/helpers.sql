-- Running time of TaskManager threads that belong to no subtask, from their samples.
-- In:  $start, $end, in ms since the start of the run; $kinds, the states of a sampled thread that runs.
-- Out: one row per thread: its name, ms.
SELECT thread, sum(weight_ms) AS ms
FROM samples
WHERE task_id IS NULL AND thread IS NOT NULL AND list_contains($kinds, kind) AND time_ms BETWEEN $start AND $end
GROUP BY thread
