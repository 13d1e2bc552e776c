-- Duration of each query, job or step, and its task time by resource.
--
-- one row per scope with stages that ran:
--   scope_id       id that selects it
--   kind           the framework's term
--   name           display name
--   status         succeeded, failed or unfinished
--   start_ms       submitted
--   end_ms         ended; NULL if the log has no end
--   length_ms      from start_ms to end_ms
--   stages         attempts of its stages
--   task_ms        sum of their tasks' times
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on no resource, or unknown
--   most           the resource with the most of it, or other
WITH of_stages AS (
    SELECT scope_id, count(*) AS stages, sum(task_ms) AS task_ms, {sums_ms}
    FROM stage_resources
    GROUP BY scope_id
)
SELECT
    s.scope_id, s.kind, s.name, s.status, s.start_ms, s.end_ms, s.end_ms - s.start_ms AS length_ms, g.stages,
    g.task_ms, {all_ms}, {most_ms} AS most
FROM scopes AS s JOIN of_stages AS g USING (scope_id)
