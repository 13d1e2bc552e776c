-- Files that the queries of a run read and wrote, as counted by the driver.
-- In:  nothing.
-- Out: one row per operator of a query that read or wrote files, the one with most files first.
SELECT
    scope_id,
    node_id,
    max(value) FILTER (spark_driver_metrics.name = 'number of files read') AS read_files,
    max(value) FILTER (spark_driver_metrics.name = 'size of files read') AS read_bytes,
    max(value) FILTER (spark_driver_metrics.name = 'number of written files') AS written_files,
    max(value) FILTER (spark_driver_metrics.name = 'written output') AS written_bytes,
    max(value) FILTER (spark_driver_metrics.name = 'number of dynamic part') AS parts
FROM spark_driver_metrics
GROUP BY ALL
HAVING coalesce(read_files, written_files) > 0
ORDER BY coalesce(read_files, written_files) DESC, scope_id, node_id
