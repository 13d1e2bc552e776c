-- The functions that decided most of the time sampled in units, and what they called that most of it was spent in.
--
-- parameters  start and end of the scope in ms since application start, most rows wanted
--             {mixed}, each resource's share of the vector, weighted by time; {vector}, the resources
--
-- one row per function, most time first:
--   function     its qualified name with the line of the deciding frame left out; of several, for a closure counts for
--                the function that it is written in, the shortest
--   index_name   the index it is in
--   time_ms      unit time its samples stand for
--   callee       of the functions it called, nearest the leaf and neither the platform's own nor generated, the one
--                with the most time; NULL where it called none
--   callee_ms    unit time of that
--   (resources)  the vector of its stacks, one column per resource
--
-- Samples are added up before they meet their stacks, for there are many times as many.
WITH timed AS (
    SELECT stack_id, sum(weight_ms) AS weight_ms
    FROM samples
    WHERE unit_id IS NOT NULL AND weight_ms > 0 AND time_ms BETWEEN ? AND ?
    GROUP BY stack_id
),
sampled AS (
    SELECT
        symbol,
        regexp_replace(frames[deciding_depth + 1], ':\d+$', '') AS function,
        regexp_replace(
            [
                frame FOR frame IN frames[:deciding_depth]
                IF NOT regexp_matches(frame, '^(java|javax|jdk|sun|com\.sun|scala)\.|GeneratedClass|\$\$Lambda|LambdaForm')
            ][1],
            ':\d+$', ''
        ) AS callee,
        weight_ms,
        index_name,
        {vector}
    FROM timed JOIN stacks USING (stack_id)
    WHERE deciding_depth IS NOT NULL
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
    round(sum(weight_ms), 3) AS time_ms,  -- what the order of a sum changes is not to order functions
    any_value(most.callee) AS callee,
    any_value(most.callee_ms) AS callee_ms,
    {mixed}
FROM sampled LEFT JOIN most USING (symbol, index_name)
GROUP BY symbol, index_name
ORDER BY time_ms DESC, function, index_name, symbol
LIMIT ?
