-- Stages that waited for slots although others were free, the longest wait first.
-- Out: one row per stage; its wait from submit_ms to until_ms, when its first task started, or it ended without one.
--      executor and added_ms are those of the last executor that was added during the wait.
WITH waits AS (
    SELECT
        stage_id AS stage, coalesce(name, stage_id) AS name, waited_for AS why, coalesce(task_count, 0) AS tasks,
        slots_there AS slots, slots_free AS free, coalesce(resource_profile, 0) AS profile,
        submit_ms, first_launch_ms IS NOT NULL AS started,
        coalesce(first_launch_ms, end_ms, (SELECT duration_ms FROM runs)) AS until_ms
    FROM spark_stages JOIN stages USING (stage_id)
    WHERE waited_for IS NOT NULL
)
SELECT
    waits.*,
    arg_max(worker_id, added_ms) AS executor,
    max(added_ms) AS added_ms
FROM waits LEFT JOIN workers ON kind = 'worker' AND added_ms > submit_ms AND added_ms <= until_ms
GROUP BY ALL
ORDER BY max(until_ms - submit_ms) DESC, stage
