-- What units waited in: intervals that a recording measured, by what was waited for and in which function.
--
-- one row per group, kind of wait and function:
--   group_id       the group whose units waited
--   kind           park, sleep, wait, enter, socket read, file read …: the recording's word
--   function       the function that decides what the wait was for; where none does, the one nearest the leaf
--   intervals      intervals measured
--   time_ms        unit time in them
--   longest_ms     the longest
--   moved_bytes    bytes moved in them, where they are of input or output
--   <resource>_ms  of the time, on <resource> by the deciding function's shares; 0 where none decides; units knows better, where the framework measured it
SELECT
    units.group_id, samples.kind,
    regexp_replace(stacks.frames[coalesce(stacks.deciding_depth, 0) + 1], ':\d+$', '') AS function,
    count(*) AS intervals, {weight_ms} AS time_ms, max(weight_ms) AS longest_ms, sum(bytes)::BIGINT AS moved_bytes,
    {waited}
FROM samples
JOIN units USING (unit_id)
LEFT JOIN stacks USING (stack_id)
WHERE samples.kind NOT IN ('execution', 'native', 'wall', 'cpu', 'running', 'untimed') AND weight_ms > 0
GROUP BY ALL
