-- Duration of each statement that a client sent to a Spark Connect or Thrift server, and its task time by resource.
--
-- one row per statement:
--   scope_id       id that selects it: statement:0
--   server         connect or thrift
--   session_id     session of the client
--   user_name      user of the session
--   text           its SQL text, or the start of its plan
--   status         succeeded, failed, canceled or unfinished
--   start_ms       received
--   end_ms         its rows were computed; NULL if the log has no end
--   length_ms      from start_ms to end_ms
--   planning_ms    from start_ms until its first query or job started: parsing and planning; NULL without one
--   fetching_ms    from end_ms until the client had its rows
--   queries        its SQL queries
--   stages         attempts of its stages that ran
--   task_ms        sum of their tasks' times
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on no resource, or unknown
--   most           the resource with the most of it, or other
WITH within AS (
    SELECT p.part_id AS scope_id, p.scope_id AS statement
    FROM scope_parts AS p JOIN spark_statements AS s ON s.scope_id = p.scope_id
),
parts AS (
    SELECT
        w.statement, min(s.start_ms) AS first_ms, count(DISTINCT s.scope_id) FILTER (s.kind = 'sql') AS queries
    FROM within AS w JOIN scopes AS s USING (scope_id)
    WHERE s.kind <> 'statement'
    GROUP BY w.statement
),
of_tasks AS (
    SELECT statement, count(*) AS stages, sum(task_ms) AS task_ms, {sums_ms}
    FROM stage_resources
    JOIN spark_stages USING (stage_id)
    JOIN within ON within.scope_id = 'job:' || job_id
    GROUP BY statement
)
SELECT
    s.scope_id, s.server, s.session_id, s.user_name, s.text, s.status, s.start_ms, s.end_ms,
    s.end_ms - s.start_ms AS length_ms, greatest(p.first_ms - s.start_ms, 0) AS planning_ms,
    greatest(s.closed_ms - s.end_ms, 0) AS fetching_ms, coalesce(p.queries, 0) AS queries,
    coalesce(g.stages, 0) AS stages, g.task_ms, {all_ms}, {most_ms} AS most
FROM spark_statements AS s
LEFT JOIN parts AS p ON p.statement = s.scope_id
LEFT JOIN of_tasks AS g ON g.statement = s.scope_id
