-- How long each query, job or step was under way, and what its units took.
--
-- one row per scope whose groups ran:
--   scope_id       what a question about it names
--   kind           the framework's word
--   name           what the user would recognise
--   status         succeeded, failed or unfinished
--   start_ms       submitted
--   end_ms         ended; NULL where the log has no end
--   length_ms      from the one to the other
--   groups         attempts of groups that ran for it
--   unit_ms        time of their units, summed
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on none of the resources, or unknown
--   most           the resource with the most of it, or other
WITH of_groups AS (
    SELECT scope_id, count(*) AS groups, sum(unit_ms) AS unit_ms, {sums_ms}
    FROM group_resources
    GROUP BY scope_id
)
SELECT
    s.scope_id, s.kind, s.name, s.status, s.start_ms, s.end_ms, s.end_ms - s.start_ms AS length_ms, g.groups,
    g.unit_ms, {all_ms}, {most_ms} AS most
FROM scopes AS s JOIN of_groups AS g USING (scope_id)
