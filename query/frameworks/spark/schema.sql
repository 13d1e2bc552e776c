-- What a run of Spark has beside the tables that every run has, in Spark's own words.

CREATE TABLE spark_jobs (                     -- one row per job
    job_id INTEGER NOT NULL,                  -- Spark's id
    name VARCHAR,                             -- description or call site
    sql_id BIGINT,                            -- the SQL query it belongs to
    job_group VARCHAR,                        -- job group, e.g. one streaming query
    submit_ms DOUBLE NOT NULL,                -- submitted
    end_ms DOUBLE,                            -- ended; NULL where the log has no end
    status VARCHAR NOT NULL,                  -- succeeded, failed or unfinished
    stage_ids INTEGER[] NOT NULL              -- the stages it needs, also those skipped
);

CREATE TABLE spark_stages (                   -- one row per attempt of a stage; the rest of it is in groups
    group_id VARCHAR NOT NULL,                -- of groups
    stage_id INTEGER NOT NULL,                -- Spark's id
    attempt INTEGER NOT NULL,                 -- attempt of the stage, from 0
    job_id INTEGER,                           -- first job that needs it
    sql_id BIGINT,                            -- SQL query of that job
    parents INTEGER[] NOT NULL,               -- stages whose output it reads
    resource_profile INTEGER,                 -- Spark's resource profile id
    accumulators BIGINT[],                    -- ids of metrics its tasks updated, which join it with operators
    location VARCHAR                          -- storage that it reads outside of SQL: hdfs://namenode/data; or memory:/
);

CREATE TABLE spark_tasks (                    -- one row per task attempt; the rest of it is in units
    unit_id BIGINT NOT NULL,                  -- Spark's task id, as in units
    locality VARCHAR,                         -- PROCESS_LOCAL, NODE_LOCAL, RACK_LOCAL, ANY, NO_PREF
    speculative BOOLEAN,                      -- whether it is a speculative copy
    deserialize_ms DOUBLE,                    -- unpacking the task
    deserialize_cpu_ms DOUBLE,                -- CPU time of that
    run_cpu_ms DOUBLE,                        -- CPU time of the task's thread while it ran the task's code
    result_serialize_ms DOUBLE,               -- packing the result
    getting_result_ms DOUBLE,                 -- the driver fetching the result
    shuffle_write_ms DOUBLE,                  -- blocked in writing shuffle output
    result_bytes BIGINT                       -- size of the result sent to the driver
);

CREATE TABLE spark_batches (                  -- one row per trigger of a streaming query that reported progress; without rows where it found nothing to do
    query_id VARCHAR NOT NULL,                -- Spark's id of the streaming query, the same after a restart from its checkpoint
    run_id VARCHAR,                           -- Spark's id of this start of it, which its jobs have as their group
    name VARCHAR,                             -- name the user gave the query
    sink VARCHAR,                             -- where it writes to
    batch_id BIGINT NOT NULL,                 -- number of the batch, from 0; that of the next one where there was nothing to do
    start_ms DOUBLE NOT NULL,                 -- the trigger began
    input_rows DOUBLE,                        -- rows read from all sources
    input_rows_per_s DOUBLE,                  -- rows read by the time since the trigger before
    processed_rows_per_s DOUBLE,              -- rows read by the time of this trigger: what it could keep up with
    trigger_ms DOUBLE,                        -- the whole trigger (triggerExecution); the parts below add up to nearly all of it
    latest_offset_ms DOUBLE,                  -- asking the sources how far they are (latestOffset; getOffset before Spark 3)
    query_planning_ms DOUBLE,                 -- planning the batch (queryPlanning)
    wal_commit_ms DOUBLE,                     -- writing to the checkpoint what the batch will read (walCommit)
    get_batch_ms DOUBLE,                      -- making the sources' data frames (getBatch)
    add_batch_ms DOUBLE,                      -- running the batch and handing it to the sink (addBatch); NULL where there was nothing to do
    commit_offsets_ms DOUBLE,                 -- writing to the checkpoint that the batch is done (commitOffsets)
    waiting DOUBLE,                           -- what was left at the sources, as they count it: offsets behind the latest, files outstanding
    state_rows DOUBLE,                        -- rows that its operators keep between batches
    state_bytes DOUBLE                        -- memory of them
);

CREATE TABLE spark_driver_metrics (           -- what the driver itself added to a metric of an operator; what tasks added is in operator_metrics
    scope_id VARCHAR NOT NULL,                -- SQL query
    node_id INTEGER NOT NULL,                 -- of operators
    name VARCHAR NOT NULL,                    -- number of files read, size of files read, time to build, ...
    unit VARCHAR NOT NULL,                    -- ms, bytes or count
    value DOUBLE NOT NULL                     -- the amount
);
