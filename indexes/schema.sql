-- The contract of CrystalPerf: what a resource index and a run file hold.
--
-- `indexer` writes an index, `query` reads it and writes run files, everything else only reads.  Both are DuckDB
-- files (of a storage version that every DuckDB since 1.2 opens).  The comment after a column is its definition;
-- indexes.create() puts it into the file too (COMMENT ON), so `SELECT * FROM duckdb_columns()` explains any file.
--
-- A resource is a class of the classifiers.  The list of resources is read from here: every column `code_<resource>`
-- of `functions` names one.  To add a resource, add its columns beside those of cpu, disk and net and train a model
-- with one more class.  Keys are not declared to DuckDB, whose structures for them would make an index half as large
-- again; tests check them.  No source text and no documentation text is stored, in either kind of file.
--
-- Times are milliseconds since the application started (`runs.started_at_ms`), on the driver's clock, unless the
-- name says otherwise.  NULL means unknown, never zero.

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
    code_cpu FLOAT,                           -- probability of cpu by the code classifier; NULL where it was not run
    code_disk FLOAT,                          -- probability of disk by the code classifier
    code_net FLOAT,                           -- probability of net by the code classifier
    doc_cpu FLOAT,                            -- probability of cpu by the documentation classifier; NULL without documentation
    doc_disk FLOAT,                           -- probability of disk by the documentation classifier
    doc_net FLOAT,                            -- probability of net by the documentation classifier
    cpu FLOAT NOT NULL,                       -- share of the function's time on the CPU, by both classifiers
    disk FLOAT NOT NULL,                      -- share of the function's time on storage
    net FLOAT NOT NULL,                       -- share of the function's time on the network; cpu + disk + net = 1
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
    callee_name VARCHAR NOT NULL,             -- simple name called
    callee_id INTEGER                         -- the called function where the name leaves no doubt, else NULL
);

CREATE TABLE build_warnings (                 -- one row per source file that could not be indexed in full
    file VARCHAR NOT NULL,                    -- the file
    problem VARCHAR NOT NULL                  -- what happened and what it cost
);

-- part: run ----------------------------------------------------------------------------------------------------

CREATE TABLE runs (                           -- the one application this file describes
    app_id VARCHAR NOT NULL,                  -- the framework's id of the application
    attempt VARCHAR,                          -- attempt of the application, where it has attempts
    name VARCHAR,                             -- name the user gave it
    framework VARCHAR NOT NULL,               -- spark
    framework_version VARCHAR,                -- as the log states it
    java_version VARCHAR,                     -- of the driver, as the log states it
    started_at_ms BIGINT NOT NULL,            -- Unix time in ms of the start of the application: time zero of this file
    duration_ms DOUBLE NOT NULL,              -- start of the application to its end, or to the last event where the log has no end
    complete BOOLEAN NOT NULL,                -- whether the log reaches the end of the application
    scheduler VARCHAR,                        -- FIFO or FAIR
    properties MAP(VARCHAR, VARCHAR),         -- settings the answers depend on; nothing else of the configuration is kept
    libraries VARCHAR[]                       -- names of the archives on its class path, without .jar: netty-common-4.1.118.Final
);

CREATE TABLE executors (                      -- one row per executor; the driver is executor 'driver'
    executor_id VARCHAR NOT NULL,             -- the framework's id
    host VARCHAR,                             -- node it ran on
    slots INTEGER,                            -- tasks it can run at a time: its cores divided by the cores per task
    cores INTEGER,                            -- cores it was given
    memory_bytes BIGINT,                      -- memory it was given: the JVM heap in Spark
    added_ms DOUBLE NOT NULL,                 -- when it registered
    removed_ms DOUBLE,                        -- when it was lost; NULL where it lived to the end
    removed_reason VARCHAR,                   -- why it was lost
    clock_offset_ms DOUBLE,                   -- to add to times of its recording to get the driver's clock; NULL without samples
    pid BIGINT                                -- process of its recording, where one was matched to it
);

CREATE TABLE sql_executions (                 -- one row per SQL query (Spark: SparkListenerSQLExecutionStart)
    sql_id BIGINT NOT NULL,                   -- execution id
    root_sql_id BIGINT,                       -- execution that started this one
    name VARCHAR,                             -- description, what the user would recognise
    call_site VARCHAR,                        -- where in the user's program
    start_ms DOUBLE NOT NULL,                 -- submitted
    end_ms DOUBLE,                            -- ended; NULL where the log has no end
    error VARCHAR                             -- why it failed
);

CREATE TABLE operators (                      -- one row per operator of the last plan of a SQL query
    sql_id BIGINT NOT NULL,                   -- its query
    node_id INTEGER NOT NULL,                 -- position in the plan, pre-order, 0 is the root
    parent_id INTEGER,                        -- the operator that consumes its rows
    name VARCHAR NOT NULL,                    -- node name: HashAggregate, Exchange, Scan parquet
    detail VARCHAR,                           -- start of the operator's own description
    location VARCHAR,                         -- where a scan reads, as the plan says: InMemoryFileIndex(1 paths)[s3a://bucket/table]
    accumulators BIGINT[]                     -- ids of its metrics, which join it with stages
);

CREATE TABLE operator_metrics (               -- one row per metric of an operator and stage attempt that added to it
    sql_id BIGINT NOT NULL,                   -- the operator's query
    node_id INTEGER NOT NULL,                 -- the operator
    stage_id INTEGER NOT NULL,                -- the stage
    stage_attempt INTEGER NOT NULL,           -- and the attempt of it
    name VARCHAR NOT NULL,                    -- as the plan names it: sort time, number of output rows
    unit VARCHAR NOT NULL,                    -- ms, bytes or count
    value DOUBLE NOT NULL                     -- what the stage's tasks added, summed over them
);

CREATE TABLE operator_times (                 -- one row per stage attempt and operator that its task time went to; the rows of a stage sum to its tasks' durations
    stage_id INTEGER NOT NULL,                -- the stage
    stage_attempt INTEGER NOT NULL,           -- and the attempt of it
    sql_id BIGINT,                            -- the SQL query of the stage
    node_id INTEGER,                          -- the operator in its plan; NULL where the time belongs to none that is known
    name VARCHAR NOT NULL,                    -- the operator's name, or what the time went to: starting and ending tasks, not attributed
    basis VARCHAR NOT NULL,                   -- what says so: samples, SQL metrics, task metrics, nothing
    cpu_ms DOUBLE NOT NULL,                   -- task time on the CPU
    disk_ms DOUBLE NOT NULL,                  -- task time on storage
    net_ms DOUBLE NOT NULL,                   -- task time on the network
    other_ms DOUBLE NOT NULL                  -- task time on none of them or unknown
);

CREATE TABLE jobs (                           -- one row per job
    job_id INTEGER NOT NULL,                  -- the framework's id
    name VARCHAR,                             -- description or call site
    sql_id BIGINT,                            -- the SQL query it belongs to
    job_group VARCHAR,                        -- job group, e.g. one streaming query
    submit_ms DOUBLE NOT NULL,                -- submitted
    end_ms DOUBLE,                            -- ended; NULL where the log has no end
    status VARCHAR NOT NULL,                  -- succeeded, failed or unfinished
    stage_ids INTEGER[] NOT NULL              -- the stages it needs, also those skipped
);

CREATE TABLE stages (                         -- one row per attempt of a stage that ran, or was skipped
    stage_id INTEGER NOT NULL,                -- the framework's id
    attempt INTEGER NOT NULL,                 -- attempt of the stage, from 0
    job_id INTEGER,                           -- first job that needs it
    sql_id BIGINT,                            -- SQL query of that job
    name VARCHAR,                             -- call site, what the framework's own UI shows
    parents INTEGER[] NOT NULL,               -- stages whose output it reads
    task_count INTEGER NOT NULL,              -- tasks it has by its own account, which lost events do not change
    submit_ms DOUBLE,                         -- submitted; NULL where it was skipped
    first_launch_ms DOUBLE,                   -- launch of its first task
    end_ms DOUBLE,                            -- ended
    status VARCHAR NOT NULL,                  -- succeeded, failed, skipped or unfinished
    failure VARCHAR,                          -- why it failed
    resource_profile INTEGER,                 -- the framework's resource profile id
    pool VARCHAR,                             -- scheduling pool under FAIR
    accumulators BIGINT[],                    -- ids of metrics its tasks updated, which join it with operators
    location VARCHAR,                         -- storage that it reads outside of SQL: hdfs://namenode/data
    kind VARCHAR,                             -- what its tasks read and write: scan, shuffle, python …, comma separated
    cpu_ms DOUBLE,                            -- task time on the CPU, summed over its tasks
    disk_ms DOUBLE,                           -- task time on storage
    net_ms DOUBLE,                            -- task time on the network
    other_ms DOUBLE                           -- task time on none of them or unknown; the four sum to the tasks' durations
);

CREATE TABLE tasks (                          -- one row per task attempt
    task_id BIGINT NOT NULL,                  -- the framework's id, unique in the application
    stage_id INTEGER NOT NULL,                -- its stage
    stage_attempt INTEGER NOT NULL,           -- and the attempt of it
    partition INTEGER,                        -- index within the stage
    attempt INTEGER,                          -- attempt of the task, from 0
    executor_id VARCHAR,                      -- where it ran
    host VARCHAR,                             -- where it ran
    launch_ms DOUBLE NOT NULL,                -- launched by the driver
    finish_ms DOUBLE NOT NULL,                -- end known to the driver; where the log has none, the earliest of its stage's end, its executor's and the run's
    status VARCHAR NOT NULL,                  -- succeeded, failed, killed or unfinished
    reason VARCHAR,                           -- why it did not succeed
    locality VARCHAR,                         -- PROCESS_LOCAL, NODE_LOCAL, RACK_LOCAL, ANY, NO_PREF
    speculative BOOLEAN,                      -- whether it is a speculative copy
    scheduler_delay_ms DOUBLE,                -- duration less everything the executor accounts for
    deserialize_ms DOUBLE,                    -- unpacking the task
    deserialize_cpu_ms DOUBLE,                -- CPU time of that
    run_ms DOUBLE,                            -- running the task's code, as the executor measured
    run_cpu_ms DOUBLE,                        -- CPU time of that thread
    result_serialize_ms DOUBLE,               -- packing the result
    getting_result_ms DOUBLE,                 -- the driver fetching the result
    gc_ms DOUBLE,                             -- the JVM's garbage collection while it ran, any thread's
    fetch_wait_ms DOUBLE,                     -- blocked on remote shuffle blocks
    shuffle_write_ms DOUBLE,                  -- blocked in writing shuffle output
    input_bytes BIGINT,                       -- read from storage or cache
    output_bytes BIGINT,                      -- written to storage
    shuffle_remote_bytes BIGINT,              -- shuffle read from other executors
    shuffle_local_bytes BIGINT,               -- shuffle read from the same executor
    shuffle_write_bytes BIGINT,               -- shuffle written
    spill_memory_bytes BIGINT,                -- size in memory of what was spilled
    spill_disk_bytes BIGINT,                  -- size on disk of what was spilled
    peak_memory_bytes BIGINT,                 -- peak execution memory
    result_bytes BIGINT,                      -- size of the result sent to the driver
    input_rows BIGINT,                        -- records read from storage and shuffle
    sample_ms DOUBLE,                         -- time that stack samples account for; NULL without samples
    cpu_ms DOUBLE,                            -- time on the CPU
    disk_ms DOUBLE,                           -- time on storage
    net_ms DOUBLE,                            -- time on the network
    other_ms DOUBLE                           -- time on none of them or unknown; the four sum to finish_ms - launch_ms
);

CREATE TABLE nodes (                          -- one row per node of the execution DAG
    node_id VARCHAR NOT NULL,                 -- 'stage:3.0' (id.attempt) or 'driver:7' (the driver alone, counted from 0)
    kind VARCHAR NOT NULL,                    -- stage or driver
    name VARCHAR,                             -- what a user recognises
    stage_id INTEGER,                         -- of a stage
    stage_attempt INTEGER,                    -- of a stage
    sql_id BIGINT,                            -- SQL query it belongs to
    start_ms DOUBLE NOT NULL,                 -- first launch of a stage; start of a driver interval
    end_ms DOUBLE NOT NULL,                   -- end
    cpu_ms DOUBLE NOT NULL,                   -- wall-clock of the node on the CPU; the four sum to end_ms - start_ms
    disk_ms DOUBLE NOT NULL,                  -- wall-clock of the node on storage
    net_ms DOUBLE NOT NULL,                   -- wall-clock of the node on the network
    other_ms DOUBLE NOT NULL                  -- wall-clock of the node on none of them or unknown
);

CREATE TABLE edges (                          -- one row per dependency between nodes: target starts when all its sources ended
    source VARCHAR NOT NULL,                  -- node_id
    target VARCHAR NOT NULL,                  -- node_id
    why VARCHAR NOT NULL                      -- shuffle, job barrier, submission order, driver
);

CREATE TABLE stacks (                         -- one row per distinct sampled stack
    stack_id INTEGER NOT NULL,                -- number within this file
    frames VARCHAR[] NOT NULL,                -- 'package.Class.method:line', leaf first
    truncated BOOLEAN NOT NULL,               -- whether the sampler cut it
    deciding_depth INTEGER,                   -- 0-based position of the frame that decides; NULL where none does
    index_name VARCHAR,                       -- index of the deciding function
    symbol VARCHAR,                           -- the deciding function
    skipped VARCHAR,                          -- why frames above it were passed over: comma separated reasons, in order, without repetition
    operator VARCHAR,                         -- kind of SQL operator whose frame is nearest the leaf; NULL where none is
    pipeline INTEGER,                         -- number of the generated code it is in: 3 of WholeStageCodegen (3); NULL where in none
    cpu DOUBLE,                               -- the deciding function's vector; NULL where none decides
    disk DOUBLE,                              -- share of storage
    net DOUBLE                                -- share of the network
);

CREATE TABLE samples (                        -- one row per sample of a thread, or per interval that a recording measured
    time_ms DOUBLE NOT NULL,                  -- when, on the driver's clock; start of an interval
    executor_id VARCHAR,                      -- executor of the recording; NULL where none matches
    thread VARCHAR,                           -- thread, by name and number
    stack_id INTEGER,                         -- its stack
    kind VARCHAR NOT NULL,                    -- execution, native, wall, cpu, running (it could), untimed (a mixture that all tasks got alike), or the interval's: park, sleep, wait, enter, socket read …; waking: the end of the row's wait that the same moment has another row of, spent waiting for a CPU
    weight_ms DOUBLE NOT NULL,                -- wall-clock it stands for
    bytes BIGINT,                             -- bytes moved in an interval of input or output
    task_id BIGINT                            -- the task that held the thread; NULL for other threads
);

CREATE TABLE loads (                          -- one row per measurement that a recording has of its whole process' CPU time (JFR's jdk.CPULoad)
    executor_id VARCHAR,                      -- executor of the recording, or driver
    time_ms DOUBLE NOT NULL,                  -- end of the interval that was measured; it began with the measurement before
    cpu_cores DOUBLE NOT NULL,                -- CPU time of the process per time: all its threads, so also compilers, collectors and servers
    machine_cores DOUBLE,                     -- the same of all processes of its machine
    processors INTEGER NOT NULL               -- hardware threads of the machine
);

CREATE TABLE import_stats (                   -- one row per kind of thing that reading did not take as it stood
    name VARCHAR NOT NULL,                    -- short name, stable
    severity VARCHAR NOT NULL,                -- info, data loss or error
    origin VARCHAR NOT NULL,                  -- the input file
    count BIGINT NOT NULL,                    -- how often
    first_where VARCHAR,                      -- first place: line, byte or event
    meaning VARCHAR NOT NULL                  -- what it means for the answers, one sentence
);
