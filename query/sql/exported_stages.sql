-- Time by worker and stage in the form of exported_stacks, for runs without samples and operators: a stack is a stage.
--
-- parameters  {sums}, the sum of each resource's time and of `other`
--
-- one row per worker and stage:
--   worker_id, stage_id   of the tasks
--   stack_id              number of the stage's name
--   label                 its name
--   count                 its tasks on the worker
--   (resources), other    time of tasks, ms
CREATE OR REPLACE TEMP TABLE exported_stacks AS
WITH sums AS (SELECT worker_id, stage_id, count(*) AS count, {sums} FROM tasks GROUP BY worker_id, stage_id),
named AS (
    SELECT stage_id, coalesce(name, stage_id) AS label, (dense_rank() OVER (ORDER BY label) - 1)::INTEGER AS stack_id
    FROM stages
)
SELECT sums.*, stack_id, label FROM sums JOIN named USING (stage_id)
