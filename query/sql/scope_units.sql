-- The tasks of a scope, with the columns for analysis and prediction; unknown amounts are 0.  If the log has no CPU
-- time, time on the CPU and CPU wait are indistinguishable.
--
-- parameters  $begin and $end of the scope in ms since application start
--             $groups, $workers, $hosts, the names to which numbers in columns refer
--             {parts}, the columns of the tasks' time by resource
--             {far}, values of data_at for another machine, {in_worker}, for the task's own worker, {kept}, the root of
--             cached data, {replicated}, schemes of file systems with replicas (query.attribution.input_places)
--             {most}, the minimum share of a stage's tasks that followed others, for all of its tasks to count as followers
--             {columns}, the wanted ones, or *
--
-- one row per task that ran within the scope, by launch:
--   group, worker, host   positions in the lists of names; -1 for other stages and workers, 0 for other hosts
--   placement   locality preference: 1 ran where its data are, 2 gave up waiting for that, 0 has none
--               (query.execution.dag: AT_HOME, ELSEWHERE, ANYWHERE)
--   follows     the earlier task of its part on a worker that has cached its input; -1 if there is none
--   is_far      whether its data were on another machine, if they have a location
--   in_worker   whether its worker held its data
WITH within AS NOT MATERIALIZED (SELECT * FROM units WHERE finish_ms > $begin AND launch_ms < $end),
group_names AS (SELECT unnest($groups::VARCHAR[]) AS group_id, unnest(range(len($groups::VARCHAR[]))) AS number),
worker_names AS (SELECT unnest($workers::VARCHAR[]) AS worker_id, unnest(range(len($workers::VARCHAR[]))) AS number),
host_names AS (SELECT unnest($hosts::VARCHAR[]) AS host, unnest(range(len($hosts::VARCHAR[]))) AS number),
-- Tasks without a preference are logged like those with data in a worker, except if workers cached data.  For files
-- with replicas every task has a preference, so a task with no locality in the log missed its worker's cache.
keeping AS (
    SELECT group_id, bool_or(split_part(root, ':', 1) IN {replicated}) AS is_replicated
    FROM group_inputs
    GROUP BY group_id
    HAVING bool_or(root = '{kept}')
),
wanting AS (
    SELECT
        unit_id, within.group_id,
        data_at = 'host' OR (data_at = '{in_worker}' AND keeping.group_id IS NOT NULL)
        OR (data_at IS NULL AND coalesce(is_replicated, false)) AS at_home
    FROM within LEFT JOIN keeping USING (group_id)
),
-- The last task before each for the same part, of a stage with as many parts.  Its worker has the cached part, if most
-- tasks of the stage with a preference ran there.
before AS (
    SELECT
        unit_id, group_id,
        lag(unit_id) OVER alike AS other_id, lag(group_id) OVER alike AS other_group,
        lag(worker_id) OVER alike AS other_worker, worker_id
    FROM within JOIN groups USING (group_id)
    WHERE within.status = 'succeeded'
        AND unit_count IN (SELECT unit_count FROM groups JOIN keeping USING (group_id))
    WINDOW alike AS (PARTITION BY unit_count, part ORDER BY launch_ms, unit_id)
),
following AS (
    SELECT group_id
    FROM before JOIN wanting USING (unit_id, group_id) JOIN keeping USING (group_id)
    WHERE at_home
    GROUP BY group_id
    HAVING avg((other_group <> group_id AND other_worker = worker_id)::INTEGER) >= {most}
),
followed AS (
    SELECT unit_id, group_id, other_id
    FROM before JOIN following USING (group_id)
    WHERE other_group <> group_id
),
wishing AS (SELECT DISTINCT group_id FROM wanting WHERE at_home),
unit_rows AS (
    SELECT
        unit_id,
        coalesce(group_names.number, -1) AS group_number,
        coalesce(worker_names.number, -1) AS worker_number,
        coalesce(host_names.number, 0) AS host_number,
        launch_ms, finish_ms, {parts},
        CASE
            WHEN at_home THEN 1
            -- In a stage with such tasks, one that ran anywhere had a preference too.
            WHEN data_at IN ('rack', 'any') AND wishing.group_id IS NOT NULL THEN 2
            ELSE 0
        END AS placement,
        coalesce(other_id, -1) AS follows,
        coalesce(data_at IN {far}, false) AS is_far,
        coalesce(data_at = '{in_worker}', false) AS in_worker,
        coalesce(upstream_ms, 0) AS upstream_ms, coalesce(peers_ms, 0) AS peers_ms,
        coalesce(input_bytes, 0) AS input_bytes, coalesce(remote_bytes, 0) AS remote_bytes,
        coalesce(local_bytes, 0) AS local_bytes, coalesce(handed_bytes, 0) AS handed_bytes,
        coalesce(output_bytes, 0) AS output_bytes, coalesce(spill_memory_bytes, 0) AS spill_memory_bytes,
        coalesce(spill_disk_bytes, 0) AS spill_disk_bytes, coalesce(peak_memory_bytes, 0) AS peak_memory_bytes,
        coalesce(gc_ms, 0) AS gc_ms, coalesce(on_cpu_ms, cpu_ms, 0) AS on_cpu_ms, coalesce(overhead_ms, 0) AS overhead_ms
    FROM within
    LEFT JOIN group_names USING (group_id)
    LEFT JOIN worker_names USING (worker_id)
    LEFT JOIN host_names ON host_names.host = coalesce(within.host, '?')
    LEFT JOIN wanting USING (unit_id, group_id)
    LEFT JOIN followed USING (unit_id, group_id)
    LEFT JOIN wishing USING (group_id)
)
SELECT {columns} FROM unit_rows ORDER BY launch_ms, unit_id
