-- The functions with the most sampled task time; each sample's time is attributed to one function.
--
-- one row per attributed function and stage:
--   function       qualified name, as in stacks
--   index_name     the index it is in
--   symbol         the function there
--   stage_id       the stage of its tasks
--   samples        samples attributed to it
--   time_ms        task time that they represent
--   share          of all sampled task time, 0 to 1
--   label          the resource with the most of it
--   <resource>     share of the function's time on <resource>, 0 to 1
WITH decided AS (
    SELECT
        arg_min(name, (length(name), name)) AS function, index_name, symbol, stage_id,
        count(*) AS samples, {weight_ms} AS time_ms, {weighted}
    FROM samples
    JOIN (SELECT *, regexp_replace(frames[attributed_depth + 1], ':\d+$', '') AS name FROM stacks) USING (stack_id)
    JOIN tasks USING (task_id)
    WHERE attributed_depth IS NOT NULL AND weight_ms > 0
    GROUP BY index_name, symbol, stage_id
),
sampled AS (SELECT sum(weight_ms) AS all_ms FROM samples WHERE task_id IS NOT NULL AND weight_ms > 0)
SELECT
    function, index_name, symbol, stage_id, samples, time_ms, time_ms / nullif(all_ms, 0) AS share,
    {label} AS label, {resources}
FROM decided, sampled
