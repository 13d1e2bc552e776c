-- How long collectives were under way in a span.
-- In:  $since, $until, in ms since the start of the run.
-- Out: one row: ms, summed over the processes that took part, whether bytes moved or they waited for one another.
SELECT coalesce(sum(least(finish_ms, $until) - greatest(launch_ms, $since)), 0) AS ms
FROM units JOIN training_operations USING (unit_id)
WHERE kind = 'collective' AND finish_ms > $since AND launch_ms < $until
