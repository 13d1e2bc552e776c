-- The operations and bytes a second that kernels of each operator reached, and their shares of the device's peaks.
--
-- one row per operator that ran on accelerators:
--   operator       as in training_operations
--   kernels        kernels and copies
--   time_ms        their time
--   bound          what bounds most of that time: compute, memory, latency or copy
--   flops_per_s    operations a second over the kernels of which they are known
--   flops_share    of the peak for the numbers that they multiply, 0 to 1; NULL if the device is not in the table
--   bytes_per_s    bytes a second through the device's memory over the kernels of which they are known
--   bytes_share    of the bandwidth of the device's memory, 0 to 1
WITH ran AS (
    SELECT
        operator, bound, flops, moved_bytes, finish_ms - launch_ms AS ms, (finish_ms - launch_ms) / 1e3 AS s,
        try_cast(properties['peak_' || unit] AS DOUBLE) AS peak_flops,
        try_cast(properties['peak_memory'] AS DOUBLE) AS peak_bytes
    FROM training_operations JOIN tasks USING (task_id), runs
    WHERE bound IS NOT NULL AND finish_ms > launch_ms
),
bounds AS (SELECT operator, arg_max(bound, ms) AS bound FROM (
    SELECT operator, bound, sum(ms) AS ms FROM ran GROUP BY operator, bound
) GROUP BY operator)
SELECT
    operator, count(*) AS kernels, sum(ms) AS time_ms, any_value(bounds.bound) AS bound,
    sum(flops) / nullif(sum(s) FILTER (flops IS NOT NULL), 0) AS flops_per_s,
    sum(flops / peak_flops) / nullif(sum(s) FILTER (flops IS NOT NULL AND peak_flops IS NOT NULL), 0) AS flops_share,
    sum(moved_bytes) / nullif(sum(s) FILTER (moved_bytes IS NOT NULL), 0) AS bytes_per_s,
    sum(moved_bytes / peak_bytes) / nullif(sum(s) FILTER (moved_bytes IS NOT NULL), 0) AS bytes_share
FROM ran JOIN bounds USING (operator)
GROUP BY operator
ORDER BY time_ms DESC, operator
