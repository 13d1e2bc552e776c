-- Time of segments by the parts of the path that have names of their own; all other time is under other names.
-- In:  $stages, ids of segments; {names}, the columns of time on each resource and of `other`.
-- Out: one row per task: stage_id, the first words of its operator, the columns.
-- Operators within a request for a batch (name: input) make the batch too if the thread makes its own.
SELECT
    stage_id,
    CASE
        WHEN kind = 'op' AND training_operations.name = 'input'
            AND (SELECT bool_or(starts_with(operator, 'own batches')) FROM training_operations)
            THEN 'own batches'
        ELSE split_part(operator, ': ', 1)
    END AS part,
    {names}
FROM tasks JOIN training_operations USING (task_id)
WHERE stage_id IN (SELECT unnest($stages::VARCHAR[]))
