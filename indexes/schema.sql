-- The contract of CrystalPerf: the tables of a resource index and of a run file.
--
-- `indexer` writes an index, `query` reads it and writes run files, everything else only reads.  Both are DuckDB
-- files (of a storage version that every DuckDB since 1.2 opens).  The comment after a column is its definition;
-- indexes.create() puts it into the file too (COMMENT ON), so `SELECT * FROM duckdb_columns()` explains any file.
--
-- A resource is a row of resources.toml; a run's own resources come from its framework.  A column with <resource> in its
-- name exists once per resource, in their order: <resource>_ms is cpu_ms, disk_ms, net_ms.  An index has the columns of
-- the resources that its model knows, and works for runs with more.  Keys are not declared to DuckDB, because its
-- structures for them would make an index half as large again; tests check them.  Neither kind of file stores source text
-- or documentation text.
--
-- Times are milliseconds since the application started (`runs.started_at_ms`), on the log's clock, unless the name says
-- otherwise.  NULL means unknown, never zero.

-- part: both ---------------------------------------------------------------------------------------------------

CREATE TABLE metadata (                       -- one row per fact on how this file was made
    key VARCHAR PRIMARY KEY,                  -- schema_version, kind (index or run), tool_version, content_hash, built_at, arguments, source_*, model_*, inputs, indexes
    value VARCHAR NOT NULL                    -- the fact; lists and mappings are JSON
);

-- part: index --------------------------------------------------------------------------------------------------

CREATE TABLE functions (                      -- one row per function, method, constructor, initialiser or lambda found in the source
    function_id INTEGER NOT NULL,             -- number within this index, from 0, unique, in order of file and line
    symbol VARCHAR NOT NULL,                  -- unique, stable name in the spirit of SCIP: '<package> <version> <path/to/Type#method(+1).>'
    language VARCHAR NOT NULL,                -- java, scala, python or cpp
    kind VARCHAR NOT NULL,                    -- function, method, constructor, initialiser (class body, static block) or lambda
    qualified_name VARCHAR NOT NULL,          -- name as the language writes it: org.apache.spark.rdd.RDD.map
    package VARCHAR NOT NULL,                 -- package or module the function is declared in; '' for none
    class_name VARCHAR,                       -- enclosing type within the package, nested types by '.'; NULL for none
    enclosing_id INTEGER,                     -- function_id of the function this one is nested in; NULL for none
    file VARCHAR NOT NULL,                    -- path relative to the source root, '/' separated
    first_line INTEGER NOT NULL,              -- first line of the function, 1-based, without its documentation
    last_line INTEGER NOT NULL,               -- last line of the function, inclusive
    text_hash VARCHAR NOT NULL,               -- first 6 hex digits of the SHA-256 of documentation and code: differs between two versions if the function changed
    code_chars INTEGER NOT NULL,              -- characters of code
    doc_chars INTEGER NOT NULL,               -- characters of documentation, 0 where there is none
    code_<resource> FLOAT,                    -- probability of <resource> by the code classifier; NULL if it was not run
    doc_<resource> FLOAT,                     -- probability of <resource> by the documentation classifier; NULL without documentation
    <resource> FLOAT NOT NULL,                -- share of the function's time on <resource>, by both classifiers; the shares sum to 1
    confidence FLOAT NOT NULL,                -- calibrated probability that the largest of the shares is the dominant resource
    source VARCHAR NOT NULL,                  -- origin of the shares: measured (in calls of this function) or model
    decided_by VARCHAR                        -- if the model's label differs from that of the function's own text: the callee that it is from, or 'disk API' or 'net API' for a direct call, or 'no device in callees'; else NULL
);

CREATE TABLE classes (                        -- one row per JVM class that a source file declares
    class_name VARCHAR NOT NULL,              -- binary name as a stack frame shows it: org.apache.spark.rdd.RDD$ ; anonymous and lambda classes are left out
    file VARCHAR NOT NULL,                    -- the declaring file, as in functions.file
    first_line INTEGER NOT NULL,              -- first line of the declaration
    last_line INTEGER NOT NULL                -- last line of the declaration
);

CREATE TABLE runtime_names (                  -- one row per name under which a function may appear in a stack when its line is unknown
    class_name VARCHAR NOT NULL,              -- binary class name, or module path for Python
    method VARCHAR NOT NULL,                  -- method name, demangled: '+=' rather than '$plus$eq'
    function_id INTEGER NOT NULL              -- the function; several rows for overloads
);

CREATE TABLE calls (                          -- one row per call that a function's text contains, once per callee name
    caller_id INTEGER NOT NULL,               -- the calling function
    callee_name VARCHAR NOT NULL,             -- simple name called; CLASS.METHOD if types show that it is not a function of this index
    callee_id INTEGER                         -- the called function if its name or types identify it, else NULL
);

CREATE TABLE build_warnings (                 -- one row per source file that could not be indexed in full
    file VARCHAR NOT NULL,                    -- the file
    problem VARCHAR NOT NULL                  -- the problem and its effect
);

-- part: run ----------------------------------------------------------------------------------------------------
--
-- The trace that a framework's reader returns (query.trace.contract), and CrystalPerf's results.  The terms are generic:
-- a worker is Spark's executor or Flink's TaskManager, a stage (table `stages`) Spark's stage or Flink's job vertex, a
-- task (table `tasks`) Spark's task or Flink's subtask.  A reader's data in the terms of its framework is in further
-- tables, which are named after it (spark_tasks).

CREATE TABLE runs (                           -- the one application this file describes
    app_id VARCHAR NOT NULL,                  -- the framework's id of the application
    attempt VARCHAR,                          -- attempt of the application, where it has attempts
    name VARCHAR,                             -- name the user gave it
    framework VARCHAR NOT NULL,               -- the package that read it: spark
    framework_version VARCHAR,                -- as the log states it
    java_version VARCHAR,                     -- of the driver's JVM, as the log states it; NULL if there was none
    measure VARCHAR NOT NULL,                 -- the time to optimize: makespan, step time or latency
    started_at_ms BIGINT NOT NULL,            -- Unix time in ms of the start of the application: time zero of this file
    duration_ms DOUBLE NOT NULL,              -- start of the application to its end, or to the last event if the log has no end
    complete BOOLEAN NOT NULL,                -- whether the log reaches the end of the application
    exit_code INTEGER,                        -- exit code of its process, 0 for success; NULL if not in the log
    scheduler VARCHAR,                        -- how slots are assigned, in the framework's term
    properties MAP(VARCHAR, VARCHAR),         -- settings that affect results; no other part of the configuration is stored
    libraries VARCHAR[]                       -- names of the archives on its class path, without .jar: netty-common-4.1.118.Final
);

CREATE TABLE resources (                      -- one row per resource that this run's time is split by, in the order of a resource vector
    name VARCHAR NOT NULL,                    -- cpu, disk, net, or one of the framework; the <resource> of the columns below
    device VARCHAR NOT NULL,                  -- display name of the device: CPU, disk, network
    setting VARCHAR NOT NULL,                 -- the key of a what-if that changes its speed: cpu_speed, disk, network
    unit VARCHAR NOT NULL,                    -- of that key: speed (relative to the run) or bytes per second
    shared_by VARCHAR NOT NULL,               -- which tasks share one device: worker (those of one worker), host, or nobody (none)
    buffer_bytes DOUBLE,                      -- bytes per transfer (paper, Algorithm 2: S_B); NULL if no bytes cross it
    overhead_ms DOUBLE,                       -- time to process one such buffer, which no bandwidth changes (o)
    rate_bps DOUBLE,                          -- assumed bandwidth, bytes per second, if the run does not record it
    moves VARCHAR[]                           -- columns of `tasks` with bytes that cross the device
);

CREATE TABLE workers (                        -- one row per process that runs tasks, or plans them
    worker_id VARCHAR NOT NULL,               -- the framework's id
    kind VARCHAR NOT NULL,                    -- worker, or driver for the driver, which may run tasks too
    host VARCHAR,                             -- node it ran on
    slots INTEGER,                            -- concurrent tasks: slots, threads, streams; NULL if unknown
    cores INTEGER,                            -- its cores
    memory_bytes BIGINT,                      -- its memory: the heap of a JVM
    added_ms DOUBLE NOT NULL,                 -- when it registered
    removed_ms DOUBLE,                        -- when it was lost or released; NULL if it ran to the end
    removed_reason VARCHAR,                   -- reason, in the framework's text
    clock_offset_ms DOUBLE,                   -- to add to times of its recording to get the log's clock; NULL without samples
    pid BIGINT                                -- process id in its recording, if one was matched to it
);

CREATE TABLE scopes (                         -- one row per part of the run that a user names: a query, a job, a training step
    scope_id VARCHAR NOT NULL,                -- id that selects it: sql:3
    kind VARCHAR NOT NULL,                    -- sql, job, step …, in the framework's term
    parent_id VARCHAR,                        -- the scope that this one is part of
    name VARCHAR,                             -- display name
    call_site VARCHAR,                        -- where in the user's program
    start_ms DOUBLE NOT NULL,                 -- submitted
    end_ms DOUBLE,                            -- ended; NULL if the log has no end
    status VARCHAR NOT NULL,                  -- succeeded, failed or unfinished
    error VARCHAR                             -- why it failed
);

CREATE TABLE stages (                         -- one row per attempt of a stage: tasks that do the same with different data; in Flink a job vertex
    stage_id VARCHAR NOT NULL,                -- stage:3.0 (id.attempt)
    scope_id VARCHAR,                         -- the scope of its operators
    name VARCHAR,                             -- its name in the framework's own UI
    call_site VARCHAR,                        -- where in the user's program
    io_kinds VARCHAR,                         -- what its tasks read and write, in the framework's terms, comma separated
    priority INTEGER NOT NULL,                -- of two ready stages, the one with the lower value runs first
    pool VARCHAR,                             -- the scheduler's queue that it waits in
    task_count INTEGER NOT NULL,              -- its number of tasks by its own record, independent of lost events
    submit_ms DOUBLE,                         -- submitted by the driver; NULL if skipped
    first_launch_ms DOUBLE,                   -- launch of its first task; NULL if none ran
    end_ms DOUBLE,                            -- ended
    status VARCHAR NOT NULL,                  -- succeeded, failed, skipped or unfinished
    failure VARCHAR,                          -- why it failed
    <resource>_ms DOUBLE,                     -- time of its tasks on <resource>, summed over them
    other_ms DOUBLE                           -- time on no resource, or unknown; together the columns sum to the tasks' durations
);

CREATE TABLE tasks (                          -- one row per attempt of a task: in Flink a subtask, in a training an operator instance or kernel
    task_id BIGINT NOT NULL,                  -- the framework's id, unique in the application
    stage_id VARCHAR NOT NULL,                -- its stage
    partition_index INTEGER,                  -- index of its data within the stage
    attempt INTEGER,                          -- attempt at that part, from 0
    worker_id VARCHAR,                        -- where it ran
    host VARCHAR,                             -- where it ran
    launch_ms DOUBLE NOT NULL,                -- assigned to its worker
    finish_ms DOUBLE NOT NULL,                -- end by the driver's record; if the log has none, the earliest end of its stage, its worker and the run
    status VARCHAR NOT NULL,                  -- succeeded, failed, killed or unfinished
    reason VARCHAR,                           -- why it did not succeed: the error, without stack and package
    recomputed BOOLEAN,                       -- whether another attempt started after it ended; if it succeeded, its output was lost
    data_locality VARCHAR,                    -- locality of its data: worker, host, rack, any (farther); NULL if it had no preference
    slot_ms DOUBLE,                           -- time it held its slot; NULL if not measured
    own_ms DOUBLE,                            -- of that, running its own code
    own_cpu_ms DOUBLE,                        -- of that, measured on the CPU, garbage collection included
    total_cpu_ms DOUBLE,                      -- all its CPU time, with garbage collection and startup; if the log has none, that of its threads (thread_loads)
    gc_ms DOUBLE,                             -- garbage collection of its process while it ran, any thread's
    fetch_wait_ms DOUBLE,                     -- measured waiting for data of other workers
    pipeline_wait_ms DOUBLE,                  -- waiting for a pipelined stage to send or take rows: time of others, not its own work
    scheduler_delay_ms DOUBLE,                -- assigned but not started, or finished but not yet reported: scheduling delay
    starting_ms DOUBLE,                       -- the same, plus startup
    overhead_ms DOUBLE,                       -- the same, plus returning its result
    input_bytes BIGINT,                       -- read from storage or cache
    output_bytes BIGINT,                      -- written to storage
    remote_read_bytes BIGINT,                 -- read from other workers
    local_read_bytes BIGINT,                  -- read from tasks of the same worker
    exchange_write_bytes BIGINT,              -- written for other tasks to read
    spill_memory_bytes BIGINT,                -- size in memory of spilled data
    spill_disk_bytes BIGINT,                  -- size on disk of spilled data
    peak_memory_bytes BIGINT,                 -- peak memory of its data
    input_rows BIGINT,                        -- records read from storage and other tasks
    sample_ms DOUBLE,                         -- time that stack samples account for; NULL without samples
    <resource>_ms DOUBLE,                     -- time on <resource>
    other_ms DOUBLE                           -- time on no resource, or unknown; together the columns sum to finish_ms - launch_ms
);

CREATE TABLE dependencies (                   -- one row per dependency between stages that the framework records
    source VARCHAR NOT NULL,                  -- stage_id
    target VARCHAR NOT NULL,                  -- stage_id
    kind VARCHAR NOT NULL,                    -- barrier (all of the source before any of the target), pipelined (both run, rows flow), order (same slot, one after the other) or transfer (a barrier, then bytes over a device)
    why VARCHAR NOT NULL,                     -- reason, in the framework's term
    resource VARCHAR                          -- for a transfer: the resource of the device that its bytes cross
);

CREATE TABLE operators (                      -- one row per operator of the last plan of a scope
    scope_id VARCHAR NOT NULL,                -- its scope
    node_id INTEGER NOT NULL,                 -- position in the plan, pre-order, 0 is the root
    parent_id INTEGER,                        -- the operator that consumes its rows
    name VARCHAR NOT NULL,                    -- HashAggregate, Exchange, Scan parquet
    detail VARCHAR,                           -- start of the operator's own description
    location VARCHAR                          -- where a scan reads, by the plan: InMemoryFileIndex(1 paths)[s3a://bucket/table]
);

CREATE TABLE operator_stages (                -- one row per operator and stage that ran it, by the framework's own record
    scope_id VARCHAR NOT NULL,                -- the operator's scope
    node_id INTEGER NOT NULL,                 -- the operator
    stage_id VARCHAR NOT NULL                 -- the stage
);

CREATE TABLE operator_metrics (               -- one row per metric of an operator and stage that updated it
    scope_id VARCHAR NOT NULL,                -- the operator's scope
    node_id INTEGER NOT NULL,                 -- the operator
    stage_id VARCHAR NOT NULL,                -- the stage
    name VARCHAR NOT NULL,                    -- as the plan names it: sort time, number of output rows
    unit VARCHAR NOT NULL,                    -- ms, bytes or count
    value DOUBLE NOT NULL                     -- sum over the stage's tasks
);

CREATE TABLE operator_times (                 -- one row per stage and operator; the rows of a stage sum to its tasks' durations
    stage_id VARCHAR NOT NULL,                -- the stage
    scope_id VARCHAR,                         -- the scope of its operators
    node_id INTEGER,                          -- the operator in its plan; NULL if the operator is unknown
    name VARCHAR NOT NULL,                    -- the operator's name, or another activity
    basis VARCHAR NOT NULL,                   -- the source of the figure: samples, plan metrics, task metrics, stream metrics (waits for tasks of its pipeline), nothing
    <resource>_ms DOUBLE NOT NULL,            -- time of tasks on <resource>
    other_ms DOUBLE NOT NULL                  -- time on no resource, or unknown
);

CREATE TABLE stage_inputs (                   -- one row per stage and file system that it reads, if known
    stage_id VARCHAR NOT NULL,                -- the stage
    root VARCHAR NOT NULL                     -- hdfs://namenode, s3a://bucket, file:; memory: for data cached in workers
);

CREATE TABLE nodes (                          -- one row per node of the execution DAG
    node_id VARCHAR NOT NULL,                 -- a stage_id, or for an interval of the driver between stages its name and a number: driver:7
    kind VARCHAR NOT NULL,                    -- stage, driver or transfer
    name VARCHAR,                             -- display name
    stage_id VARCHAR,                         -- of a stage
    scope_id VARCHAR,                         -- the scope it belongs to
    start_ms DOUBLE NOT NULL,                 -- first launch of a stage; start of a driver's interval
    end_ms DOUBLE NOT NULL,                   -- end
    <resource>_ms DOUBLE NOT NULL,            -- wall-clock of the node on <resource>
    other_ms DOUBLE NOT NULL                  -- wall-clock on no resource, or unknown; together the columns sum to end_ms - start_ms
);

CREATE TABLE edges (                          -- one row per dependency between nodes
    source VARCHAR NOT NULL,                  -- node_id
    target VARCHAR NOT NULL,                  -- node_id
    kind VARCHAR NOT NULL,                    -- as in dependencies
    why VARCHAR NOT NULL                      -- reason for the dependency, in one or two words
);

CREATE TABLE stacks (                         -- one row per distinct sampled stack
    stack_id INTEGER NOT NULL,                -- number within this file
    frames VARCHAR[] NOT NULL,                -- 'package.Class.method:line', leaf first
    truncated BOOLEAN NOT NULL,               -- whether the sampler truncated it
    attributed_depth INTEGER,                 -- 0-based position of the attributed frame; NULL if there is none
    index_name VARCHAR,                       -- index of the attributed function
    symbol VARCHAR,                           -- the attributed function
    skipped VARCHAR,                          -- why frames above it were skipped: comma separated reasons, in order, without repetition
    operator VARCHAR,                         -- kind of operator of the frame nearest the leaf; NULL if there is none
    pipeline INTEGER,                         -- number of its generated code: 3 for WholeStageCodegen (3); NULL if it is in none
    <resource> DOUBLE                         -- the attributed function's share of <resource>; NULL if there is none
);

CREATE TABLE samples (                        -- one row per sample of a thread, or per interval that a recording measured
    time_ms DOUBLE NOT NULL,                  -- when, on the log's clock; start of an interval
    worker_id VARCHAR,                        -- worker of the recording; NULL if none matches
    thread VARCHAR,                           -- thread, by name and number
    stack_id INTEGER,                         -- its stack
    kind VARCHAR NOT NULL,                    -- execution, native, wall, cpu, running (runnable), untimed (from a mixture that all tasks share), or an interval: park, sleep, wait, enter, socket read …; waking: CPU wait at the end of a wait that has another row at the same time
    weight_ms DOUBLE NOT NULL,                -- wall-clock that it represents
    bytes BIGINT,                             -- bytes moved in an interval of input or output
    task_id BIGINT                            -- the task on the thread; NULL for other threads
);

CREATE TABLE loads (                          -- one row per measurement that a recording has of its whole process' CPU time (JFR's jdk.CPULoad)
    worker_id VARCHAR,                        -- worker of the recording
    time_ms DOUBLE NOT NULL,                  -- end of the measured interval; it starts at the previous measurement
    cpu_cores DOUBLE NOT NULL,                -- CPU time of the process per time: all its threads, including compilers, collectors and servers
    machine_cores DOUBLE,                     -- the same for all processes of its machine
    processors INTEGER NOT NULL,              -- hardware threads of the machine
    quota_cores DOUBLE,                       -- CPU quota of the process' container; NULL if it has none, or if not recorded
    throttled DOUBLE,                         -- share of quota periods in this interval that used up the quota; NULL if not measured
    received_bytes_per_s DOUBLE,              -- received by the network devices of its machine or container, without loopback and devices that carry the traffic of another; NULL if not measured
    sent_bytes_per_s DOUBLE                   -- sent by them
);

CREATE TABLE thread_loads (                   -- one row per measurement that a recording has of one thread's CPU time (JFR's jdk.ThreadCPULoad); threads that used almost none have no row
    worker_id VARCHAR,                        -- worker of the recording
    thread VARCHAR NOT NULL,                  -- thread, by name and number, as in samples
    start_ms DOUBLE NOT NULL,                 -- start of the measured interval
    end_ms DOUBLE NOT NULL,                   -- its end
    cpu_ms DOUBLE NOT NULL,                   -- CPU time of the thread in it, including the kernel's for it
    task_id BIGINT                            -- the task on the thread; NULL for other threads, and if threads are not named after tasks
);

CREATE TABLE heaps (                          -- one row per garbage collection of which a recording has the use of the heap (JFR's jdk.GCHeapSummary)
    worker_id VARCHAR,                        -- worker of the recording
    time_ms DOUBLE NOT NULL,                  -- end of the collection
    used_bytes BIGINT NOT NULL                -- bytes that it left: live data, and what a collection of young objects does not free
);

CREATE TABLE import_stats (                   -- one row per kind of reading problem: data that was missing, repaired or left out
    name VARCHAR NOT NULL,                    -- short name, stable
    severity VARCHAR NOT NULL,                -- info, data loss or error
    origin VARCHAR NOT NULL,                  -- the input file
    count BIGINT NOT NULL,                    -- how often
    first_where VARCHAR,                      -- first place: line, byte or event
    meaning VARCHAR NOT NULL                  -- its meaning for the results, one sentence
);
