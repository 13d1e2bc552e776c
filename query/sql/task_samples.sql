-- Samples on tasks with the vector of their stack; storage that a task reads over the network counts as net.
--
-- one row per sample on a task, with the task's stage and the columns of its stack
--
-- reads   samples, stacks
--         read_tasks(task_id, stage_id, stage_attempt)     tasks as the log gave them
--         remote_reads(task_id)                            tasks whose input is not on their own machine's disks (query.storage)
--
-- The label of storage is `disk`.  Only the reading of input may be elsewhere: shuffle files and spills are on local
-- disks, and a file that the recording saw opened is a local one.
CREATE OR REPLACE TEMP VIEW task_samples AS
WITH moved AS (
    SELECT
        samples.*,
        stacks.operator = 'scan' AND samples.kind NOT IN ('file read', 'file write', 'file force')
        AND task_id IN (SELECT task_id FROM remote_reads) AS is_remote
    FROM samples JOIN stacks USING (stack_id)
    WHERE task_id IS NOT NULL
)
SELECT
    read_tasks.stage_id,
    read_tasks.stage_attempt,
    moved.task_id,
    moved.stack_id,
    moved.kind,
    moved.thread,
    moved.weight_ms,
    stacks.deciding_depth,
    stacks.skipped,
    stacks.operator,
    stacks.pipeline,
    {vector}
FROM moved
JOIN stacks USING (stack_id)
JOIN read_tasks USING (task_id)
