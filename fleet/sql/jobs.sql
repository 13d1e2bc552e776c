-- Jobs (runs of one name and framework) by core-hours and by wasted core-hours: idle slots, and tasks that did not
-- succeed.  The median runtime is NULL for runs that measure latency.
SELECT
    name,
    framework,
    count(*) AS runs,
    sum(core_hours) AS core_hours,
    sum(greatest(core_hours - busy_core_hours, 0)) AS idle_core_hours,
    sum(lost_core_hours) AS lost_core_hours,
    median(runtime_ms) FILTER (measure IN ('makespan', 'step time')) AS median_runtime_ms,
    mode(bottleneck) AS bottleneck,
    count(*) FILTER (outcome = 'failed') AS failed_runs
FROM runs
GROUP BY name, framework
ORDER BY name
