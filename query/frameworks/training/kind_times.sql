-- What operators of each kind took in a span.
-- In:  $start, $end, in ms since the start of the run.
-- Out: one row per kind (see training_operations): ms, summed over threads and streams, what reaches out of the span
--      cut off.
SELECT kind, sum(least(finish_ms, $end) - greatest(launch_ms, $start)) AS ms
FROM units JOIN training_operations USING (unit_id)
WHERE finish_ms > $start AND launch_ms < $end
GROUP BY kind
