-- Shares of an accelerator's peaks that kernels reached, by operator, longest first.
-- In:  $start, $end, in ms since the start of the run; {peaks}, to fill with str.format(): a CASE of operations a second
--      by unit, NULL where it is not known; {memory}: bytes a second of the device's memory, or NULL.
-- Out: one row per operator: kernels and copies, their ms, what bounds most of that time, how most of their work is
--      known; operations and bytes a second over the kernels of which they are known, and their shares of the peaks.
WITH kernels AS (
    SELECT
        operator, finish_ms - launch_ms AS ms, bound, known_by, flops, moved_bytes,
        (finish_ms - launch_ms) / 1e3 AS s, {peaks} AS peak
    FROM training_operations JOIN tasks USING (task_id)
    WHERE bound IS NOT NULL AND finish_ms > launch_ms AND launch_ms < $end AND finish_ms > $start
), bounds AS (
    SELECT operator, bound, sum(ms) AS ms FROM kernels GROUP BY operator, bound
), known AS (
    SELECT operator, known_by, sum(ms) AS ms FROM kernels GROUP BY operator, known_by
)
SELECT
    operator, count(*) AS kernels, sum(ms) AS time_ms,
    (SELECT arg_max(b.bound, b.ms) FROM bounds AS b WHERE b.operator = k.operator) AS bound,
    (SELECT arg_max(o.known_by, o.ms) FROM known AS o WHERE o.operator = k.operator) AS known_by,
    sum(flops) / nullif(sum(s) FILTER (flops IS NOT NULL), 0) AS flops_per_s,
    sum(flops / peak) / nullif(sum(s) FILTER (flops IS NOT NULL AND peak IS NOT NULL), 0) AS flops_share,
    sum(moved_bytes) / nullif(sum(s) FILTER (moved_bytes IS NOT NULL), 0) AS bytes_per_s,
    sum(moved_bytes) / {memory} / nullif(sum(s) FILTER (moved_bytes IS NOT NULL), 0) AS bytes_share
FROM kernels AS k
GROUP BY operator
ORDER BY time_ms DESC, operator
LIMIT 1000
