-- The functions that decided most of the time sampled in tasks.
--
-- parameters  start and end of the scope in ms since application start, most rows wanted
--
-- one row per function, most time first:
--   function     its qualified name with the line of the deciding frame left out
--   index_name   the index it is in
--   time_ms      task time its samples stand for
--   (resources)  the vector of its stacks, one column per resource
SELECT
    regexp_replace(any_value(frames[deciding_depth + 1]), ':\d+$', '') AS function,
    index_name,
    sum(weight_ms) AS time_ms,
    sum(
        COLUMNS(
            stacks.* EXCLUDE (
                stack_id, frames, truncated, deciding_depth, index_name, symbol, skipped, operator, pipeline
            )
        ) * weight_ms
    ) / sum(weight_ms)
FROM samples JOIN stacks USING (stack_id)
WHERE task_id IS NOT NULL AND deciding_depth IS NOT NULL AND weight_ms > 0 AND time_ms BETWEEN ? AND ?
GROUP BY symbol, index_name
ORDER BY time_ms DESC, function
LIMIT ?
