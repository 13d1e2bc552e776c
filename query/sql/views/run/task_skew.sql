-- Each task compared with the median of its stage.
--
-- one row per task:
--   task_id          the task
--   stage_id         its stage
--   worker_id        where it ran
--   status           succeeded, failed, killed or unfinished
--   task_ms          launch to end
--   stage_median_ms  the median of its stage
--   times_median     task_ms over stage_median_ms; NULL if the median is 0
--   read_bytes       bytes read from storage and from other tasks
--   stage_median_bytes  the median of its stage
--   <resource>_ms    its time on <resource>
--   other_ms         its time on no resource, or unknown
--   most             the resource with the most of it, or other
SELECT
    task_id, stage_id, worker_id, status, task_ms, median(task_ms) OVER same_stage AS stage_median_ms,
    task_ms / nullif(median(task_ms) OVER same_stage, 0) AS times_median,
    read_bytes, median(read_bytes) OVER same_stage AS stage_median_bytes, {all_ms}, {most_ms} AS most
FROM (
    SELECT
        *, finish_ms - launch_ms AS task_ms,
        coalesce(input_bytes, 0) + coalesce(remote_read_bytes, 0) + coalesce(local_read_bytes, 0) AS read_bytes
    FROM tasks
)
WINDOW same_stage AS (PARTITION BY stage_id)
