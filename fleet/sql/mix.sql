-- What units of each day spent their time on, core-hours by resource; days with the time of no unit are left out.
SELECT
    day,
    count(DISTINCT run_id) AS runs,
    part.key AS resource,
    sum(part.value) / 3600000.0 AS core_hours
FROM (SELECT day, run_id, unnest(map_entries(unit_ms)) AS part FROM runs)
GROUP BY ALL
HAVING sum(part.value) > 0
ORDER BY day, resource
