-- Streaming queries of a Spark run: their rates, and the mean time of a batch by phase.
--
-- one row per start of a streaming query that reported progress (spark_batches); means are over batches with input:
--   query_id       Spark's id of the query, the same after a restart from its checkpoint
--   run_id         Spark's id of this start
--   name           name that the user gave the query
--   batches        batches with input
--   input_rows     rows that they read
--   rows_per_s     rows that they read, over the time from the first batch to the last; NULL for one batch
--   processed_rows_per_s  rows that they read, over their own time: the rate that they could process
--   interval_ms    time between the starts of two batches; NULL for one batch
--   batch_ms       time of a batch (triggerExecution)
--   latest_offset_ms   of it, querying the sources for new data
--   planning_ms    of it, planning
--   wal_commit_ms  of it, writing the offsets to read to the checkpoint (the write-ahead log)
--   get_batch_ms   of it, creating the sources' data frames
--   add_batch_ms   of it, running the batch and passing it to the sink
--   commit_offsets_ms  of it, writing the processed offsets to the checkpoint
--   state_commit_ms    committing state stores, a sum over partitions (part of add_batch_ms, there on several slots)
--   state_rows     rows of state after the last batch
--   state_bytes    memory of this state
--   backlog_first  backlog of its sources at the first batch, by their own count; NULL if they have none
--   backlog_last   the same at the last batch
WITH batches AS (
    SELECT * FROM spark_batches WHERE add_batch_ms IS NOT NULL AND coalesce(input_rows, 1) > 0
),
commits AS (
    SELECT query_id, run_id, start_ms, sum(commit_ms) AS commit_ms
    FROM spark_stream_states
    GROUP BY ALL
)
SELECT
    query_id,
    run_id,
    any_value(name) AS name,
    count(*) AS batches,
    sum(input_rows) AS input_rows,
    -- The rows of a batch are those that arrived before it began.
    1e3 * (sum(input_rows) - arg_min(input_rows, start_ms)) / nullif(max(start_ms) - min(start_ms), 0) AS rows_per_s,
    1e3 * sum(input_rows) / nullif(sum(trigger_ms), 0) AS processed_rows_per_s,
    (max(start_ms) - min(start_ms)) / nullif(count(*) - 1, 0) AS interval_ms,
    avg(trigger_ms) AS batch_ms,
    avg(latest_offset_ms) AS latest_offset_ms,
    avg(query_planning_ms) AS planning_ms,
    avg(wal_commit_ms) AS wal_commit_ms,
    avg(get_batch_ms) AS get_batch_ms,
    avg(add_batch_ms) AS add_batch_ms,
    avg(commit_offsets_ms) AS commit_offsets_ms,
    avg(commit_ms) AS state_commit_ms,
    arg_max(state_rows, start_ms) AS state_rows,
    arg_max(state_bytes, start_ms) AS state_bytes,
    arg_min(backlog_rows, start_ms) AS backlog_first,
    arg_max(backlog_rows, start_ms) AS backlog_last
FROM batches LEFT JOIN commits USING (query_id, run_id, start_ms)
GROUP BY query_id, run_id
ORDER BY sum(trigger_ms) DESC NULLS LAST, query_id, run_id
