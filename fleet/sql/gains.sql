-- The total gain of each usual what-if over all runs, in hours of runtime: for the runs that it applies to, their
-- recorded and predicted runtimes, and the standard deviation of the sum.  Errors that all runs share add up; errors of
-- single runs average out.
WITH asked AS (
    SELECT run_id, runtime_ms / 3600000.0 AS hours, workers, core_hours, unnest(gains, max_depth := 2) FROM runs
)
SELECT
    any_value(question) AS question,
    setting,
    count(predicted_ms) AS runs,
    count(*) - count(predicted_ms) AS refused_runs,
    coalesce(sum(hours) FILTER (predicted_ms IS NOT NULL), 0) AS hours_now,
    coalesce(sum(predicted_ms) / 3600000.0, 0) AS hours_then,
    coalesce(sum(predicted_ms * sqrt(common_variance)) / 3600000.0, 0) AS common_deviation,
    coalesce(sqrt(sum(pow(predicted_ms / 3600000.0, 2) * own_variance)), 0) AS own_deviation,
    coalesce(sum(core_hours * predicted_ms / (hours * 3600000.0)) FILTER (predicted_ms IS NOT NULL AND hours > 0), 0)
        AS core_hours_then,
    coalesce(sum(core_hours) FILTER (predicted_ms IS NOT NULL), 0) AS core_hours_now
FROM asked
GROUP BY setting
ORDER BY setting
