-- MERGE, UPDATE and DELETE of Delta tables, by the metrics of their commands.
--
-- one row per command:
--   scope_id        its SQL query
--   operation       merge, update or delete
--   table_name      the table, if a query of the command scanned it
--   whole_ms        the whole command
--   scan_ms         of that, finding the files with rows that match
--   rewrite_ms      of that, rewriting those files
--   files           files of the table
--   files_scanned   of these, files that statistics and partitions did not exclude
--   files_removed   of these, files that were replaced
--   files_added     files that replace them, or are new
--   deletion_vectors   deletion vectors that were written instead of files
WITH commands AS (
    SELECT scope_id, node_id, lower(regexp_extract(name, '^Execute (Merge|Update|Delete)', 1)) AS operation
    FROM operators
    WHERE regexp_matches(name, '^Execute (Merge|Update|Delete)\w*Command')
),
within AS (
    SELECT p.part_id AS scope_id, p.scope_id AS command
    FROM scope_parts AS p JOIN (SELECT DISTINCT scope_id FROM commands) AS c ON c.scope_id = p.scope_id
),
scanned AS (
    SELECT w.command, max(regexp_extract(o.name, '^Scan \S+ (.+)$', 1)) AS table_name
    FROM within AS w JOIN operators AS o USING (scope_id)
    WHERE starts_with(o.location, 'Tahoe') OR starts_with(o.location, 'PreparedDelta')
    GROUP BY w.command
),
amounts AS (
    SELECT
        scope_id, node_id,
        max(value) FILTER (name = 'time taken to execute the entire operation') AS whole_ms,
        max(value) FILTER (name = 'time taken to scan the files for matches') AS scan_ms,
        max(value) FILTER (name = 'time taken to rewrite the matched files') AS rewrite_ms,
        max(value) FILTER (regexp_matches(name, '^number of (target )?files before skipping$')) AS files,
        max(value) FILTER (regexp_matches(name, '^number of (target )?files after skipping$')) AS files_scanned,
        max(value) FILTER (starts_with(name, 'number of files removed')) AS files_removed,
        max(value) FILTER (starts_with(name, 'number of files added')) AS files_added,
        max(value) FILTER (name = 'number of deletion vectors added') AS deletion_vectors
    FROM spark_driver_metrics
    GROUP BY scope_id, node_id
)
SELECT
    c.scope_id, c.operation, nullif(t.table_name, '') AS table_name, a.whole_ms, a.scan_ms, a.rewrite_ms,
    a.files::BIGINT AS files, a.files_scanned::BIGINT AS files_scanned,
    coalesce(a.files_removed, 0)::BIGINT AS files_removed, coalesce(a.files_added, 0)::BIGINT AS files_added,
    coalesce(a.deletion_vectors, 0)::BIGINT AS deletion_vectors
FROM commands AS c
JOIN amounts AS a USING (scope_id, node_id)
LEFT JOIN scanned AS t ON t.command = c.scope_id
WHERE a.whole_ms IS NOT NULL
ORDER BY a.whole_ms DESC, c.scope_id
