-- The plan of a run, one distinct text a row: each operator with its input, or without plans the names of its stages.
-- Numbers (ids, lines, sizes) are removed, because they change from run to run.
WITH plans AS (
    SELECT concat(operators.name, ' < ', parent.name) AS step
    FROM operators
    LEFT JOIN operators AS parent
        ON parent.scope_id = operators.scope_id AND parent.node_id = operators.parent_id
),
steps AS (
    SELECT step FROM plans
    UNION ALL
    SELECT name FROM stages WHERE NOT EXISTS (FROM plans)
)
SELECT DISTINCT regexp_replace(step, '[0-9]+', '', 'g') AS step FROM steps ORDER BY step
