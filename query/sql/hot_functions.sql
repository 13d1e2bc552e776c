-- The functions with the most attributed time of samples in tasks, and the callees with most of that time.
--
-- parameters  start and end of the scope in ms since application start, maximum rows
--             {mixed}, each resource's share of the breakdown, weighted by time; {vector}, the resources
--
-- one row per function, most time first:
--   function     its qualified name without the line of the attributed frame; of several the shortest, because a closure
--                counts for its enclosing function
--   index_name   its index
--   time_ms      task time of its samples
--   callee       the callee with the most time, of those nearest the leaf that are neither the platform's own nor
--                generated; NULL if it called none
--   callee_ms    task time of the callee
--   (resources)  the resource breakdown of its stacks, one column per resource
--
-- Samples are summed before the join with stacks, because there are many times as many.
WITH timed AS (
    SELECT stack_id, sum(weight_ms) AS weight_ms
    FROM samples
    WHERE task_id IS NOT NULL AND weight_ms > 0 AND time_ms BETWEEN ? AND ?
    GROUP BY stack_id
),
sampled AS (
    SELECT
        symbol,
        regexp_replace(frames[attributed_depth + 1], ':\d+$', '') AS function,
        regexp_replace(
            [
                frame FOR frame IN frames[:attributed_depth]
                IF NOT regexp_matches(frame, '^(java|javax|jdk|sun|com\.sun|scala)\.|GeneratedClass|\$\$Lambda|LambdaForm')
            ][1],
            ':\d+$', ''
        ) AS callee,
        weight_ms,
        index_name,
        {vector}
    FROM timed JOIN stacks USING (stack_id)
    WHERE attributed_depth IS NOT NULL
),
called AS (
    SELECT symbol, index_name, callee, round(sum(weight_ms), 3) AS callee_ms
    FROM sampled
    WHERE callee IS NOT NULL
    GROUP BY ALL
),
most AS (
    SELECT symbol, index_name, arg_min(callee, (-callee_ms, callee)) AS callee, max(callee_ms) AS callee_ms
    FROM called
    GROUP BY ALL
)
SELECT
    arg_min(function, (length(function), function)) AS function,
    index_name,
    round(sum(weight_ms), 3) AS time_ms,  -- rounded: the order of summation must not matter
    any_value(most.callee) AS callee,
    any_value(most.callee_ms) AS callee_ms,
    {mixed}
FROM sampled LEFT JOIN most USING (symbol, index_name)
GROUP BY symbol, index_name
ORDER BY time_ms DESC, function, index_name, symbol
LIMIT ?
