-- The operators with the most task time.
--
-- parameters  start and end of the scope in ms since application start
--             {sums}, of the time on each resource, and {total}, of all of it
--
-- one row per operator of a scope, for the stages with a task in the requested scope, most time first; the time of
-- stages counts in full, even if the scope cuts them
SELECT
    scope_id,
    node_id,
    name,
    list(DISTINCT stage_id) AS stages,
    string_agg(DISTINCT basis, ' and ' ORDER BY basis) AS basis,
    (SELECT any_value(call_site) FROM scopes WHERE scopes.scope_id = operator_times.scope_id) AS call_site,
    {sums}
FROM operator_times
WHERE stage_id IN (SELECT stage_id FROM tasks WHERE finish_ms > ? AND launch_ms < ?)
GROUP BY scope_id, node_id, name
ORDER BY round({total}, 3) DESC, length(scope_id), scope_id, node_id, name
