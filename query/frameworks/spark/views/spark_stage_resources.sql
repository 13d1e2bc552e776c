-- Time of each stage's tasks by resource, and its skew: stage_resources in Spark's terms.
--
-- one row per attempt of a stage that ran:
--   spark_stage_id  Spark's id
--   attempt        attempt of the stage, from 0
--   job_id         first job that needs it
--   sql_id         SQL query of that job
--   name           its name in Spark's own UI
--   tasks          tasks that ran, counting each attempt
--   length_ms      from the launch of its first task to the end of its last
--   task_ms        sum of its tasks' times
--   <resource>_ms  of that, on <resource>
--   other_ms       of that, on no resource, or unknown
--   most           the resource with the most of it, or other
--   median_ms      median length of a task
--   longest_ms     length of the longest
--   skew           the longest over the median; NULL for one task
--   shuffle_read_bytes   read of other stages' output, from this executor and others
--   shuffle_write_bytes  written for other stages
--   input_bytes    read from storage
--   spill_disk_bytes  size on disk of spilled data
--   gc_ms          garbage collection while tasks ran, summed over tasks
--   resource_profile  Spark's id of its resource profile; spark_resource_requests has what it requests
--   usable_slots   slots that its profile lets it use at a time; NULL if these are all of the run
--   barrier        whether its tasks start together
SELECT
    s.spark_stage_id, s.attempt, s.job_id, s.sql_id, g.name, g.tasks AS tasks, g.length_ms, g.task_ms AS task_ms, {all_ms},
    g.most, g.median_ms, g.longest_ms, g.skew,
    coalesce(g.remote_read_bytes, 0) + coalesce(g.local_read_bytes, 0) AS shuffle_read_bytes,
    g.exchange_write_bytes AS shuffle_write_bytes, g.input_bytes, g.spill_disk_bytes, g.gc_ms,
    s.resource_profile, s.usable_slots, s.barrier
FROM stage_resources AS g JOIN spark_stages AS s USING (stage_id)
