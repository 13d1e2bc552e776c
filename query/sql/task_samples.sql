-- Samples on tasks with the resource breakdown of their stack; reads of storage over the network count as net.
--
-- one row per sample on a task, with the task's stage and the columns of its stack
--
-- reads   samples, stacks
--         read_tasks(task_id, stage_id)     tasks of the trace
--         remote_reads(task_id)             tasks with input that is not on their own machine's disks (query.attribution.storage)
--
-- The label of storage is `disk`.  Only input may be remote: exchanged and spilled data are on local disks, and a file
-- that the recording shows opened is local.
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
    moved.task_id,
    moved.stack_id,
    moved.kind,
    moved.thread,
    moved.weight_ms,
    stacks.attributed_depth,
    stacks.skipped,
    stacks.operator,
    stacks.pipeline,
    {vector}
FROM moved
JOIN stacks USING (stack_id)
JOIN read_tasks USING (task_id)
