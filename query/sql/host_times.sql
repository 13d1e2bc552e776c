-- How long the tasks of a stage took on each host, by resource: a host slower than its peers stands out.
--
-- parameters  start and end of the scope in ms since application start
--
-- one row per stage attempt, host and resource, where the stage ran at least three tasks on at least two hosts:
--   median_ms, median_bytes      of the tasks on the host
--   others_ms, others_bytes      medians of the tasks on all other hosts
--   others_duration_ms           median of those tasks' whole durations
WITH mine AS (
    SELECT
        stage_id, stage_attempt, host, finish_ms - launch_ms AS duration_ms,
        coalesce(input_bytes, 0) + coalesce(shuffle_remote_bytes, 0) + coalesce(shuffle_local_bytes, 0) AS read_bytes,
        {resources}
    FROM tasks
    WHERE finish_ms > ? AND launch_ms < ? AND status = 'succeeded' AND host IS NOT NULL
),
hosts AS (
    SELECT stage_id, stage_attempt, host, count(*) AS tasks FROM mine GROUP BY ALL HAVING count(*) >= 3
),
crowded AS (
    SELECT stage_id, stage_attempt FROM hosts GROUP BY ALL HAVING count(*) BETWEEN 2 AND {most_hosts}
),
long AS (
    SELECT * FROM mine JOIN crowded USING (stage_id, stage_attempt)
    UNPIVOT (ms FOR resource IN ({resources}))
)
SELECT
    hosts.stage_id,
    hosts.stage_attempt,
    hosts.host,
    replace(long.resource, '_ms', '') AS resource,
    any_value(hosts.tasks) AS tasks,
    median(long.ms) FILTER (long.host = hosts.host) AS median_ms,
    median(long.ms) FILTER (long.host <> hosts.host) AS others_ms,
    median(long.read_bytes) FILTER (long.host = hosts.host) AS median_bytes,
    median(long.read_bytes) FILTER (long.host <> hosts.host) AS others_bytes,
    median(long.duration_ms) FILTER (long.host <> hosts.host) AS others_duration_ms
FROM hosts JOIN long USING (stage_id, stage_attempt)
GROUP BY hosts.stage_id, hosts.stage_attempt, hosts.host, long.resource
ORDER BY ALL
