-- The functions of stages in memory profiles of Python workers, that which raised a worker's memory most first.
-- In:  ?, ids of stages.
-- Out: one row per stage and function: stage_id, function, file, the line that raised the memory most, calls, the mean
--      memory at the function's start and at the line after which it was highest, the mean increase by that line, bytes.
SELECT
    stage_id,
    function,
    file,
    arg_max(line, grown_bytes) AS line,
    any_value(calls) AS calls,
    arg_min(memory_bytes, line) AS start_bytes,
    max(memory_bytes) AS most_bytes,
    max(grown_bytes) AS grown_bytes
FROM spark_python_memory
WHERE list_contains(?, stage_id)
GROUP BY stage_id, function, file, origin
ORDER BY most_bytes - start_bytes DESC, stage_id, function
