-- Each task compared with the median of its stage.
--
-- one row per task:
--   unit_id          the task
--   group_id         its stage
--   worker_id        where it ran
--   status           succeeded, failed, killed or unfinished
--   unit_ms          launch to end
--   group_median_ms  the median of its stage
--   times_median     unit_ms over group_median_ms; NULL if the median is 0
--   read_bytes       bytes read from storage and from other tasks
--   group_median_bytes  the median of its stage
--   <resource>_ms    its time on <resource>
--   other_ms         its time on no resource, or unknown
--   most             the resource with the most of it, or other
SELECT
    unit_id, group_id, worker_id, status, unit_ms, median(unit_ms) OVER same_group AS group_median_ms,
    unit_ms / nullif(median(unit_ms) OVER same_group, 0) AS times_median,
    read_bytes, median(read_bytes) OVER same_group AS group_median_bytes, {all_ms}, {most_ms} AS most
FROM (
    SELECT
        *, finish_ms - launch_ms AS unit_ms,
        coalesce(input_bytes, 0) + coalesce(remote_bytes, 0) + coalesce(local_bytes, 0) AS read_bytes
    FROM units
)
WINDOW same_group AS (PARTITION BY group_id)
