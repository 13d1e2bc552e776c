-- Collectives with all traffic over the link of one process.
-- In:  nothing.
-- Out: one row per segment in which processes gather on one of them: stage_id, ms, and how many processes gather.  None
--      if reducing takes them longer than gathering: then the reduced data are the gradients.
WITH gathered AS (
    SELECT count(DISTINCT worker_id) FILTER (regexp_matches(name, '(^|:)gather$')) AS processes,
        sum(ended_ms - began_ms) FILTER (regexp_matches(name, '(^|:)gather$')) AS ms,
        sum(ended_ms - began_ms) FILTER (regexp_matches(name, '(all_?reduce|reduce_?scatter)')) AS reducing_ms
    FROM training_collectives
)
SELECT tasks.stage_id, sum(finish_ms - launch_ms) AS ms, any_value(processes) AS processes
FROM tasks JOIN training_operations USING (task_id), gathered
WHERE
    processes > 1 AND gathered.ms >= coalesce(reducing_ms, 0)
    AND kind = 'collective' AND regexp_matches(operator, '(^|:)(gather|broadcast|scatter)$')
GROUP BY tasks.stage_id
ORDER BY tasks.stage_id
