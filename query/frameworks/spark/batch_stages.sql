-- The stages that batches of a streaming query run, and the time of their tasks by the rows of the batch.
-- In:  $starts, $times, $rows, by batch: its start, its time, ms, and its rows of input; $run_id, of the query's start.
-- Out: one row per stage of a batch, in their order, over the batches with the usual number of stages: tasks (the usual
--      number), wall_ms, task_ms and rows (means), slope and intercept of task_ms by rows (NULL if all have the same
--      rows), shuffled (whether it reads another stage), batches (how many had it).
WITH batches AS (
    SELECT unnest($starts::DOUBLE[]) AS batch_ms, unnest($times::DOUBLE[]) AS time_ms, unnest($rows::DOUBLE[]) AS rows
),
ran AS (
    SELECT
        batch_ms,
        rows,
        stage_id,
        spark_stage_id,
        len(parents) > 0 AS shuffled,
        count(*) AS tasks,
        sum(finish_ms - launch_ms) AS task_ms,
        max(finish_ms) - least(min(stages.submit_ms), min(launch_ms)) AS wall_ms
    FROM batches
    JOIN stages ON stages.submit_ms BETWEEN batch_ms AND batch_ms + time_ms
    JOIN spark_stages USING (stage_id)
    JOIN spark_jobs USING (job_id)
    JOIN tasks USING (stage_id)
    WHERE coalesce(job_group = $run_id, true)
    GROUP BY ALL
),
placed AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY batch_ms ORDER BY spark_stage_id, stage_id) AS place,
        count(*) OVER (PARTITION BY batch_ms) AS stages
    FROM ran
)
SELECT
    mode(tasks) AS tasks,
    avg(wall_ms) AS wall_ms,
    avg(task_ms) AS task_ms,
    avg(rows) AS rows,
    regr_slope(task_ms, rows) AS slope,
    mode(shuffled) AS shuffled,
    count(*) AS batches
FROM placed
WHERE stages = (SELECT mode(stages) FROM placed WHERE place = 1)
GROUP BY place
ORDER BY place
