-- Findings in more than one run: the kind, its number of runs and jobs, and the upper bound of its cost, in hours of
-- runtime and as a share of the runtime of those runs; with the sentence of the run with the highest cost.  Runs that
-- measure latency have no runtime, so their findings cost no hours.
WITH costly AS (
    SELECT
        kind,
        run_id,
        sum(cost_ms) AS cost_ms,
        arg_max(basis, findings.cost_ms) AS basis,
        arg_max(text, findings.cost_ms) AS text,
        arg_max(advice, findings.cost_ms) AS advice
    FROM findings
    WHERE findings.cost_ms > 0
    GROUP BY kind, run_id
)
SELECT
    kind,
    count(*) AS runs,
    count(DISTINCT runs.name) AS jobs,
    sum(cost_ms) / 3600000.0 AS cost_hours,
    sum(cost_ms) / sum(runtime_ms) AS share,
    arg_max(basis, cost_ms) AS basis,
    arg_max(text, cost_ms) AS text,
    arg_max(advice, cost_ms) AS advice,
    arg_max(runs.path, cost_ms) AS path
FROM costly JOIN runs USING (run_id)
WHERE measure IN ('makespan', 'step time')
GROUP BY kind
HAVING count(*) > 1
ORDER BY cost_hours DESC, kind
