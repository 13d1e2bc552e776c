-- Stages whose tasks sent the driver many rows.
-- In:  $least, bytes of a stage from which they count.
-- Out: one row per stage, the one that sent most first; `fetch_ms` is what fetching and packing took of its tasks' time.
SELECT
    group_id,
    sum(result_bytes)::DOUBLE AS result_bytes,
    sum(coalesce(getting_result_ms, 0) + coalesce(result_serialize_ms, 0)) AS fetch_ms,
    max(finish_ms) AS last_ms
FROM spark_tasks JOIN units USING (unit_id)
WHERE status = 'succeeded'
GROUP BY group_id
HAVING sum(result_bytes) >= $least
ORDER BY result_bytes DESC, group_id
