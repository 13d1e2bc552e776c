-- The CPU time of units whose log has none, by what their recording measured of their thread.
--
-- parameters  $least, the share of a unit's time that measurements must cover to tell of the rest
--
-- changes units.on_cpu_ms where it is NULL.  A measurement is of an interval, and those of a unit seldom reach its
-- both ends: the share that they found counts for what they did not see.
UPDATE units SET on_cpu_ms = least(finish_ms - launch_ms, (finish_ms - launch_ms) * found.cpu_ms / found.covered_ms)
FROM (
    SELECT
        unit_id,
        sum(thread_loads.cpu_ms) AS cpu_ms,
        sum(end_ms - start_ms) AS covered_ms
    FROM thread_loads
    WHERE unit_id IS NOT NULL
    GROUP BY ALL
) AS found
WHERE units.unit_id = found.unit_id AND on_cpu_ms IS NULL AND covered_ms >= $least * (finish_ms - launch_ms)
