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
    location VARCHAR                          -- storage that it reads outside of SQL: hdfs://namenode/data
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
