-- What a run does, a text a row and without repetition: which operator reads which, else the names of its groups.
-- Numbers go, for they change from run to run: ids, lines, sizes.
WITH plans AS (
    SELECT concat(operators.name, ' < ', parent.name) AS step
    FROM operators
    LEFT JOIN operators AS parent
        ON parent.scope_id = operators.scope_id AND parent.node_id = operators.parent_id
),
steps AS (
    SELECT step FROM plans
    UNION ALL
    SELECT name FROM groups WHERE NOT EXISTS (FROM plans)
)
SELECT DISTINCT regexp_replace(step, '[0-9]+', '', 'g') AS step FROM steps ORDER BY step
