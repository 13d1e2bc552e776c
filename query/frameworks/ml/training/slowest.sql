-- The process for which the others waited in the collectives that began in a span.
-- In:  $start, $end, in ms since the start of the run.
-- Out: one row, none without two processes: worker_id, the process that waited least; ms, how much longer the others
--      waited on average.
WITH waits AS (
    SELECT worker_id, sum(began_ms - arrived_ms) AS waited_ms
    FROM training_collectives WHERE began_ms BETWEEN $start AND $end
    GROUP BY worker_id
)
SELECT
    arg_min(worker_id, (waited_ms, worker_id)) AS worker_id,
    (sum(waited_ms) - min(waited_ms)) / (count(*) - 1) - min(waited_ms) AS ms
FROM waits
HAVING count(*) > 1
