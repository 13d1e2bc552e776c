-- Each unit beside the one in the middle of its group.
--
-- one row per unit:
--   unit_id          the unit
--   group_id         its group
--   worker_id        where it ran
--   status           succeeded, failed, killed or unfinished
--   unit_ms          launch to end
--   group_median_ms  the same of the unit in the middle of its group
--   times_median     the one by the other; NULL where the median is 0
--   read_bytes       what it read, from storage and from other units
--   group_median_bytes  the same of the unit in the middle of its group
--   <resource>_ms    its time on <resource>
--   other_ms         its time on none of the resources, or unknown
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
