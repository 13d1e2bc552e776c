-- Time of the tasks of some stages in their plan nodes with Python functions, and in all others.
-- In:  $stages, ids of stages; {names}, the columns of time on each resource and of `other`.
-- Out: one row per stage and operator: stage_id; that id again for Python functions, else an empty text; the columns.
SELECT
    stage_id,
    CASE WHEN regexp_matches(operators.name, 'Python|Pandas|InArrow|ArrowEval') THEN stage_id ELSE '' END AS part,
    {names}
FROM operator_times LEFT JOIN operators USING (scope_id, node_id)
WHERE stage_id IN (SELECT unnest($stages::VARCHAR[]))
