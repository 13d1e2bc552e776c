-- The usual what-ifs of each job's runs (gains), held against later runs: of the same framework, name and plan, with the
-- resources of the scenario and the same input within 5 %.  Of several predictions for a run, the last one counts; of
-- several runs, each counts.  The error is (predicted - actual) / actual.
WITH predictions AS (
    SELECT run_id, framework, name, plan_hash, started_at, input_bytes, unnest(gains, max_depth := 2) FROM runs
),
held AS (
    SELECT
        later.framework,
        later.name,
        later.plan_hash,
        predicted_ms / later.runtime_ms - 1 AS error,
        later.runtime_ms BETWEEN low_ms AND high_ms AS inside
    FROM predictions
    JOIN runs AS later
        ON later.framework = predictions.framework
        AND later.name = predictions.name
        AND later.plan_hash = predictions.plan_hash
        AND later.resources = predictions.expected
        AND later.started_at > predictions.started_at
        AND abs(later.input_bytes - predictions.input_bytes) <= 0.05 * predictions.input_bytes
    WHERE predicted_ms IS NOT NULL
        AND later.measure = 'makespan'
        AND later.complete
        AND later.outcome IN ('succeeded', 'recovered')
        AND later.runtime_ms > 0
    QUALIFY row_number() OVER (
        PARTITION BY later.run_id ORDER BY predictions.started_at DESC, predictions.run_id, setting
    ) = 1
)
SELECT
    name,
    plan_hash,
    framework,
    count(*) AS predictions,
    median(error) AS median_error_ratio,
    median(abs(error)) AS median_absolute_error_ratio,
    avg(inside::INTEGER) AS inside_share
FROM held
GROUP BY ALL
ORDER BY predictions DESC, name, plan_hash
