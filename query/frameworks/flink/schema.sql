-- Tables of a Flink job in addition to those of every run, in Flink's own terms.

CREATE TABLE flink_vertices (                 -- one row per job vertex: operators chained into one kind of subtask
    stage_id VARCHAR NOT NULL,                -- of stages
    vertex_id VARCHAR NOT NULL,               -- Flink's id, as in its REST interface and metrics
    parallelism INTEGER NOT NULL,             -- its parallelism in the plan
    description VARCHAR                       -- its operators, as in the plan
);

CREATE TABLE flink_subtasks (                 -- one row per attempt of a subtask; its other columns are in tasks
    task_id BIGINT NOT NULL,                  -- of tasks
    subtask INTEGER NOT NULL,                 -- its number, from 0
    attempt INTEGER NOT NULL,                 -- its attempt, from 0
    state VARCHAR NOT NULL,                   -- Flink's own: FINISHED, CANCELED, FAILED …
    deploying_ms DOUBLE,                      -- in state DEPLOYING
    initializing_ms DOUBLE,                   -- in state INITIALIZING: opening operators, restoring their state
    running_ms DOUBLE,                        -- in state RUNNING
    busy_ms DOUBLE,                           -- summed busy time; wall-clock, so it includes CPU wait; NULL if not measured
    idle_ms DOUBLE,                           -- summed idle time: no input
    backpressured_ms DOUBLE,                  -- summed back-pressured time: no consumer took its rows
    read_bytes BIGINT,                        -- from other subtasks, local or remote
    written_bytes BIGINT,                     -- for other subtasks
    read_records BIGINT,                      -- from other subtasks
    written_records BIGINT                    -- for other subtasks
);

CREATE TABLE flink_series (                   -- one row per subtask and sample of its metrics, once a second
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    stage_id VARCHAR NOT NULL,                -- of stages
    subtask INTEGER NOT NULL,                 -- its number, from 0
    records_in DOUBLE,                        -- sums since its attempt began, until buffers_in_remote …
    records_out DOUBLE,                       -- for other subtasks; for a source, its records
    bytes_in_local DOUBLE,                    -- from subtasks of the same TaskManager
    bytes_in_remote DOUBLE,                   -- from others, over the network
    buffers_in_local DOUBLE,                  -- the same in buffers, which are sent when full or at the buffer timeout
    buffers_in_remote DOUBLE,                 -- … over the network
    bytes_out DOUBLE,                         -- counted when a buffer is full, so it is ahead of the sent bytes
    busy_ms DOUBLE,                           -- summed time with work; wall-clock, so it includes CPU wait
    backpressured_ms DOUBLE,                  -- summed time in which no consumer took its records
    idle_ms DOUBLE,                           -- summed time without input
    busy_per_s DOUBLE,                        -- Flink's own mean of busy time over the last minute, ms per second
    backpressured_per_s DOUBLE,               -- the same of back-pressured time
    input_buffers DOUBLE,                     -- input buffers that wait at that moment
    input_bytes DOUBLE,                       -- … and their bytes, only those from the network
    output_buffers DOUBLE,                    -- output buffers that wait, including partly filled ones
    output_bytes DOUBLE                       -- … and their bytes
);

CREATE TABLE flink_loads (                    -- one row per TaskManager and sample of its metrics
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    worker_id VARCHAR NOT NULL,               -- of workers
    cpu_ns DOUBLE,                            -- CPU time of its process since its start
    gc_ms DOUBLE,                             -- time in garbage collection since its start
    heap_bytes DOUBLE,                        -- heap in use
    managed_bytes DOUBLE,                     -- managed memory in use, such as RocksDB's
    free_segments DOUBLE                      -- unused network buffers
);

CREATE TABLE flink_latencies (                -- one row per operator's subtask and sample of its latency markers
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    source_stage VARCHAR,                     -- of stages: the vertex of the source
    operator_id VARCHAR NOT NULL,             -- Flink's id; that of a vertex is its first operator's
    stage_id VARCHAR,                         -- of stages, if the operator is a vertex's first
    subtask INTEGER,                          -- its number, from 0
    mean_ms DOUBLE,                           -- of the last 128 markers, which bypass user functions
    median_ms DOUBLE,                         -- the same
    p95_ms DOUBLE                             -- the same
);

CREATE TABLE flink_operators (                -- one row per sample of an operator that forwards records and may hold some
    time_ms DOUBLE NOT NULL,                  -- since the job's start
    stage_id VARCHAR NOT NULL,                -- of stages
    operator VARCHAR NOT NULL,                -- its name in Flink's metrics: with _ for spaces, dots, colons and commas
    records_in DOUBLE,                        -- sums since its attempts began, over all subtasks
    records_out DOUBLE                        -- … without records that it still holds, or has dropped
);

CREATE TABLE flink_task_managers (            -- one row per TaskManager that ran when metrics were collected
    worker_id VARCHAR NOT NULL,               -- of workers
    slots DOUBLE,                             -- its slots
    cores DOUBLE,                             -- processors by its JVM
    stated_cores DOUBLE                       -- configured cores; if not configured, its slots
);
