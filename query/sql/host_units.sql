-- The tasks of stages with compared hosts.
--
-- parameters  $begin and $end of the scope in ms since application start
--             $groups and $hosts, the rows of compared_hosts.sql by column
--             {resources}, the columns of the tasks' time by resource
--
-- one row per succeeded task of such a stage:
--   of_group     position of its stage among the stages in the order of their ids
--   number       position of its stage and host in the lists; -1 for other hosts
--   duration_ms, read_bytes, (resources)
WITH compared AS (
    SELECT group_id, host, row_number() OVER () - 1 AS number
    FROM (SELECT unnest($groups::VARCHAR[]) AS group_id, unnest($hosts::VARCHAR[]) AS host)
),
compared_groups AS (
    SELECT group_id, row_number() OVER (ORDER BY group_id) - 1 AS of_group FROM (SELECT DISTINCT group_id FROM compared)
)
SELECT
    of_group, coalesce(number, -1) AS number, finish_ms - launch_ms AS duration_ms,
    (coalesce(input_bytes, 0) + coalesce(remote_bytes, 0) + coalesce(local_bytes, 0))::DOUBLE AS read_bytes,
    {resources}
FROM units JOIN compared_groups USING (group_id) LEFT JOIN compared USING (group_id, host)
WHERE finish_ms > $begin AND launch_ms < $end AND status = 'succeeded' AND units.host IS NOT NULL
