-- Files that the queries of a run read and wrote, as counted by the driver.
-- In:  nothing.
-- Out: one row per operator of a query that read or wrote files, the one with most files first.
SELECT
    scope_id,
    node_id,
    -- The second names are those of Iceberg.
    max(value) FILTER (name IN ('number of files read', 'number of result data files')) AS read_files,
    max(value) FILTER (name IN ('size of files read', 'total data file size (bytes)')) AS read_bytes,
    max(value) FILTER (name = 'number of written files') AS written_files,
    max(value) FILTER (name = 'written output') AS written_bytes,
    max(value) FILTER (name = 'number of dynamic part') AS parts
FROM spark_driver_metrics
GROUP BY ALL
HAVING coalesce(read_files, written_files) > 0
ORDER BY coalesce(read_files, written_files) DESC, scope_id, node_id
