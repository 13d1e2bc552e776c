-- The tables of a fleet.  Each is a folder of Parquet files, partitioned by the day on which a run began
-- (runs/day=2026-11-22/…), which DuckDB and similar tools open.  Times of a run are in ms since its start.  The terms are
-- generic: a framework may have other terms for a stage, a task or a slot.

CREATE TABLE logs (                           -- one row per log that was inspected, readable or not
    log VARCHAR NOT NULL,                     -- SHA-256 of its content; for a URL, of the metadata in its store
    path VARCHAR NOT NULL,                    -- its absolute path
    state VARCHAR NOT NULL,                   -- size and modification time, also of its related files, to detect changes without reading it
    read_at TIMESTAMP NOT NULL,               -- when it was read, UTC; of several rows for a path, the newest counts
    size_bytes BIGINT NOT NULL,               -- size of the file as stored, compressed or not
    runs INTEGER NOT NULL,                    -- applications in it, 0 if it could not be read
    day DATE NOT NULL                         -- of its first run; for a log without one, of its last change
);

CREATE TABLE runs (                           -- one row per application
    run_id VARCHAR NOT NULL,                  -- the first 16 digits of its log's hash, and a number if the log has several
    log VARCHAR NOT NULL,                     -- the log
    path VARCHAR NOT NULL,                    -- path of the log; of several with the same content, the first by name
    read_at TIMESTAMP NOT NULL,               -- when it was read, UTC; of several rows for an application, one counts (fleet/sql/newest.sql)
    app_id VARCHAR NOT NULL,                  -- the framework's id of the application
    attempt VARCHAR,                          -- of the application, if it has attempts
    name VARCHAR NOT NULL,                    -- its name by the user, else its id
    plan_hash VARCHAR NOT NULL,               -- hash of its plans: operators and their inputs; without plans, the names of its stages
    framework VARCHAR NOT NULL,               -- the package that read it
    framework_version VARCHAR,                -- as the log states it
    started_at TIMESTAMP NOT NULL,            -- start of the application, UTC
    measure VARCHAR NOT NULL,                 -- meaning of `runtime_ms` and of all times on the path: makespan, step time, latency or throughput
    runtime_ms DOUBLE NOT NULL,               -- the runtime that results refer to: start to end, without pauses of a shell or notebook; for a latency, that of one record
    duration_ms DOUBLE NOT NULL,              -- start to end
    complete BOOLEAN NOT NULL,                -- whether the log reaches the end of the application
    outcome VARCHAR NOT NULL,                 -- succeeded, failed, recovered (something failed and was retried) or unfinished
    reason VARCHAR,                           -- why it did not succeed
    workers INTEGER NOT NULL,                 -- maximum at a time
    resources MAP(VARCHAR, DOUBLE) NOT NULL,  -- workers, cores and memory (bytes) of each, tasks (partitions), as far as the log records them; empty for a stream
    settings MAP(VARCHAR, VARCHAR) NOT NULL,  -- settings of the framework, without long ones; empty for a stream
    core_hours DOUBLE NOT NULL,               -- slots times their hours
    busy_core_hours DOUBLE NOT NULL,          -- of these, while a task ran
    lost_core_hours DOUBLE NOT NULL,          -- of these, for tasks that did not succeed
    tasks BIGINT NOT NULL,                    -- attempts of tasks, including those that did not end
    failed_tasks BIGINT NOT NULL,             -- of these, failed or killed
    input_bytes BIGINT NOT NULL,              -- read from storage or cache
    output_bytes BIGINT NOT NULL,             -- written to storage
    exchange_write_bytes BIGINT NOT NULL,     -- written for other tasks to read
    spilled_bytes BIGINT NOT NULL,            -- spilled to disk because memory was short
    bottleneck VARCHAR NOT NULL,              -- the bottleneck: a resource, a cause of other time, or the driver
    bottleneck_ms DOUBLE NOT NULL,            -- of its runtime
    path_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the critical path by resource and `other`; sums to the runtime
    task_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the time of all tasks, by the same
    has_samples BOOLEAN NOT NULL,             -- whether it has recordings of stack samples
    indexes VARCHAR[] NOT NULL,               -- the resource indexes that were used
    replayed_ms DOUBLE,                       -- runtime of the baseline by the model; NULL if it could not be replayed
    gains STRUCT(question VARCHAR, setting VARCHAR, predicted_ms DOUBLE, low_ms DOUBLE, high_ms DOUBLE, expected MAP(VARCHAR, DOUBLE), common_variance DOUBLE, own_variance DOUBLE, refused VARCHAR)[] NOT NULL, -- the usual what-ifs: runtime and its 90 % range; `resources` of the scenario, NULL if logs do not record what it changes; variances of log(actual / predicted) that all runs have in common, and of this run's own
    day DATE NOT NULL                         -- on which it began, UTC
);

CREATE TABLE stages (                         -- one row per attempt of a stage
    run_id VARCHAR NOT NULL,                  -- the run
    stage_id VARCHAR NOT NULL,                -- in the framework's terms, with its attempt
    name VARCHAR NOT NULL,                    -- its name in the framework's own UI
    scope_id VARCHAR,                         -- its query or job
    status VARCHAR NOT NULL,                  -- succeeded, failed, skipped or unfinished
    tasks BIGINT NOT NULL,                    -- its number by its own record
    submit_ms DOUBLE,                         -- submitted; NULL if skipped
    end_ms DOUBLE,                            -- ended
    task_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the time of its tasks by resource and `other`
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE operators (                      -- one row per operator of a run's plans, by name
    run_id VARCHAR NOT NULL,                  -- the run
    name VARCHAR NOT NULL,                    -- HashAggregate, Exchange, Scan parquet
    basis VARCHAR NOT NULL,                   -- the source of the figure: samples, plan metrics, task metrics, nothing
    task_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- task time in it, by resource and `other`
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE functions (                      -- one row per attributed function of sampled task time; those with the most time of each run
    run_id VARCHAR NOT NULL,                  -- the run
    name VARCHAR NOT NULL,                    -- its name in the syntax of its language
    index_name VARCHAR NOT NULL,              -- the index that has it
    resource VARCHAR NOT NULL,                -- the resource that it uses most
    time_ms DOUBLE NOT NULL,                  -- sampled time of tasks
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE findings (                       -- one row per finding: a cause of lost time in a run
    run_id VARCHAR NOT NULL,                  -- the run
    kind VARCHAR NOT NULL,                    -- key of its kind, such as idle-slots
    cost_ms DOUBLE NOT NULL,                  -- upper bound of the lost runtime
    basis VARCHAR NOT NULL,                   -- measured, modelled or guessed
    text VARCHAR NOT NULL,                    -- a sentence
    advice VARCHAR NOT NULL,                  -- the recommended action
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE problems (                       -- one row per reading problem of a log; a log that could not be read has one row
    log VARCHAR NOT NULL,                     -- the log
    path VARCHAR NOT NULL,                    -- its path
    read_at TIMESTAMP NOT NULL,               -- when it was read, UTC
    run_id VARCHAR,                           -- the run; NULL if none could be read
    severity VARCHAR NOT NULL,                -- unread, not-log (any other file), error, data loss or info
    text VARCHAR NOT NULL,                    -- a sentence
    day DATE NOT NULL                         -- as in logs
);
