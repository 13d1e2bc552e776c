-- Tables of a Spark run in addition to those of every run, in Spark's own terms.

CREATE TABLE spark_jobs (                     -- one row per job
    job_id INTEGER NOT NULL,                  -- Spark's id
    name VARCHAR,                             -- description or call site
    sql_id BIGINT,                            -- its SQL query
    job_group VARCHAR,                        -- job group, e.g. one streaming query
    submit_ms DOUBLE NOT NULL,                -- submitted
    end_ms DOUBLE,                            -- ended; NULL if the log has no end
    status VARCHAR NOT NULL,                  -- succeeded, failed or unfinished
    stage_ids INTEGER[] NOT NULL              -- the stages it needs, also those skipped
);

CREATE TABLE spark_stages (                   -- one row per attempt of a stage; its other columns are in stages
    stage_id VARCHAR NOT NULL,                -- of stages
    spark_stage_id INTEGER NOT NULL,          -- Spark's id
    attempt INTEGER NOT NULL,                 -- attempt of the stage, from 0
    job_id INTEGER,                           -- first job that needs it
    sql_id BIGINT,                            -- SQL query of that job
    parents INTEGER[] NOT NULL,               -- stages that it reads the output of
    resource_profile INTEGER,                 -- Spark's resource profile id
    accumulators BIGINT[],                    -- ids of the metrics that its tasks updated, to join it with operators
    location VARCHAR,                         -- storage that it reads outside of SQL: hdfs://namenode/data; or memory:/
    waited_for VARCHAR,                       -- if it waited for slots while others were free: barrier (slots for all of its tasks at once), profile (executors of its resource profile), executors (those that came later) or unknown
    slots_there INTEGER,                      -- slots that it could use when it was submitted, if it waited
    slots_free INTEGER,                       -- of these, those that were free
    barrier BOOLEAN,                          -- whether it is a barrier stage: its tasks start together
    usable_slots INTEGER,                     -- slots that its resource profile lets it use at a time; NULL if these are all of the run
    slots_per_task DOUBLE,                    -- slots of an executor that one of its tasks takes, by its resource profile
    push_mergers INTEGER                      -- with push-based shuffle, the shuffle services that merge its output; NULL without
);

CREATE TABLE spark_tasks (                    -- one row per task attempt; its other columns are in tasks
    task_id BIGINT NOT NULL,                  -- Spark's task id, as in tasks
    locality VARCHAR,                         -- PROCESS_LOCAL, NODE_LOCAL, RACK_LOCAL, ANY, NO_PREF
    speculative BOOLEAN,                      -- whether it is a speculative copy
    deserialize_ms DOUBLE,                    -- deserializing the task
    deserialize_cpu_ms DOUBLE,                -- CPU time of that
    run_cpu_ms DOUBLE,                        -- CPU time of the task's thread while it ran the task's code
    result_serialize_ms DOUBLE,               -- serializing the result
    getting_result_ms DOUBLE,                 -- fetching the result in the driver
    shuffle_write_ms DOUBLE,                  -- blocked in writing shuffle output
    result_bytes BIGINT,                      -- size of the result sent to the driver
    merged_read_bytes BIGINT,                 -- of the shuffled bytes that it read, those in blocks that push-based shuffle had merged
    merge_fallbacks BIGINT                    -- merged blocks that it could not read, so that it read the original ones
);

CREATE TABLE spark_batches (                  -- one row per trigger of a streaming query that reported progress, also without input
    query_id VARCHAR NOT NULL,                -- Spark's id of the streaming query, the same after a restart from its checkpoint
    run_id VARCHAR,                           -- Spark's id of this start of it, the job group of its jobs
    name VARCHAR,                             -- name the user gave the query
    sink VARCHAR,                             -- its sink
    batch_id BIGINT NOT NULL,                 -- number of the batch, from 0; without input, that of the next one
    start_ms DOUBLE NOT NULL,                 -- the trigger began
    input_rows DOUBLE,                        -- rows read from all sources
    input_rows_per_s DOUBLE,                  -- rows read, over the time since the previous trigger
    processed_rows_per_s DOUBLE,              -- rows read, over the time of this trigger: the rate that it can process
    trigger_ms DOUBLE,                        -- the whole trigger (triggerExecution); the parts below add up to nearly all of it
    latest_offset_ms DOUBLE,                  -- querying the sources for new data (latestOffset; getOffset before Spark 3)
    query_planning_ms DOUBLE,                 -- planning the batch (queryPlanning)
    wal_commit_ms DOUBLE,                     -- writing the offsets to read to the checkpoint (walCommit)
    get_batch_ms DOUBLE,                      -- creating the sources' data frames (getBatch)
    add_batch_ms DOUBLE,                      -- running the batch and passing it to the sink (addBatch); NULL without input
    commit_offsets_ms DOUBLE,                 -- writing the processed offsets to the checkpoint (commitOffsets)
    backlog_rows DOUBLE,                      -- backlog of the sources, by their own count: offsets behind the latest, outstanding files
    state_rows DOUBLE,                        -- rows of state that its operators keep between batches
    state_bytes DOUBLE,                       -- memory of this state
    reads_files BOOLEAN                       -- whether a source reads files
);

CREATE TABLE spark_statements (               -- one row per statement that a client sent to a Spark Connect or Thrift server
    scope_id VARCHAR NOT NULL,                -- of scopes: statement:0, in the order of their starts
    server VARCHAR NOT NULL,                  -- connect or thrift
    statement_id VARCHAR NOT NULL,            -- the server's id of it
    session_id VARCHAR,                       -- session of the client
    user_name VARCHAR,                        -- user of the session, as the client names it
    text VARCHAR,                             -- its SQL text, or the start of its plan
    start_ms DOUBLE NOT NULL,                 -- received
    end_ms DOUBLE,                            -- its rows were computed, or it failed; NULL if the log has no end
    closed_ms DOUBLE,                         -- the client had its rows; NULL if the log does not say
    status VARCHAR NOT NULL,                  -- succeeded, failed, canceled or unfinished
    error VARCHAR,                            -- why it failed
    row_count BIGINT                          -- rows for the client; only of Connect
);

CREATE TABLE spark_stream_sources (           -- one row per source of each trigger in spark_batches
    query_id VARCHAR NOT NULL,                -- of spark_batches
    run_id VARCHAR,                           -- of spark_batches
    batch_id BIGINT NOT NULL,                 -- of spark_batches
    start_ms DOUBLE NOT NULL,                 -- the trigger began
    source INTEGER NOT NULL,                  -- number of the source, from 0
    description VARCHAR,                      -- the source, as Spark names it
    input_rows DOUBLE,                        -- rows read from it
    input_rows_per_s DOUBLE,                  -- rows read, over the time since the previous trigger
    processed_rows_per_s DOUBLE,              -- rows read, over the time of this trigger
    backlog_rows DOUBLE                       -- its backlog, by its own count: offsets behind the latest, outstanding files
);

CREATE TABLE spark_stream_states (            -- one row per operator with state of each trigger in spark_batches; times are sums over its partitions
    query_id VARCHAR NOT NULL,                -- of spark_batches
    run_id VARCHAR,                           -- of spark_batches
    batch_id BIGINT NOT NULL,                 -- of spark_batches
    start_ms DOUBLE NOT NULL,                 -- the trigger began
    operator INTEGER NOT NULL,                -- number of the operator, from 0
    name VARCHAR,                             -- stateStoreSave, dedupe, symmetricHashJoin, ...
    partitions DOUBLE,                        -- its partitions, each with a state store; fixed by the checkpoint
    rows DOUBLE,                              -- rows of state that it keeps
    bytes DOUBLE,                             -- memory of this state
    updated_rows DOUBLE,                      -- rows of state that the batch added or changed
    removed_rows DOUBLE,                      -- rows of state that the batch removed, because they were older than the watermark
    late_rows DOUBLE,                         -- input rows that the batch dropped, because they were older than the watermark
    updates_ms DOUBLE,                        -- adding and changing rows (allUpdatesTimeMs)
    removals_ms DOUBLE,                       -- removing rows (allRemovalsTimeMs)
    commit_ms DOUBLE,                         -- committing the state stores (commitTimeMs)
    rocksdb_get_ms DOUBLE,                    -- of RocksDB: reading rows (rocksdbGetLatency)
    rocksdb_put_ms DOUBLE,                    -- of RocksDB: writing rows (rocksdbPutLatency)
    rocksdb_flush_ms DOUBLE,                  -- of RocksDB's commit: writing its memory table to a file
    rocksdb_compact_ms DOUBLE,                -- of RocksDB's commit: merging its files
    rocksdb_checkpoint_ms DOUBLE,             -- of RocksDB's commit: taking a checkpoint
    rocksdb_file_sync_ms DOUBLE,              -- of RocksDB's commit: copying files to the checkpoint of the query
    rocksdb_stall_ms DOUBLE,                  -- of RocksDB: writes waited for flushes and merges
    rocksdb_cache_hits DOUBLE,                -- of RocksDB: blocks that were read from its cache
    rocksdb_cache_misses DOUBLE,              -- of RocksDB: blocks that were read from files
    rocksdb_copied_bytes DOUBLE,              -- of RocksDB's commit: bytes copied to the checkpoint of the query
    rocksdb_file_bytes DOUBLE                 -- of RocksDB: size of its files
);

CREATE TABLE spark_settings (                 -- one row per setting that the command line did not decide
    name VARCHAR NOT NULL,                    -- spark.sql.shuffle.partitions, ...
    set_by VARCHAR NOT NULL                   -- program: its builder; session: spark.conf.set or SET; unclear: its builder, or a file of settings
);

CREATE TABLE spark_resource_requests (        -- one row per resource that a resource profile requests; profile 0 has the settings of the application
    profile_id INTEGER NOT NULL,              -- Spark's resource profile id, as in spark_stages
    requested_by VARCHAR NOT NULL,            -- executor or task
    resource VARCHAR NOT NULL,                -- cores, memory, offHeap, cpus (of a task), gpu, ...
    amount DOUBLE NOT NULL                    -- for each executor or task; memory in bytes
);

CREATE TABLE spark_driver_metrics (           -- one row per metric of an operator that the driver itself updated; those of tasks are in operator_metrics
    scope_id VARCHAR NOT NULL,                -- SQL query
    node_id INTEGER NOT NULL,                 -- of operators
    name VARCHAR NOT NULL,                    -- number of files read, size of files read, time to build, ...
    unit VARCHAR NOT NULL,                    -- ms, bytes or count
    value DOUBLE NOT NULL                     -- the amount
);

CREATE TABLE spark_engine_operators (         -- one row per operator that did work, of plans of which an engine (Comet, Gluten, RAPIDS, Photon, Auron) ran a part
    scope_id VARCHAR NOT NULL,                -- SQL query
    node_id INTEGER NOT NULL,                 -- of operators
    engine VARCHAR NOT NULL,                  -- comet, gluten, rapids, photon or auron
    ran_in VARCHAR NOT NULL,                  -- where it ran: engine, jvm (Spark itself), or conversion (of rows and columns between the two)
    named BOOLEAN NOT NULL,                   -- whether it did work itself; false for generated code as a whole
    fallback INTEGER,                         -- number of the group of connected operators on the JVM that it belongs to, or is next to; NULL for others
    reason VARCHAR                            -- why it stayed on the JVM, as the engine logs it
);

CREATE TABLE spark_gpu_times (                -- one row per stage whose tasks held a GPU, as RAPIDS 23.04 and newer log it; sums over tasks
    stage_id VARCHAR NOT NULL,                -- of stages
    held_ms DOUBLE NOT NULL,                  -- time in which tasks held the GPU (gpuTime); several may hold it at a time
    waited_ms DOUBLE NOT NULL                 -- time in which tasks waited for it (gpuSemaphoreWait)
);

CREATE TABLE spark_executor_metrics (         -- one row per executor and stage whose memory the log records (Spark 3.0 and newer); peaks while tasks of the stage ran
    worker_id VARCHAR NOT NULL,               -- executor, or driver
    stage_id VARCHAR,                         -- of stages; NULL for peaks outside of stages
    jvm_heap_bytes BIGINT NOT NULL,           -- heap in use, garbage included
    jvm_off_heap_bytes BIGINT NOT NULL,       -- the JVM's own memory outside the heap: classes, compiled code
    heap_execution_bytes BIGINT NOT NULL,     -- of the heap, memory of sorts, joins and aggregations as Spark manages it
    heap_storage_bytes BIGINT NOT NULL,       -- of the heap, cached rows and broadcasts
    heap_unified_bytes BIGINT NOT NULL,       -- both together
    off_heap_execution_bytes BIGINT NOT NULL, -- the same outside the heap (spark.memory.offHeap.enabled)
    off_heap_storage_bytes BIGINT NOT NULL,   -- the same outside the heap
    off_heap_unified_bytes BIGINT NOT NULL,   -- both together
    direct_bytes BIGINT NOT NULL,             -- direct buffers, for example of the network
    mapped_bytes BIGINT NOT NULL,             -- files that are mapped to memory
    jvm_resident_bytes BIGINT NOT NULL,       -- resident memory of the JVM; 0 without spark.executor.processTreeMetrics.enabled
    python_resident_bytes BIGINT NOT NULL,    -- resident memory of its Python workers; 0 without that
    other_resident_bytes BIGINT NOT NULL,     -- resident memory of its other processes; 0 without that
    minor_gcs BIGINT NOT NULL,                -- young collections since the executor started
    minor_gc_ms BIGINT NOT NULL,              -- time of these
    major_gcs BIGINT NOT NULL,                -- full collections since the executor started
    major_gc_ms BIGINT NOT NULL               -- time of these
);

CREATE TABLE spark_python_times (             -- one row per stage and part of the time of its Python workers, as profiles of them show it
    stage_id VARCHAR NOT NULL,                -- of stages
    worker_id VARCHAR,                        -- executor in the name of the profile; NULL if it names none
    part VARCHAR NOT NULL,                    -- user (functions of users), serialization (Arrow or pickle, and PySpark's calls), start (imports, reading functions) or wait (for the JVM)
    matched_by VARCHAR NOT NULL,              -- how the stage is known: time, function (its plan names it), operator, only stage, or share (in proportion to the tasks' waiting)
    recorder VARCHAR NOT NULL,                -- samples (of stacks), or calls (cProfile, whose own cost is in the times)
    origin VARCHAR NOT NULL,                  -- name of the profile
    time_ms DOUBLE NOT NULL                   -- time of workers, summed over them
);

CREATE TABLE spark_python_functions (         -- one row per stage and user's Python function in profiles of its workers
    stage_id VARCHAR NOT NULL,                -- of stages
    udf VARCHAR NOT NULL,                     -- the outermost function of the user, which Spark called: module.function
    function VARCHAR NOT NULL,                -- the function: module.function
    file VARCHAR NOT NULL,                    -- its file, as the profile has it
    recorder VARCHAR NOT NULL,                -- samples or calls
    origin VARCHAR NOT NULL,                  -- name of the profile
    line INTEGER,                             -- its line with the most time; of calls its first line
    calls BIGINT,                             -- number of calls; NULL for samples
    own_ms DOUBLE NOT NULL,                   -- time in it and in libraries that it called, summed over workers
    total_ms DOUBLE NOT NULL                  -- with the user's functions that it called
);

CREATE TABLE spark_python_labels (            -- one row per stage, user's Python function in samples of its workers, index and resource
    stage_id VARCHAR NOT NULL,                -- of stages
    function VARCHAR NOT NULL,                -- the innermost function of the user: module.function
    index_name VARCHAR,                       -- the index that labels it, or the library that it called; NULL for other
    resource VARCHAR NOT NULL,                -- cpu, disk or net, or other if no index labels it
    origin VARCHAR NOT NULL,                  -- name of the profile
    time_ms DOUBLE NOT NULL                   -- its time on that resource by its label, summed over workers
);

CREATE TABLE spark_python_memory (            -- one row per stage and line of a user's Python function in memory profiles of its workers
    stage_id VARCHAR NOT NULL,                -- of stages
    function VARCHAR NOT NULL,                -- the function: module.function
    file VARCHAR NOT NULL,                    -- its file, as the profile has it
    origin VARCHAR NOT NULL,                  -- name of the profile
    line INTEGER NOT NULL,                    -- its line; the first one is that at which the function starts
    calls BIGINT NOT NULL,                    -- number of calls of the function
    memory_bytes DOUBLE NOT NULL,             -- memory of a worker after the line, mean of the calls that ran it
    grown_bytes DOUBLE NOT NULL               -- increase by the line, mean of all calls; 0 for the first line
);
