-- How busy each worker was, and with what.
--
-- one row per worker that ran units:
--   worker_id      the framework's id
--   host           node it ran on
--   lanes          units it can run at a time
--   units          units it ran, attempts counted each
--   there_ms       how long it was there
--   unit_ms        time of its units, summed
--   busy           unit time by the time of its lanes, 0 to 1; NULL where their number is not known
--   <resource>_ms  unit time on <resource>
--   other_ms       unit time on none of the resources, or unknown
--   most           the resource with the most of it, or other
--   gc_ms          garbage collection of its process while units ran, summed over units
WITH of_units AS (
    SELECT worker_id, count(*) AS units, sum(finish_ms - launch_ms) AS unit_ms, {sums_ms}, sum(gc_ms) AS gc_ms
    FROM units
    GROUP BY worker_id
)
SELECT
    w.worker_id, w.host, w.lanes, u.units, there_ms, u.unit_ms,
    u.unit_ms / nullif(w.lanes * there_ms, 0) AS busy, {all_ms}, {most_ms} AS most, u.gc_ms
FROM (
    SELECT *, coalesce(removed_ms, (SELECT duration_ms FROM runs)) - added_ms AS there_ms FROM workers
) AS w JOIN of_units AS u USING (worker_id)
