-- The share of subtasks' own time in which their threads waited for no resource: asleep, or, in the middle of a record,
-- for responses to asynchronous requests whose concurrency limit is reached.
-- In:  $ready, kinds of samples with a thread on the CPU, or one that waited for nothing else.
-- Out: one row per vertex with subtasks that waited so in a recording.
WITH rested AS (
    SELECT task_id, sum(weight_ms) AS rested_ms
    FROM samples JOIN stacks USING (stack_id)
    WHERE task_id IS NOT NULL AND NOT list_contains($ready, kind) AND list_contains(string_split(skipped, ','), 'rest')
    GROUP BY task_id
)
SELECT
    stage_id,
    sum(rested_ms) / sum(finish_ms - launch_ms - coalesce(pipeline_wait_ms, 0) - coalesce(overhead_ms, 0)) AS share
FROM tasks LEFT JOIN rested USING (task_id)
WHERE sample_ms > 0
GROUP BY stage_id
HAVING share > 0
