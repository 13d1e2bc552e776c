-- The CPU time of units whose log has none, by what their recording measured of their threads.
--
-- parameters  $least, the share of a unit's time that measurements must cover to tell of the rest
--
-- one row per unit is changed: on_cpu_ms, in ms, where it is NULL and its threads were measured for long enough.
-- Measurements are of intervals, which seldom reach both ends of a unit: what they did not see counts at their mean.
UPDATE units SET on_cpu_ms = least(finish_ms - launch_ms, (finish_ms - launch_ms) * found.cpu_ms / found.covered_ms)
FROM (
    SELECT
        unit_id,
        sum(thread_loads.cpu_ms) AS cpu_ms,
        max(end_ms) - min(start_ms) AS covered_ms  -- a unit may have several threads, each with its measurements
    FROM thread_loads
    WHERE unit_id IS NOT NULL
    GROUP BY ALL
) AS found
WHERE units.unit_id = found.unit_id AND on_cpu_ms IS NULL AND covered_ms >= $least * (finish_ms - launch_ms)
