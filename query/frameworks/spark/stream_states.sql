-- The operators with state of the streaming queries of a scope, over batches with input, the most time in commits first.
-- In:  $start, $end, the scope in ms since the start of the run.
-- Out: query, operator (its name), batches, partitions, rows_first, rows_last and bytes (of its state), and per batch
--      the mean batch_ms, updates_ms and commit_ms, the latter two as sums over partitions; in_rocksdb.
WITH batches AS (
    SELECT query_id, run_id, start_ms, coalesce(name, query_id) AS query, trigger_ms
    FROM spark_batches
    WHERE add_batch_ms IS NOT NULL AND input_rows > 0
        AND start_ms + coalesce(trigger_ms, 0) >= $start AND start_ms <= $end
)
SELECT
    any_value(query) AS query,
    coalesce(any_value(name), operator::VARCHAR) AS operator,
    count(*) AS batches,
    max(partitions) AS partitions,
    arg_min(rows, start_ms) AS rows_first,
    arg_max(rows, start_ms) AS rows_last,
    arg_max(bytes, start_ms) AS bytes,
    avg(trigger_ms) AS batch_ms,
    avg(updates_ms) AS updates_ms,
    avg(commit_ms) AS commit_ms,
    coalesce(bool_or(rocksdb_flush_ms IS NOT NULL), false) AS in_rocksdb
FROM batches JOIN spark_stream_states USING (query_id, run_id, start_ms)
GROUP BY query_id, run_id, operator
HAVING count(commit_ms) > 0 AND max(partitions) > 0
ORDER BY sum(commit_ms) DESC, query_id, run_id, operator
