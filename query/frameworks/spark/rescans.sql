-- Scans of storage, and the stages that ran them.
-- In:  nothing.
-- Out: one row per scan of a query's plan and stage, in order of the plan.  Stages without a plan that read storage
--      have a row without an operator; `location` is what they read.
SELECT operator_stages.stage_id, operators.scope_id, operators.name, operators.detail, operators.location
FROM operators JOIN operator_stages USING (scope_id, node_id)
WHERE regexp_matches(operators.name, '^(Scan |BatchScan|FileScan|HiveTableScan|GpuScan )')
UNION ALL
SELECT stage_id, 'job:' || job_id, NULL, NULL, location
FROM spark_stages
WHERE sql_id IS NULL AND job_id IS NOT NULL AND location IS NOT NULL
ORDER BY ALL
