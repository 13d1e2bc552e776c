-- Unit time by operator of a plan, over the groups it ran in.
--
-- one row per operator of a scope's plan, and per other thing that its groups' time went to:
--   scope_id       the scope whose plan it is in
--   node_id        position in the plan; NULL where the time belongs to no operator
--   name           the operator, or what the time went to instead
--   detail         start of the operator's own description
--   groups         the groups it ran in
--   basis          what says so: samples, plan metrics, unit metrics, nothing
--   unit_ms        time of units
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on none of the resources, or unknown
--   most           the resource with the most of it, or other
WITH summed AS (
    SELECT
        scope_id, node_id, name, list(DISTINCT group_id ORDER BY group_id) AS groups,
        string_agg(DISTINCT basis, ', ' ORDER BY basis) AS basis, {sums_ms}
    FROM operator_times
    GROUP BY scope_id, node_id, name
)
SELECT
    s.scope_id, s.node_id, s.name, o.detail, s.groups, s.basis, {plus_ms} AS unit_ms, {all_ms}, {most_ms} AS most
FROM summed AS s LEFT JOIN operators AS o ON o.scope_id = s.scope_id AND o.node_id = s.node_id
