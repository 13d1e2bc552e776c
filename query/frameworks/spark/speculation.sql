-- Speculative copies of tasks by stage, the stage with most losing time first.  An attempt is a copy if the log says so,
-- or if it began after another attempt at its part that ended because one of them had succeeded.
-- In:  $why, the reason with which Spark ends an attempt after another one succeeded.
-- Out: one row per stage with copies or losing attempts.
--      copies    speculative attempts
--      won       of these, those that succeeded
--      lost_ms   time of attempts that ran until another one had succeeded
--      losing    times of the copies that lost
--      saved_ms  for how long originals ran on after the winning copy of the last one of them had ended, within the run
WITH contested AS (
    SELECT DISTINCT stage_id, partition_index
    FROM tasks
    WHERE (status = 'killed' AND reason LIKE $why) OR task_id IN (SELECT task_id FROM spark_tasks WHERE speculative)
),
attempts AS (
    SELECT
        tasks.stage_id, tasks.partition_index, launch_ms, finish_ms, tasks.status, coalesce(speculative, false) AS marked,
        coalesce(tasks.status = 'killed' AND tasks.reason LIKE $why, false) AS lost
    FROM tasks
    JOIN contested
        ON tasks.stage_id = contested.stage_id AND tasks.partition_index IS NOT DISTINCT FROM contested.partition_index
    JOIN spark_tasks USING (task_id)
),
raced AS (
    SELECT
        *,
        marked OR launch_ms > min(launch_ms) OVER (PARTITION BY stage_id, partition_index) AS copy
    FROM attempts
    QUALIFY bool_or(marked OR lost) OVER (PARTITION BY stage_id, partition_index)
),
parts AS (
    SELECT
        stage_id,
        count(*) FILTER (copy) AS copies,
        count(*) FILTER (copy AND status = 'succeeded') AS won,
        coalesce(sum(finish_ms - launch_ms) FILTER (lost), 0) AS lost_ms,
        max(finish_ms) FILTER (lost AND NOT copy) - max(finish_ms) FILTER (copy AND status = 'succeeded') AS ran_on_ms,
        coalesce(list({launch: launch_ms, finish: finish_ms}) FILTER (copy AND lost), []) AS losing
    FROM raced
    GROUP BY stage_id, partition_index
)
SELECT
    stage_id AS stage,
    sum(copies)::INTEGER AS copies,
    sum(won)::INTEGER AS won,
    sum(lost_ms)::DOUBLE AS lost_ms,
    coalesce(max(greatest(ran_on_ms, 0)) FILTER (won > 0), 0)::DOUBLE AS saved_ms,
    flatten(list(losing)) AS losing
FROM parts
GROUP BY stage_id
ORDER BY sum(lost_ms) DESC, stage_id
