-- The share of Python workers in time on no resource, from the metrics of the plan (Spark 4.0 and newer).
-- In:  nothing.
-- Out: one row per stage whose plan times its Python workers: their operators' share of the stage's time on no resource.
SELECT
    stage_id,
    sum(operator_times.other_ms) FILTER (timed.node_id IS NOT NULL) / sum(operator_times.other_ms) AS share
FROM operator_times LEFT JOIN (
    SELECT DISTINCT stage_id, scope_id, node_id FROM operator_metrics WHERE name = 'time to run Python workers'
) AS timed USING (stage_id, scope_id, node_id)
GROUP BY stage_id
HAVING share IS NOT NULL AND sum(operator_times.other_ms) > 0
