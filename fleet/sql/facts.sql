-- Totals of a run file's tasks, in one row: attempts, those that did not succeed, the milliseconds of all and of those,
-- and the bytes read, written, passed to other tasks and spilled.
SELECT
    count(*) AS tasks,
    count(*) FILTER (status IN ('failed', 'killed')) AS failed_tasks,
    coalesce(sum(finish_ms - launch_ms), 0) AS busy_ms,
    coalesce(sum(finish_ms - launch_ms) FILTER (status IN ('failed', 'killed')), 0) AS lost_ms,
    coalesce(sum(input_bytes), 0)::BIGINT AS input_bytes,
    coalesce(sum(output_bytes), 0)::BIGINT AS output_bytes,
    coalesce(sum(exchange_write_bytes), 0)::BIGINT AS exchange_write_bytes,
    coalesce(sum(spill_disk_bytes), 0)::BIGINT AS spilled_bytes
FROM tasks
