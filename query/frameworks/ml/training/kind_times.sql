-- Time of operators by kind within a span.
-- In:  $start, $end, in ms since the start of the run.
-- Out: one row per kind (see training_operations): ms within the span, summed over threads and streams; and the part of
--      it on the disk.
SELECT kind, sum(ms) AS ms, coalesce(sum(ms) FILTER (own_disk_ms > 0), 0) AS disk_ms
FROM (
    SELECT kind, disk_ms AS own_disk_ms, least(finish_ms, $end) - greatest(launch_ms, $start) AS ms
    FROM tasks JOIN training_operations USING (task_id)
    WHERE finish_ms > $start AND launch_ms < $end
)
GROUP BY kind
