-- CPU contention: load of the machines while the tasks of a stage ran, and the part of other applications.
--
-- parameters  start and end of the scope in ms since application start
--             {full}, {others}, shares of a machine
--
-- one row per stage with measurements of its workers (JFR's jdk.CPULoad); for the time of its tasks:
--   oversubscribed  share in which the machine was full, and others used at least {others} of it
--   others_cores    mean use by other applications in that time, in cores
--   processors      mean cores of those machines
WITH measured AS (
    SELECT
        host, worker_id, time_ms, machine_cores, processors,
        lag(time_ms) OVER (PARTITION BY worker_id ORDER BY time_ms) AS since_ms
    FROM loads JOIN workers USING (worker_id)
),
-- The application may have several processes on a machine, each measured at its own times.
processes AS (
    SELECT measured.*, coalesce(workers.worker_id, measured.worker_id) AS process
    FROM measured LEFT JOIN workers ON workers.host = measured.host
),
shares AS (
    SELECT
        processes.worker_id, since_ms, processes.time_ms,
        any_value(processes.processors) AS processors,
        any_value(processes.machine_cores) AS machine_cores,
        any_value(processes.machine_cores) - sum(coalesce(loads.cpu_cores, 0)) AS others_cores
    FROM processes ASOF LEFT JOIN loads ON loads.worker_id = processes.process AND loads.time_ms >= processes.time_ms
    GROUP BY ALL
),
running AS (
    SELECT
        stage_id, processors, others_cores,
        machine_cores >= {full} * processors AND others_cores >= {others} * processors AS oversubscribed,
        least(finish_ms, time_ms, $2) - greatest(launch_ms, since_ms, $1) AS ms
    FROM tasks JOIN shares ON tasks.worker_id = shares.worker_id AND launch_ms < time_ms AND finish_ms > since_ms
    WHERE finish_ms > $1 AND launch_ms < $2
)
SELECT
    stage_id,
    sum(ms) FILTER (oversubscribed) / sum(ms) AS oversubscribed,
    sum(others_cores * ms) FILTER (oversubscribed) / sum(ms) FILTER (oversubscribed) AS others_cores,
    sum(processors * ms) FILTER (oversubscribed) / sum(ms) FILTER (oversubscribed) AS processors
FROM running
WHERE ms > 0
GROUP BY ALL
HAVING coalesce(sum(ms) FILTER (oversubscribed), 0) > 0
ORDER BY ALL
