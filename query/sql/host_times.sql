-- How long the units of a group took on each host, by resource: a host slower than its peers stands out.
--
-- parameters  start and end of the scope in ms since application start
--             {resources}, the columns of the units' time by resource, {most_hosts} and {most_pairs}
--
-- one row per group, host and resource, where the group ran at least three units on at least two hosts:
--   median_ms, median_bytes      of the units on the host
--   others_ms, others_bytes      medians of the units on all other hosts
--   others_duration_ms           median of those units' whole durations
--
-- Takes memory by hosts times units, so groups that have more than {most_pairs} of these are host_times_many.sql's.
WITH mine AS (
    SELECT
        group_id, host, finish_ms - launch_ms AS duration_ms,
        coalesce(input_bytes, 0) + coalesce(remote_bytes, 0) + coalesce(local_bytes, 0) AS read_bytes,
        {resources}
    FROM units
    WHERE finish_ms > ? AND launch_ms < ? AND status = 'succeeded' AND host IS NOT NULL
),
hosts AS (
    SELECT group_id, host, count(*) AS units FROM mine GROUP BY ALL HAVING count(*) >= 3
),
crowded AS (
    SELECT group_id FROM hosts GROUP BY ALL HAVING count(*) BETWEEN 2 AND {most_hosts} AND sum(units) * count(*) <= {most_pairs}
),
long AS (
    SELECT * FROM mine JOIN crowded USING (group_id)
    UNPIVOT (ms FOR resource IN ({resources}))
)
SELECT
    hosts.group_id,
    hosts.host,
    replace(long.resource, '_ms', '') AS resource,
    any_value(hosts.units) AS units,
    median(long.ms) FILTER (long.host = hosts.host) AS median_ms,
    median(long.ms) FILTER (long.host <> hosts.host) AS others_ms,
    median(long.read_bytes) FILTER (long.host = hosts.host) AS median_bytes,
    median(long.read_bytes) FILTER (long.host <> hosts.host) AS others_bytes,
    median(long.duration_ms) FILTER (long.host <> hosts.host) AS others_duration_ms
FROM hosts JOIN long USING (group_id)
GROUP BY hosts.group_id, hosts.host, long.resource
ORDER BY ALL
