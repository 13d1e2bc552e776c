-- The runtimes of each job in the order of its runs: succeeded runs with the same name, plan and measure.
SELECT
    name,
    plan_hash,
    measure,
    list(runtime_ms ORDER BY started_at, run_id) AS runtimes_ms,
    list(input_bytes ORDER BY started_at, run_id) AS input_bytes,
    list(strftime(started_at, '%Y-%m-%d') ORDER BY started_at, run_id) AS days,
    list(path ORDER BY started_at, run_id) AS paths
FROM runs
WHERE complete AND outcome IN ('succeeded', 'recovered') AND runtime_ms > 0
GROUP BY name, plan_hash, framework, measure
ORDER BY name, plan_hash, measure
