-- Time by stage and operator in the form of exported_stacks, for runs without samples: a stack is an operator.
--
-- parameters  {sums}, the sum of each resource's time and of `other`
--
-- one row per stage and operator:
--   worker_id             NULL: the log does not record operators by worker
--   stage_id              the stage
--   stack_id              number of the operator's name
--   label                 the operator
--   count                 tasks of the stage that ran
--   (resources), other    time of tasks, ms
CREATE OR REPLACE TEMP TABLE exported_stacks AS
WITH sums AS (SELECT stage_id, name, {sums} FROM operator_times GROUP BY stage_id, name),
ran AS (SELECT stage_id, count(*) AS count FROM tasks GROUP BY stage_id)
SELECT
    NULL::VARCHAR AS worker_id, stage_id, (dense_rank() OVER (ORDER BY name) - 1)::INTEGER AS stack_id,
    coalesce(ran.count, 1) AS count, sums.* EXCLUDE (stage_id, name), name AS label
FROM sums LEFT JOIN ran USING (stage_id)
