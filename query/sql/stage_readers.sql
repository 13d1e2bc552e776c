-- The operators that read the input of each stage: those of its plan with a location outside the run.
--
-- one row per stage:
--   stage_id
--   io_kinds  as in stages
--   reads     the first two words of the operator's name, in lower case, and the suffix of its files' names if that is a
--             codec; for several such operators all; NULL if the plan has none
WITH readers AS (
    SELECT DISTINCT
        stage_id,
        trim(concat(
            lower(array_to_string(string_split(name, ' ')[:2], ' ')), ' ',
            regexp_extract(location, '\.(gz|bz2|zst|zstd|lz4|snappy|deflate)\b', 1)
        )) AS reader
    FROM operators JOIN operator_stages USING (scope_id, node_id)
    WHERE location IS NOT NULL
)
SELECT stages.stage_id, any_value(coalesce(io_kinds, '')) AS io_kinds, string_agg(reader, ' + ' ORDER BY reader) AS reads
FROM stages LEFT JOIN readers USING (stage_id)
GROUP BY stages.stage_id
