-- What each of the usual what-ifs would bring all runs together, in hours of runtime: of runs that it can be asked,
-- their runtimes now and predicted, and the standard deviation of the sum.  What makes a prediction err alike in all runs
-- adds up as it is; what is each run's own averages out.
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
