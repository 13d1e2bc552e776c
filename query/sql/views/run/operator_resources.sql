-- Task time by operator of a plan, over the stages it ran in.
--
-- one row per operator of a scope's plan, and per other activity of its stages:
--   scope_id       the scope of its plan
--   node_id        position in the plan; NULL if the time belongs to no operator
--   name           the operator, or another activity
--   detail         start of the operator's own description
--   stages         the stages it ran in
--   basis          the source of the figure: samples, plan metrics, task metrics, nothing
--   task_ms        time of tasks
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on no resource, or unknown
--   most           the resource with the most of it, or other
WITH summed AS (
    SELECT
        scope_id, node_id, name, list(DISTINCT stage_id ORDER BY stage_id) AS stages,
        string_agg(DISTINCT basis, ', ' ORDER BY basis) AS basis, {sums_ms}
    FROM operator_times
    GROUP BY scope_id, node_id, name
)
SELECT
    s.scope_id, s.node_id, s.name, o.detail, s.stages, s.basis, {plus_ms} AS task_ms, {all_ms}, {most_ms} AS most
FROM summed AS s LEFT JOIN operators AS o ON o.scope_id = s.scope_id AND o.node_id = s.node_id
