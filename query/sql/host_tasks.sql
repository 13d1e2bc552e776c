-- The tasks of stages with compared hosts.
--
-- parameters  $begin and $end of the scope in ms since application start
--             hosts, the text of compared_hosts.sql, whose lines would end this comment
--             {resources}, the columns of the tasks' time by resource
--
-- one row per succeeded task of such a stage:
--   of_stage     position of its stage among the stages in the order of their ids
--   number       position of its stage and host among those rows; -1 for other hosts
--   duration_ms, read_bytes, (resources)
WITH compared AS (
    SELECT stage_id, host, row_number() OVER (ORDER BY stage_id, host) - 1 AS number FROM ({hosts})
),
compared_stages AS (
    SELECT stage_id, row_number() OVER (ORDER BY stage_id) - 1 AS of_stage FROM (SELECT DISTINCT stage_id FROM compared)
)
SELECT
    of_stage, coalesce(number, -1) AS number, finish_ms - launch_ms AS duration_ms,
    (coalesce(input_bytes, 0) + coalesce(remote_read_bytes, 0) + coalesce(local_read_bytes, 0))::DOUBLE AS read_bytes,
    {resources}
FROM tasks JOIN compared_stages USING (stage_id) LEFT JOIN compared USING (stage_id, host)
WHERE finish_ms > $begin AND launch_ms < $end AND status = 'succeeded' AND tasks.host IS NOT NULL
