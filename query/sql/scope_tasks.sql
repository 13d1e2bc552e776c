-- The tasks of a scope, with the columns for analysis and prediction; unknown amounts are 0.  If the log has no CPU
-- time, time on the CPU and CPU wait are indistinguishable.
--
-- parameters  $begin and $end of the scope in ms since application start
--             $stages, $workers, $hosts, the names to which numbers in columns refer
--             {parts}, the columns of the tasks' time by resource
--             {far}, values of data_locality for another machine, {in_worker}, for the task's own worker, {kept}, the root of
--             cached data, {replicated}, schemes of file systems with replicas (query.attribution.locality)
--             {most}, the minimum share of a stage's tasks that followed others, for all of its tasks to count as followers
--             {columns}, the wanted ones, or *
--
-- one row per task that ran within the scope, in any order:
--   finish_ms   its end.  A task that did not succeed and outlived its stage, such as the slower of two copies, ends with
--               the stage here, because nothing waited for it
--   whole_ms    its duration with that time
--   stage, worker, host   positions in the lists of names; -1 for other stages and workers, 0 for other hosts
--   placement   locality preference: 1 ran where its data are, 2 gave up waiting for that, 0 has none
--               (query.execution.dag: AT_HOME, ELSEWHERE, ANYWHERE)
--   follows     the earlier task of its part on a worker that has cached its input; -1 if there is none
--   is_far      whether its data were on another machine, if they have a location
--   in_worker   whether its worker held its data
WITH within AS NOT MATERIALIZED (SELECT * FROM tasks WHERE finish_ms > $begin AND launch_ms < $end),
stage_names AS (SELECT unnest($stages::VARCHAR[]) AS stage_id, unnest(range(len($stages::VARCHAR[]))) AS number),
worker_names AS (SELECT unnest($workers::VARCHAR[]) AS worker_id, unnest(range(len($workers::VARCHAR[]))) AS number),
host_names AS (SELECT unnest($hosts::VARCHAR[]) AS host, unnest(range(len($hosts::VARCHAR[]))) AS number),
-- Tasks without a preference are logged like those with data in a worker, except if workers cached data.  For files
-- with replicas every task has a preference, so a task with no locality in the log missed its worker's cache.
keeping AS (
    SELECT stage_id, bool_or(split_part(root, ':', 1) IN {replicated}) AS is_replicated
    FROM stage_inputs
    GROUP BY stage_id
    HAVING bool_or(root = '{kept}')
),
wanting AS (
    SELECT
        task_id, within.stage_id,
        data_locality = 'host' OR (data_locality = '{in_worker}' AND keeping.stage_id IS NOT NULL)
        OR (data_locality IS NULL AND coalesce(is_replicated, false)) AS at_home
    FROM within LEFT JOIN keeping USING (stage_id)
),
-- The last task before each for the same part, of a stage with as many parts.  Its worker has the cached part, if most
-- tasks of the stage with a preference ran there.
before AS (
    SELECT
        task_id, stage_id,
        lag(task_id) OVER alike AS other_id, lag(stage_id) OVER alike AS other_stage,
        lag(worker_id) OVER alike AS other_worker, worker_id
    FROM within JOIN stages USING (stage_id)
    WHERE within.status = 'succeeded'
        AND task_count IN (SELECT task_count FROM stages JOIN keeping USING (stage_id))
    WINDOW alike AS (PARTITION BY task_count, partition_index ORDER BY launch_ms, task_id)
),
following AS (
    SELECT stage_id
    FROM before JOIN wanting USING (task_id, stage_id) JOIN keeping USING (stage_id)
    WHERE at_home
    GROUP BY stage_id
    HAVING avg((other_stage <> stage_id AND other_worker = worker_id)::INTEGER) >= {most}
),
followed AS (
    SELECT task_id, stage_id, other_id
    FROM before JOIN following USING (stage_id)
    WHERE other_stage <> stage_id
),
wishing AS (SELECT DISTINCT stage_id FROM wanting WHERE at_home),
ended AS (SELECT stage_id, end_ms AS ended_ms FROM stages WHERE end_ms IS NOT NULL AND status IN ('succeeded', 'failed')),
task_rows AS (
    SELECT
        task_id,
        coalesce(stage_names.number, -1) AS stage_number,
        coalesce(worker_names.number, -1) AS worker_number,
        coalesce(host_names.number, 0) AS host_number,
        launch_ms,
        CASE
            WHEN status IN ('failed', 'killed') AND finish_ms > ended_ms THEN greatest(ended_ms, launch_ms)
            ELSE finish_ms
        END AS finish_ms,
        within.finish_ms - launch_ms AS whole_ms, {parts},
        CASE
            WHEN at_home THEN 1
            -- In a stage with such tasks, one that ran anywhere had a preference too.
            WHEN data_locality IN ('rack', 'any') AND wishing.stage_id IS NOT NULL THEN 2
            ELSE 0
        END AS placement,
        coalesce(other_id, -1) AS follows,
        coalesce(data_locality IN {far}, false) AS is_far,
        coalesce(data_locality = '{in_worker}', false) AS in_worker,
        coalesce(pipeline_wait_ms, 0) AS pipeline_wait_ms, coalesce(fetch_wait_ms, 0) AS fetch_wait_ms,
        coalesce(input_bytes, 0) AS input_bytes, coalesce(remote_read_bytes, 0) AS remote_read_bytes,
        coalesce(local_read_bytes, 0) AS local_read_bytes, coalesce(exchange_write_bytes, 0) AS exchange_write_bytes,
        coalesce(output_bytes, 0) AS output_bytes, coalesce(spill_memory_bytes, 0) AS spill_memory_bytes,
        coalesce(spill_disk_bytes, 0) AS spill_disk_bytes, coalesce(peak_memory_bytes, 0) AS peak_memory_bytes,
        coalesce(gc_ms, 0) AS gc_ms, coalesce(total_cpu_ms, cpu_ms, 0) AS total_cpu_ms, coalesce(overhead_ms, 0) AS overhead_ms
    FROM within
    LEFT JOIN stage_names USING (stage_id)
    LEFT JOIN worker_names USING (worker_id)
    LEFT JOIN host_names ON host_names.host = coalesce(within.host, '?')
    LEFT JOIN wanting USING (task_id, stage_id)
    LEFT JOIN followed USING (task_id, stage_id)
    LEFT JOIN wishing USING (stage_id)
    LEFT JOIN ended USING (stage_id)
)
SELECT {columns} FROM task_rows
