-- The tables of a fleet.  Each is a folder of Parquet files, partitioned by the day on which a run began
-- (runs/day=2026-11-22/…), which DuckDB and its peers open.  Times of a run are in ms since its start.  The words are
-- no framework's: a group of units is what each framework calls by a word of its own.

CREATE TABLE logs (                           -- one row per log that was looked at, readable or not
    log VARCHAR NOT NULL,                     -- SHA-256 of its content; of a URL, of what its store says of it
    path VARCHAR NOT NULL,                    -- where it lies, absolute
    state VARCHAR NOT NULL,                   -- size and time of change, its companions' too, by which it is known unread
    read_at TIMESTAMP NOT NULL,               -- when it was read, UTC: of several rows of a path the newest counts
    size_bytes BIGINT NOT NULL,               -- as it lay there, compressed or not
    runs INTEGER NOT NULL,                    -- applications in it, 0 where it could not be read
    day DATE NOT NULL                         -- of its first run; of a log without one, of its last change
);

CREATE TABLE runs (                           -- one row per application
    run_id VARCHAR NOT NULL,                  -- the first 16 digits of its log's hash, and a number where the log has several
    log VARCHAR NOT NULL,                     -- the log
    path VARCHAR NOT NULL,                    -- where that lies; of several with one content, the first by name
    read_at TIMESTAMP NOT NULL,               -- when it was read, UTC: of rows of one application one counts (fleet/sql/newest.sql)
    app_id VARCHAR NOT NULL,                  -- the framework's id of the application
    attempt VARCHAR,                          -- of the application, where it has attempts
    name VARCHAR NOT NULL,                    -- the user's name for it, else its id
    plan_hash VARCHAR NOT NULL,               -- of what it does: its operators and who reads whom; without plans, its groups' names
    framework VARCHAR NOT NULL,               -- the package that read it
    framework_version VARCHAR,                -- as the log states it
    started_at TIMESTAMP NOT NULL,            -- start of the application, UTC
    measure VARCHAR NOT NULL,                 -- what `runtime_ms` and all times on the path are of: makespan, step time, latency or throughput
    runtime_ms DOUBLE NOT NULL,               -- what the answers are about: start to end, without pauses of a shell or notebook; of a latency one record's
    duration_ms DOUBLE NOT NULL,              -- start to end
    complete BOOLEAN NOT NULL,                -- whether the log reaches the end of the application
    outcome VARCHAR NOT NULL,                 -- succeeded, failed, recovered (something failed and was done again) or unfinished
    reason VARCHAR,                           -- why it did not succeed
    workers INTEGER NOT NULL,                 -- most at a time
    core_hours DOUBLE NOT NULL,               -- slots times the hours that they were there
    busy_core_hours DOUBLE NOT NULL,          -- of these, with a unit in them
    lost_core_hours DOUBLE NOT NULL,          -- of these, with a unit that did not succeed
    units BIGINT NOT NULL,                    -- attempts of units, those that did not end too
    failed_units BIGINT NOT NULL,             -- of these, failed or killed
    input_bytes BIGINT NOT NULL,              -- read from storage or cache
    output_bytes BIGINT NOT NULL,             -- written to storage
    moved_bytes BIGINT NOT NULL,              -- written for other units to read
    spilled_bytes BIGINT NOT NULL,            -- written to disk for want of memory
    bottleneck VARCHAR NOT NULL,              -- what holds it up: a resource, a cause of other time, or what coordinates it
    bottleneck_ms DOUBLE NOT NULL,            -- of its runtime
    path_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the critical path by resource and `other`; sums to the runtime
    unit_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the time of all units, likewise
    has_samples BOOLEAN NOT NULL,             -- whether recordings of stacks were found with it
    indexes VARCHAR[] NOT NULL,               -- that told what functions need
    replayed_ms DOUBLE,                       -- what the model makes of it unchanged; NULL where it could not be replayed
    gains STRUCT(question VARCHAR, setting VARCHAR, predicted_ms DOUBLE, low_ms DOUBLE, high_ms DOUBLE, common_variance DOUBLE, own_variance DOUBLE, refused VARCHAR)[] NOT NULL, -- the usual what-ifs: runtime and its 90 % range; variances of log(actual / predicted) that all runs have in common, and of this run's own
    day DATE NOT NULL                         -- on which it began, UTC
);

CREATE TABLE groups (                         -- one row per attempt of a group of units
    run_id VARCHAR NOT NULL,                  -- the run
    group_id VARCHAR NOT NULL,                -- in the framework's words, with its attempt
    name VARCHAR NOT NULL,                    -- what the framework's own UI shows
    scope_id VARCHAR,                         -- the query or job that it worked for
    status VARCHAR NOT NULL,                  -- succeeded, failed, skipped or unfinished
    units BIGINT NOT NULL,                    -- it has by its own account
    submit_ms DOUBLE,                         -- submitted; NULL where it was skipped
    end_ms DOUBLE,                            -- ended
    unit_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the time of its units by resource and `other`
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE operators (                      -- one row per operator of a run's plans, by name
    run_id VARCHAR NOT NULL,                  -- the run
    name VARCHAR NOT NULL,                    -- HashAggregate, Exchange, Scan parquet
    basis VARCHAR NOT NULL,                   -- what says so: samples, plan metrics, unit metrics, nothing
    unit_ms MAP(VARCHAR, DOUBLE) NOT NULL,    -- the time of units that went to it, by resource and `other`
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE functions (                      -- one row per function that decided sampled time of units; the most of each run
    run_id VARCHAR NOT NULL,                  -- the run
    name VARCHAR NOT NULL,                    -- as its language writes it
    index_name VARCHAR NOT NULL,              -- the index that knows it
    resource VARCHAR NOT NULL,                -- that it needs most
    time_ms DOUBLE NOT NULL,                  -- sampled time of units
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE findings (                       -- one row per thing that cost a run time
    run_id VARCHAR NOT NULL,                  -- the run
    rule VARCHAR NOT NULL,                    -- key of its kind, such as idle-slots
    cost_ms DOUBLE NOT NULL,                  -- of its runtime, at most
    basis VARCHAR NOT NULL,                   -- measured, modelled or guessed
    what VARCHAR NOT NULL,                    -- a sentence
    advice VARCHAR NOT NULL,                  -- what to do
    day DATE NOT NULL                         -- of the run
);

CREATE TABLE problems (                       -- one row per thing that reading a log did not take as it stood; a log that could not be read has one
    log VARCHAR NOT NULL,                     -- the log
    path VARCHAR NOT NULL,                    -- where it lies
    read_at TIMESTAMP NOT NULL,               -- when it was read, UTC
    run_id VARCHAR,                           -- the run; NULL where none could be read
    severity VARCHAR NOT NULL,                -- unread, error, data loss or info
    what VARCHAR NOT NULL,                    -- a sentence
    day DATE NOT NULL                         -- as in logs
);
