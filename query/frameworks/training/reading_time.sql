-- How long functions of Python read and wrote files in a span.
-- In:  $since, $until, in ms since the start of the run.
-- Out: one row: ms.
SELECT coalesce(sum(least(finish_ms, $until) - greatest(launch_ms, $since)), 0) AS ms
FROM units JOIN training_operations USING (unit_id)
WHERE kind = 'python' AND disk_ms > 0 AND finish_ms > $since AND launch_ms < $until
