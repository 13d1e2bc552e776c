-- The operators that most task time went to.
--
-- parameters  start and end of the scope in ms since application start
--
-- one row per operator of a query over the stages that have a task in the scope, most time first; time of stages
-- counts in full, also where the scope cuts them
SELECT
    sql_id,
    node_id,
    name,
    list_sort(list(DISTINCT stage_id)) AS stages,
    string_agg(DISTINCT basis, ' and ' ORDER BY basis) AS basis,
    {sums}
FROM operator_times
WHERE (stage_id, stage_attempt) IN (
    SELECT (stage_id, stage_attempt) FROM tasks WHERE finish_ms > ? AND launch_ms < ?
)
GROUP BY sql_id, node_id, name
ORDER BY {total} DESC, sql_id, node_id, name
