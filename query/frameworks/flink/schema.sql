-- What a job of Flink has beside the tables that every run has, in Flink's own words.

CREATE TABLE flink_vertices (                 -- one row per job vertex: operators chained into one kind of subtask
    group_id VARCHAR NOT NULL,                -- of groups
    vertex_id VARCHAR NOT NULL,               -- Flink's id, which its REST interface and metrics go by
    parallelism INTEGER NOT NULL,             -- subtasks that it was to have
    description VARCHAR                       -- its operators, as the plan has them
);

CREATE TABLE flink_subtasks (                 -- one row per attempt of a subtask; the rest of it is in units
    unit_id BIGINT NOT NULL,                  -- of units
    subtask INTEGER NOT NULL,                 -- its number, from 0
    attempt INTEGER NOT NULL,                 -- its attempt, from 0
    state VARCHAR NOT NULL,                   -- Flink's own: FINISHED, CANCELED, FAILED …
    deploying_ms DOUBLE,                      -- in state DEPLOYING
    initializing_ms DOUBLE,                   -- in state INITIALIZING: opening operators, restoring their state
    running_ms DOUBLE,                        -- in state RUNNING
    busy_ms DOUBLE,                           -- summed busy time; wall-clock, so it holds time without a CPU; NULL where not measured
    idle_ms DOUBLE,                           -- summed idle time: no rows to take
    backpressured_ms DOUBLE,                  -- summed back-pressured time: nobody took its rows
    read_bytes BIGINT,                        -- from other subtasks, wherever they ran
    written_bytes BIGINT,                     -- for other subtasks
    read_records BIGINT,                      -- from other subtasks
    written_records BIGINT                    -- for other subtasks
);
