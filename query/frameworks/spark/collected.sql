-- Stages with tasks that sent many rows to the driver.
-- In:  $least, the minimum bytes of a stage.
-- Out: one row per stage, the one that sent most first; `fetch_ms` is its tasks' time for serializing and fetching results.
SELECT
    stage_id,
    sum(result_bytes)::DOUBLE AS result_bytes,
    sum(coalesce(getting_result_ms, 0) + coalesce(result_serialize_ms, 0)) AS fetch_ms,
    max(finish_ms) AS last_ms
FROM spark_tasks JOIN tasks USING (task_id)
WHERE status = 'succeeded'
GROUP BY stage_id
HAVING sum(result_bytes) >= $least
ORDER BY result_bytes DESC, stage_id
