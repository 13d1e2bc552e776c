-- Statements of a server's clients that a scope overlaps, and that ran queries or failed, with the time of their tasks within it.
-- In:  $start, $end, the scope in ms since the start of the run; the view scope_parts is filled in.
-- Out: one row per statement, the one with most task time first; then the longest.
WITH scope_parts AS ({scope_parts}),
within AS (
    SELECT p.part_id AS scope_id, p.scope_id AS statement
    FROM scope_parts AS p JOIN spark_statements AS s ON s.scope_id = p.scope_id
),
of_tasks AS (
    SELECT within.statement, sum(least(finish_ms, $end) - greatest(launch_ms, $start)) AS task_ms
    FROM tasks
    JOIN spark_stages USING (stage_id)
    JOIN within ON within.scope_id = 'job:' || job_id
    WHERE launch_ms < $end AND finish_ms > $start
    GROUP BY within.statement
),
-- A client of Connect sends each SQL text twice: first, it only asks for the plan.
worked AS (SELECT DISTINCT within.statement FROM within WHERE within.statement <> within.scope_id)
SELECT
    s.scope_id,
    s.session_id,
    s.user_name,
    s.text,
    s.status,
    coalesce(s.end_ms, $end) - s.start_ms AS length_ms,
    coalesce(task_ms, 0) AS task_ms
FROM spark_statements AS s LEFT JOIN of_tasks ON of_tasks.statement = s.scope_id
WHERE
    s.start_ms < $end
    AND coalesce(s.end_ms, $end) > $start
    AND (s.status <> 'succeeded' OR s.scope_id IN (SELECT worked.statement FROM worked))
ORDER BY task_ms DESC, length_ms DESC, s.start_ms
