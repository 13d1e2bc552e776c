-- The contract of CrystalPerf: what a resource index and a run file hold.
--
-- `indexer` writes an index, `query` reads it and writes run files, everything else only reads.  Both are DuckDB
-- files (of a storage version that every DuckDB since 1.2 opens).  The comment after a column is its definition;
-- indexes.create() puts it into the file too (COMMENT ON), so `SELECT * FROM duckdb_columns()` explains any file.
--
-- A resource is a row of resources.toml, and a run's own ones come from its framework.  A column whose name has
-- <resource> in it stands once for each of them, in their order: <resource>_ms is cpu_ms, disk_ms, net_ms.  An index has
-- the columns of those that its model knew; it serves runs that know more.  Keys are not declared to DuckDB, whose structures for them would make an index half as large
-- again; tests check them.  No source text and no documentation text is stored, in either kind of file.
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
    text_hash VARCHAR NOT NULL,               -- first 6 hex digits of the SHA-256 of documentation and code: what changed between two versions shows in it
    code_chars INTEGER NOT NULL,              -- characters of code
    doc_chars INTEGER NOT NULL,               -- characters of documentation, 0 where there is none
    code_<resource> FLOAT,                    -- probability of <resource> by the code classifier; NULL where it was not run
    doc_<resource> FLOAT,                     -- probability of <resource> by the documentation classifier; NULL without documentation
    <resource> FLOAT NOT NULL,                -- share of the function's time on <resource>, by both classifiers; the shares sum to 1
    confidence FLOAT NOT NULL                 -- calibrated probability that the largest of the shares is the dominant resource
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
    callee_name VARCHAR NOT NULL,             -- simple name called; CLASS.METHOD where types say that it is no function of this index
    callee_id INTEGER                         -- the called function where its name, or types, leave no doubt, else NULL
);

CREATE TABLE build_warnings (                 -- one row per source file that could not be indexed in full
    file VARCHAR NOT NULL,                    -- the file
    problem VARCHAR NOT NULL                  -- what happened and what it cost
);

-- part: run ----------------------------------------------------------------------------------------------------
--
-- What a framework's reader hands over (query.trace.contract) and what CrystalPerf makes of it.  The words are no
-- framework's: a worker is Spark's executor or Flink's TaskManager, a group its stage or job vertex, a unit its task or
-- subtask.  What a reader keeps in its framework's own words lies beside, in tables named after it (spark_tasks).

CREATE TABLE runs (                           -- the one application this file describes
    app_id VARCHAR NOT NULL,                  -- the framework's id of the application
    attempt VARCHAR,                          -- attempt of the application, where it has attempts
    name VARCHAR,                             -- name the user gave it
    framework VARCHAR NOT NULL,               -- the package that read it: spark
    framework_version VARCHAR,                -- as the log states it
    java_version VARCHAR,                     -- of the JVM that coordinated it, as the log states it; NULL where there was none
    measure VARCHAR NOT NULL,                 -- what such a run is made shorter for: makespan, step time or latency
    started_at_ms BIGINT NOT NULL,            -- Unix time in ms of the start of the application: time zero of this file
    duration_ms DOUBLE NOT NULL,              -- start of the application to its end, or to the last event where the log has no end
    complete BOOLEAN NOT NULL,                -- whether the log reaches the end of the application
    exit_code INTEGER,                        -- what its process ended with, 0 for success; NULL where the log does not tell
    scheduler VARCHAR,                        -- how lanes are given out, in the framework's word
    properties MAP(VARCHAR, VARCHAR),         -- settings the answers depend on; nothing else of the configuration is kept
    libraries VARCHAR[]                       -- names of the archives on its class path, without .jar: netty-common-4.1.118.Final
);

CREATE TABLE resources (                      -- one row per resource that this run's time is split by, in the order of a resource vector
    name VARCHAR NOT NULL,                    -- cpu, disk, net, or what the framework brings; the <resource> of the columns below
    device VARCHAR NOT NULL,                  -- what a reader knows it by: CPU, disk, network
    setting VARCHAR NOT NULL,                 -- the key of a what-if that changes its speed: cpu_speed, disk, network
    unit VARCHAR NOT NULL,                    -- of that key: speed (relative to the run) or bytes per second
    shared_by VARCHAR NOT NULL,               -- whose units share one device: worker, host or nobody
    buffer_bytes DOUBLE,                      -- what is handed over at a time (paper, Algorithm 2: S_B); NULL where no bytes cross it
    overhead_ms DOUBLE,                       -- time to process one such buffer, which no bandwidth changes (o)
    rate_bps DOUBLE,                          -- bytes per second that stand for the bandwidth where a run does not tell it
    moves VARCHAR[]                           -- columns of `units` whose bytes cross the device
);

CREATE TABLE workers (                        -- one row per process that runs units, or plans them
    worker_id VARCHAR NOT NULL,               -- the framework's id
    kind VARCHAR NOT NULL,                    -- worker, or coordinator for the one that plans, which may run units as well
    host VARCHAR,                             -- node it ran on
    lanes INTEGER,                            -- units it can run at a time: slots, threads, streams; NULL where it is not known
    cores INTEGER,                            -- cores it was given
    memory_bytes BIGINT,                      -- memory it was given: the heap of a JVM
    added_ms DOUBLE NOT NULL,                 -- when it registered
    removed_ms DOUBLE,                        -- when it was lost or sent home; NULL where it lived to the end
    removed_reason VARCHAR,                   -- why, in the framework's words
    clock_offset_ms DOUBLE,                   -- to add to times of its recording to get the log's clock; NULL without samples
    pid BIGINT                                -- process of its recording, where one was matched to it
);

CREATE TABLE scopes (                         -- one row per stretch of the run that a user has a name for: a query, a job, a training step
    scope_id VARCHAR NOT NULL,                -- what a question about it names: sql:3
    kind VARCHAR NOT NULL,                    -- sql, job, step …, in the framework's word
    parent_id VARCHAR,                        -- the scope that this one is part of
    name VARCHAR,                             -- what the user would recognise
    place VARCHAR,                            -- where in the user's program
    start_ms DOUBLE NOT NULL,                 -- submitted
    end_ms DOUBLE,                            -- ended; NULL where the log has no end
    status VARCHAR NOT NULL,                  -- succeeded, failed or unfinished
    error VARCHAR                             -- why it failed
);

CREATE TABLE groups (                         -- one row per attempt of a set of units that do the same to other data: stage, job vertex, operator
    group_id VARCHAR NOT NULL,                -- stage:3.0 (id.attempt)
    scope_id VARCHAR,                         -- the scope whose operators it works for
    name VARCHAR,                             -- what the framework's own UI shows
    place VARCHAR,                            -- where in the user's program
    what VARCHAR,                             -- what its units read and write, in the framework's words, comma separated
    rank INTEGER NOT NULL,                    -- of groups that could both go on, the one of the lower rank goes first
    pool VARCHAR,                             -- the scheduler's queue that it waits in
    unit_count INTEGER NOT NULL,              -- units it has by its own account, which lost events do not change
    submit_ms DOUBLE,                         -- submitted by the coordinator; NULL where it was skipped
    first_launch_ms DOUBLE,                   -- launch of its first unit; NULL where none ran
    end_ms DOUBLE,                            -- ended
    status VARCHAR NOT NULL,                  -- succeeded, failed, skipped or unfinished
    failure VARCHAR,                          -- why it failed
    <resource>_ms DOUBLE,                     -- time of its units on <resource>, summed over them
    other_ms DOUBLE                           -- time on none of the resources or unknown; with theirs it sums to the units' durations
);

CREATE TABLE units (                          -- one row per attempt of a unit: task, subtask, operator instance, kernel
    unit_id BIGINT NOT NULL,                  -- the framework's id, unique in the application
    group_id VARCHAR NOT NULL,                -- its group
    part INTEGER,                             -- index of its data within the group
    attempt INTEGER,                          -- attempt at that part, from 0
    worker_id VARCHAR,                        -- where it ran
    host VARCHAR,                             -- where it ran
    launch_ms DOUBLE NOT NULL,                -- given to its worker
    finish_ms DOUBLE NOT NULL,                -- end known to the coordinator; where the log has none, the earliest of its group's end, its worker's and the run's
    status VARCHAR NOT NULL,                  -- succeeded, failed, killed or unfinished
    reason VARCHAR,                           -- why it did not succeed: what was thrown, without stack and package
    again BOOLEAN,                            -- whether another attempt at its data began after it had ended: of one that succeeded, what it had made was lost
    data_at VARCHAR,                          -- how near its worker its data were: worker, host, rack, any (farther); NULL where it had no wish
    held_ms DOUBLE,                           -- time it had its lane; NULL where nothing measured it
    own_ms DOUBLE,                            -- of that, running its own code
    own_cpu_ms DOUBLE,                        -- of that, measured on the CPU, garbage collection included
    on_cpu_ms DOUBLE,                         -- all its CPU time, garbage collection and getting ready included; where the log has none, what was measured of its threads (thread_loads)
    gc_ms DOUBLE,                             -- garbage collection of its process while it ran, any thread's
    peers_ms DOUBLE,                          -- measured waiting for data of other workers
    upstream_ms DOUBLE,                       -- waiting for a pipelined group to send or to take rows: others' time, not its own work
    queued_ms DOUBLE,                         -- given to its worker and not yet begun, or done and not yet known to be
    starting_ms DOUBLE,                       -- the same, and getting ready
    overhead_ms DOUBLE,                       -- the same, and handing over its result
    input_bytes BIGINT,                       -- read from storage or cache
    output_bytes BIGINT,                      -- written to storage
    remote_bytes BIGINT,                      -- read from other workers
    local_bytes BIGINT,                       -- read from units of the same worker
    handed_bytes BIGINT,                      -- written for other units to read
    spill_memory_bytes BIGINT,                -- size in memory of what was spilled
    spill_disk_bytes BIGINT,                  -- size on disk of what was spilled
    peak_memory_bytes BIGINT,                 -- the most memory that its data took
    input_rows BIGINT,                        -- records read from storage and other units
    sample_ms DOUBLE,                         -- time that stack samples account for; NULL without samples
    <resource>_ms DOUBLE,                     -- time on <resource>
    other_ms DOUBLE                           -- time on none of the resources or unknown; with theirs it sums to finish_ms - launch_ms
);

CREATE TABLE dependencies (                   -- one row per dependency between groups that the framework itself states
    source VARCHAR NOT NULL,                  -- group_id
    target VARCHAR NOT NULL,                  -- group_id
    kind VARCHAR NOT NULL,                    -- barrier (all of the source before any of the target), pipelined (both run, rows flow), order (same lane, one after the other) or transfer (a barrier, then bytes over a device)
    why VARCHAR NOT NULL,                     -- in the framework's word
    resource VARCHAR                          -- of a transfer: the resource whose device its bytes cross
);

CREATE TABLE operators (                      -- one row per operator of the last plan of a scope
    scope_id VARCHAR NOT NULL,                -- its scope
    node_id INTEGER NOT NULL,                 -- position in the plan, pre-order, 0 is the root
    parent_id INTEGER,                        -- the operator that consumes its rows
    name VARCHAR NOT NULL,                    -- HashAggregate, Exchange, Scan parquet
    detail VARCHAR,                           -- start of the operator's own description
    location VARCHAR                          -- where a scan reads, as the plan says: InMemoryFileIndex(1 paths)[s3a://bucket/table]
);

CREATE TABLE operator_groups (                -- one row per operator and group that worked for it, by the framework's own account
    scope_id VARCHAR NOT NULL,                -- the operator's scope
    node_id INTEGER NOT NULL,                 -- the operator
    group_id VARCHAR NOT NULL                 -- the group
);

CREATE TABLE operator_metrics (               -- one row per metric of an operator and group that added to it
    scope_id VARCHAR NOT NULL,                -- the operator's scope
    node_id INTEGER NOT NULL,                 -- the operator
    group_id VARCHAR NOT NULL,                -- the group
    name VARCHAR NOT NULL,                    -- as the plan names it: sort time, number of output rows
    unit VARCHAR NOT NULL,                    -- ms, bytes or count
    value DOUBLE NOT NULL                     -- what the group's units added, summed over them
);

CREATE TABLE operator_times (                 -- one row per group and operator that its units' time went to; the rows of a group sum to its units' durations
    group_id VARCHAR NOT NULL,                -- the group
    scope_id VARCHAR,                         -- the scope of its operators
    node_id INTEGER,                          -- the operator in its plan; NULL where the time belongs to none that is known
    name VARCHAR NOT NULL,                    -- the operator's name, or what the time went to instead
    basis VARCHAR NOT NULL,                   -- what says so: samples, plan metrics, unit metrics, flow metrics (of waiting for units of its pipeline), nothing
    <resource>_ms DOUBLE NOT NULL,            -- time of units on <resource>
    other_ms DOUBLE NOT NULL                  -- time on none of the resources or unknown
);

CREATE TABLE group_inputs (                   -- one row per group and file system that it reads, where that is known
    group_id VARCHAR NOT NULL,                -- the group
    root VARCHAR NOT NULL                     -- hdfs://namenode, s3a://bucket, file:; memory: of what workers kept there
);

CREATE TABLE nodes (                          -- one row per node of the execution DAG
    node_id VARCHAR NOT NULL,                 -- a group_id, or for an interval between groups the coordinator's word and a number: driver:7
    kind VARCHAR NOT NULL,                    -- group, coordinator or transfer
    name VARCHAR,                             -- what a user recognises
    group_id VARCHAR,                         -- of a group
    scope_id VARCHAR,                         -- the scope it belongs to
    start_ms DOUBLE NOT NULL,                 -- first launch of a group; start of a coordinator's interval
    end_ms DOUBLE NOT NULL,                   -- end
    <resource>_ms DOUBLE NOT NULL,            -- wall-clock of the node on <resource>
    other_ms DOUBLE NOT NULL                  -- wall-clock on none of the resources or unknown; with theirs it sums to end_ms - start_ms
);

CREATE TABLE edges (                          -- one row per dependency between nodes
    source VARCHAR NOT NULL,                  -- node_id
    target VARCHAR NOT NULL,                  -- node_id
    kind VARCHAR NOT NULL,                    -- as in dependencies
    why VARCHAR NOT NULL                      -- what ties the two, in a word or two
);

CREATE TABLE stacks (                         -- one row per distinct sampled stack
    stack_id INTEGER NOT NULL,                -- number within this file
    frames VARCHAR[] NOT NULL,                -- 'package.Class.method:line', leaf first
    truncated BOOLEAN NOT NULL,               -- whether the sampler cut it
    deciding_depth INTEGER,                   -- 0-based position of the frame that decides; NULL where none does
    index_name VARCHAR,                       -- index of the deciding function
    symbol VARCHAR,                           -- the deciding function
    skipped VARCHAR,                          -- why frames above it were passed over: comma separated reasons, in order, without repetition
    operator VARCHAR,                         -- kind of operator whose frame is nearest the leaf; NULL where none is
    pipeline INTEGER,                         -- number of the generated code it is in: 3 of WholeStageCodegen (3); NULL where in none
    <resource> DOUBLE                         -- the deciding function's share of <resource>; NULL where none decides
);

CREATE TABLE samples (                        -- one row per sample of a thread, or per interval that a recording measured
    time_ms DOUBLE NOT NULL,                  -- when, on the log's clock; start of an interval
    worker_id VARCHAR,                        -- worker of the recording; NULL where none matches
    thread VARCHAR,                           -- thread, by name and number
    stack_id INTEGER,                         -- its stack
    kind VARCHAR NOT NULL,                    -- execution, native, wall, cpu, running (it could), untimed (a mixture that all units got alike), or the interval's: park, sleep, wait, enter, socket read …; waking: the end of the row's wait that the same moment has another row of, spent waiting for a CPU
    weight_ms DOUBLE NOT NULL,                -- wall-clock it stands for
    bytes BIGINT,                             -- bytes moved in an interval of input or output
    unit_id BIGINT                            -- the unit that held the thread; NULL for other threads
);

CREATE TABLE loads (                          -- one row per measurement that a recording has of its whole process' CPU time (JFR's jdk.CPULoad)
    worker_id VARCHAR,                        -- worker of the recording
    time_ms DOUBLE NOT NULL,                  -- end of the interval that was measured; it began with the measurement before
    cpu_cores DOUBLE NOT NULL,                -- CPU time of the process per time: all its threads, so also compilers, collectors and servers
    machine_cores DOUBLE,                     -- the same of all processes of its machine
    processors INTEGER NOT NULL,              -- hardware threads of the machine
    quota_cores DOUBLE,                       -- CPU quota of the process' container; NULL where it has none or the recording does not say
    throttled DOUBLE,                         -- share of the quota's periods that ended with the quota used up, in this interval; NULL where not measured
    received_bytes_per_s DOUBLE,              -- what the network devices of its machine or container received, without its loopback and those that hand on what another carries; NULL where not measured
    sent_bytes_per_s DOUBLE                   -- the same of what they sent
);

CREATE TABLE thread_loads (                   -- one row per measurement that a recording has of one thread's CPU time (JFR's jdk.ThreadCPULoad); threads that used next to none have no row
    worker_id VARCHAR,                        -- worker of the recording
    thread VARCHAR NOT NULL,                  -- thread, by name and number, as in samples
    start_ms DOUBLE NOT NULL,                 -- start of the interval that was measured
    end_ms DOUBLE NOT NULL,                   -- its end
    cpu_ms DOUBLE NOT NULL,                   -- CPU time of the thread in it, the kernel's on its behalf included
    unit_id BIGINT                            -- the unit that held the thread; NULL for other threads, and where threads are not named by what they run
);

CREATE TABLE import_stats (                   -- one row per kind of thing that reading did not take as it stood
    name VARCHAR NOT NULL,                    -- short name, stable
    severity VARCHAR NOT NULL,                -- info, data loss or error
    origin VARCHAR NOT NULL,                  -- the input file
    count BIGINT NOT NULL,                    -- how often
    first_where VARCHAR,                      -- first place: line, byte or event
    meaning VARCHAR NOT NULL                  -- what it means for the answers, one sentence
);
