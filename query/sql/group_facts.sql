-- How the units of each group went.
--
-- parameters  start and end of the scope in ms since application start
--             {moved}, of each resource whose device bytes cross, the sum of these: moved_<resource>
--
-- one row per group with a unit in the scope; of its longest unit, the columns that begin with longest_
WITH mine AS (
    SELECT
        *,
        finish_ms - launch_ms AS duration_ms,
        coalesce(input_bytes, 0) + coalesce(remote_bytes, 0) + coalesce(local_bytes, 0) AS read_bytes,
        row_number() OVER (PARTITION BY worker_id ORDER BY launch_ms, unit_id) AS nth_of_worker
    FROM units
)
SELECT
    group_id,
    count(*) AS units,
    median(duration_ms) AS median_ms,
    max(duration_ms) AS longest_ms,
    median(read_bytes) AS median_bytes,
    max(read_bytes) AS most_bytes,
    sum(duration_ms) AS unit_ms,
    sum(coalesce(starting_ms, 0)) AS starting_ms,
    sum(coalesce(queued_ms, 0)) AS queued_ms,
    sum(coalesce(gc_ms, 0)) AS gc_ms,
    sum(coalesce(spill_disk_bytes, 0))::BIGINT AS spill_bytes,
    sum(coalesce(own_ms, 0)) AS own_ms,
    sum(coalesce(own_cpu_ms, 0)) AS own_cpu_ms,
    sum(coalesce(peers_ms, 0)) AS peers_ms,
    sum(read_bytes)::BIGINT AS read_bytes,
    {moved},
    arg_max(unit_id, duration_ms) AS longest_unit,
    arg_max(worker_id, duration_ms) AS longest_worker,
    arg_max(host, duration_ms) AS longest_host,
    arg_max(read_bytes, duration_ms) AS longest_read_bytes,
    arg_max(coalesce(gc_ms, 0), duration_ms) AS longest_gc_ms,
    arg_max(nth_of_worker, duration_ms) AS longest_nth
FROM mine
WHERE finish_ms > ? AND launch_ms < ?
GROUP BY group_id
ORDER BY group_id
