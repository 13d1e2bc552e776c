-- Metrics of a run that budgets may limit; NULL if the log does not record one.
-- one row per run
--
-- spill, exchanged, input, output  bytes of all attempts of tasks; spill is the size on disk, exchanged what tasks wrote
--                                  for other tasks
-- memory                           bytes of the task with the most data in memory
-- gc                               garbage collection, as a share of the time of tasks
-- failures                         attempts of tasks that failed
-- task_time                        time of all attempts of tasks, ms
SELECT
    sum(spill_disk_bytes) AS spill,
    sum(exchange_write_bytes) AS exchanged,
    sum(input_bytes) AS input,
    sum(output_bytes) AS output,
    max(peak_memory_bytes) AS memory,
    sum(gc_ms) / nullif(sum(finish_ms - launch_ms) FILTER (gc_ms IS NOT NULL), 0) AS gc,
    count(*) FILTER (status = 'failed') AS failures,
    sum(finish_ms - launch_ms) AS task_time
FROM tasks
