-- Streaming queries of a scope, from their triggers.
-- In:  $start, $end, the scope in ms since the start of the run.
-- Out: one row per start of a streaming query, the one with most time in triggers first.  Rates and times are of
--      triggers with input; the median where a value is of one.
WITH triggers AS (
    SELECT *, add_batch_ms IS NOT NULL AND coalesce(input_rows, 1) > 0 AS worked
    FROM spark_batches
    WHERE start_ms + coalesce(trigger_ms, 0) >= $start AND start_ms <= $end -- a trigger begins before its first job
)
SELECT
    query_id,
    run_id,
    any_value(name) AS name,
    count(*) AS triggers,
    count(*) FILTER (worked) AS batches,
    sum(trigger_ms) FILTER (worked) AS trigger_ms,
    median(trigger_ms) FILTER (worked) AS middle_ms,
    max(trigger_ms) FILTER (worked) AS longest_ms,
    sum(add_batch_ms) FILTER (worked) AS add_batch_ms,
    sum(latest_offset_ms) FILTER (worked) AS latest_offset_ms,
    sum(query_planning_ms) FILTER (worked) AS query_planning_ms,
    sum(wal_commit_ms) FILTER (worked) AS wal_commit_ms,
    sum(get_batch_ms) FILTER (worked) AS get_batch_ms,
    sum(commit_offsets_ms) FILTER (worked) AS commit_offsets_ms,
    median(input_rows_per_s) FILTER (worked) AS input_rate,
    median(processed_rows_per_s) FILTER (worked) AS processed_rate,
    max(state_rows) > 0 AS has_state,
    arg_min(backlog_rows, start_ms) FILTER (worked AND backlog_rows IS NOT NULL) AS waiting_first,
    arg_max(backlog_rows, start_ms) FILTER (worked AND backlog_rows IS NOT NULL) AS waiting_last,
    -- From the first batch's start to the last one's, so without the last one's own time.
    (max(start_ms) FILTER (worked) - min(start_ms) FILTER (worked)) / nullif(count(*) FILTER (worked) - 1, 0) AS interval_ms,
    (sum(trigger_ms) FILTER (worked) - arg_max(trigger_ms, start_ms) FILTER (worked))
        / nullif(max(start_ms) FILTER (worked) - min(start_ms) FILTER (worked), 0) AS busy
FROM triggers
GROUP BY query_id, run_id
ORDER BY sum(trigger_ms) DESC NULLS LAST, query_id, run_id
