-- By what the groups of a run read their input: operators of their plans that name a place outside the run.
--
-- one row per group:
--   group_id
--   what      the same as in groups
--   reads     the first two words of the operator's name, in small letters, and what its files' names end in where that
--             is a codec; of several such operators all; NULL where the plan names none
WITH readers AS (
    SELECT DISTINCT
        group_id,
        trim(concat(
            lower(array_to_string(string_split(name, ' ')[:2], ' ')), ' ',
            regexp_extract(location, '\.(gz|bz2|zst|zstd|lz4|snappy|deflate)\b', 1)
        )) AS reader
    FROM operators JOIN operator_groups USING (scope_id, node_id)
    WHERE location IS NOT NULL
)
SELECT groups.group_id, any_value(coalesce(what, '')) AS what, string_agg(reader, ' + ' ORDER BY reader) AS reads
FROM groups LEFT JOIN readers USING (group_id)
GROUP BY groups.group_id
