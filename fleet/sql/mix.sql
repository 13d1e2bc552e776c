-- Task time of each day by resource, in core-hours; days without task time are left out.
SELECT
    day,
    count(DISTINCT run_id) AS runs,
    part.key AS resource,
    sum(part.value) / 3600000.0 AS core_hours
FROM (SELECT day, run_id, unnest(map_entries(task_ms)) AS part FROM runs)
GROUP BY ALL
HAVING sum(part.value) > 0
ORDER BY day, resource
