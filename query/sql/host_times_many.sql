-- How long the units of a large group took on each host, by resource: a host slower than its peers stands out.
--
-- parameters  start and end of the scope in ms since application start
--             {resources}, the columns of the units' time by resource, {medians} of them, {most_hosts} and {most_pairs}
--
-- one row per group, host and resource, where the group ran at least three units on at least two hosts:
--   median_ms, median_bytes      of the units on the host
--   others_ms, others_bytes      medians over the other hosts of their own medians
--   others_duration_ms           the same of those units' whole durations
--
-- Each host is one row before they are held against each other, for groups of more than {most_pairs} hosts times units;
-- host_times.sql holds hosts against each other's units.
WITH mine AS (
    SELECT
        group_id, host, finish_ms - launch_ms AS duration_ms,
        coalesce(input_bytes, 0) + coalesce(remote_bytes, 0) + coalesce(local_bytes, 0) AS read_bytes,
        {resources}
    FROM units
    WHERE finish_ms > ? AND launch_ms < ? AND status = 'succeeded' AND host IS NOT NULL
),
crowded AS (
    SELECT group_id
    FROM (SELECT group_id, host, count(*) AS units FROM mine GROUP BY ALL HAVING count(*) >= 3)
    GROUP BY ALL
    HAVING count(*) BETWEEN 2 AND {most_hosts} AND sum(units) * count(*) > {most_pairs}
),
-- Of the large groups alone, for medians of all the others would be worked out for nothing.
hosts AS (
    SELECT
        group_id, host, count(*) AS units,
        median(duration_ms) AS duration_ms, median(read_bytes) AS read_bytes,
        {medians}
    FROM mine JOIN crowded USING (group_id)
    GROUP BY group_id, host
    HAVING count(*) >= 3
),
long AS (
    SELECT * FROM hosts
    UNPIVOT (ms FOR resource IN ({resources}))
)
SELECT
    one.group_id,
    one.host,
    replace(one.resource, '_ms', '') AS resource,
    any_value(one.units) AS units,
    any_value(one.ms) AS median_ms,
    median(other.ms) AS others_ms,
    any_value(one.read_bytes) AS median_bytes,
    median(other.read_bytes) AS others_bytes,
    median(other.duration_ms) AS others_duration_ms
FROM long AS one JOIN long AS other
    ON other.group_id = one.group_id AND other.resource = one.resource AND other.host <> one.host
GROUP BY one.group_id, one.host, one.resource
ORDER BY ALL
