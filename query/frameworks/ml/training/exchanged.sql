-- Collectives that began in a span: how long bytes moved, how long processes waited for the last one, and its name.
-- In:  $start, $end, in ms since the start of the run.
-- Out: one row; sums are NULL if there were none:
--      moved_ms   summed over processes
--      waited_ms  summed over processes
--      last       the process that waited least: the others waited for it
SELECT
    sum(ended_ms - began_ms) AS moved_ms,
    sum(began_ms - arrived_ms) AS waited_ms,
    (
        SELECT worker_id FROM training_collectives WHERE began_ms BETWEEN $start AND $end
        GROUP BY worker_id ORDER BY sum(began_ms - arrived_ms), worker_id LIMIT 1
    ) AS last
FROM training_collectives WHERE began_ms BETWEEN $start AND $end
