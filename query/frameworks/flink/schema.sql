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

CREATE TABLE flink_series (                   -- one row per subtask and look at its metrics, once a second
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    group_id VARCHAR NOT NULL,                -- of groups
    subtask INTEGER NOT NULL,                 -- its number, from 0
    records_in DOUBLE,                        -- sums since its attempt began, until buffers_in_remote …
    records_out DOUBLE,                       -- for other subtasks; of a source, what it made
    bytes_in_local DOUBLE,                    -- from subtasks of the same TaskManager
    bytes_in_remote DOUBLE,                   -- from others, over the network
    buffers_in_local DOUBLE,                  -- the same in buffers, which are sent when full or when they are due
    buffers_in_remote DOUBLE,                 -- … over the network
    bytes_out DOUBLE,                         -- counted when a buffer is full, so it runs ahead of what was sent
    busy_ms DOUBLE,                           -- summed time with work; wall-clock, so it holds waiting for a CPU
    backpressured_ms DOUBLE,                  -- summed time in which nobody took its records
    idle_ms DOUBLE,                           -- summed time without records to take
    busy_per_s DOUBLE,                        -- Flink's own mean of busy time over the last minute, ms per second
    backpressured_per_s DOUBLE,               -- the same of back-pressured time
    input_buffers DOUBLE,                     -- buffers that wait for it at that moment
    input_bytes DOUBLE,                       -- … and their bytes, those from over the network
    output_buffers DOUBLE,                    -- buffers that it has made and nobody has taken, those that fill among them
    output_bytes DOUBLE                       -- … and their bytes
);

CREATE TABLE flink_loads (                    -- one row per TaskManager and look at its metrics
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    worker_id VARCHAR NOT NULL,               -- of workers
    cpu_ns DOUBLE,                            -- CPU time of its process since that began
    gc_ms DOUBLE,                             -- time of its collections of garbage since then
    heap_bytes DOUBLE,                        -- heap in use
    managed_bytes DOUBLE,                     -- managed memory in use, such as RocksDB's
    free_segments DOUBLE                      -- network buffers that nobody uses
);

CREATE TABLE flink_latencies (                -- one row per operator's subtask and look at its latency markers
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    source_group VARCHAR,                     -- of groups: the vertex of the source
    operator_id VARCHAR NOT NULL,             -- Flink's id; that of a vertex is its first operator's
    group_id VARCHAR,                         -- of groups, where the operator is a vertex's first
    subtask INTEGER,                          -- its number, from 0
    mean_ms DOUBLE,                           -- of the last 128 markers, which pass by user functions
    median_ms DOUBLE,                         -- the same
    p95_ms DOUBLE                             -- the same
);

CREATE TABLE flink_operators (                -- one row per look at an operator that lets records through and may hold some
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    group_id VARCHAR NOT NULL,                -- of groups
    operator VARCHAR NOT NULL,                -- as Flink's metrics name it: with _ for spaces, dots, colons and commas
    records_in DOUBLE,                        -- sums since its attempts began, over all subtasks
    records_out DOUBLE                        -- … without those that it still holds, or has dropped
);

CREATE TABLE flink_task_managers (            -- one row per TaskManager that was there when metrics were collected
    worker_id VARCHAR NOT NULL,               -- of workers
    slots DOUBLE,                             -- its slots
    cores DOUBLE,                             -- processors that its JVM saw
    stated_cores DOUBLE                       -- what Flink was told that it has; as many as slots where it was not told
);
