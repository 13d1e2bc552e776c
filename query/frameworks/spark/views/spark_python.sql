-- Task time of the stages of a Spark run with Python workers, by what these and the JVM did, as profiles show it.
--
-- one row per stage with Python workers:
--   stage_id          the stage
--   recorder          samples (of stacks), or calls (cProfile, which shows functions only); samples if there are both;
--                  NULL without a profile (spark_python_times)
--   task_ms           time in which its tasks ran, of executors with profiles if the profiles name executors
--   user_ms           of that, workers ran functions of users; NULL without a profile
--   serialization_ms  of that, workers converted rows from and to Arrow or pickle, or called functions; NULL for calls
--   start_ms          of that, workers imported modules and read functions; NULL for calls
--   jvm_ms            of that, tasks were on the CPU in the JVM while no worker was busy: at most their CPU time
--   wait_ms           the rest: both waited, for each other, for storage or for shuffled rows; includes parts that are
--                  NULL
--   function          the user's function with the most time of its own: module.function
--   file              its file
--   line              its line with the most time; of calls its first line
--   function_ms       time of that function, of task_ms
--   sent_bytes        data sent to Python workers; NULL before Spark 4.0
--   returned_bytes    data returned from them; NULL before Spark 4.0
WITH recorded AS (
    SELECT
        stage_id,
        recorder,
        bool_or(worker_id IS NULL) AS of_all,
        list(DISTINCT worker_id) AS of_workers,
        coalesce(sum(time_ms) FILTER (part = 'user'), 0) AS user_ms,
        coalesce(sum(time_ms) FILTER (part = 'serialization'), 0) AS serialization_ms,
        coalesce(sum(time_ms) FILTER (part = 'start'), 0) AS start_ms,
        sum(time_ms) AS seen_ms
    FROM spark_python_times
    GROUP BY stage_id, recorder
    QUALIFY row_number() OVER (PARTITION BY stage_id ORDER BY recorder DESC) = 1 -- samples before calls
),
ran AS (
    SELECT
        stage_id,
        sum(coalesce(own_ms, finish_ms - launch_ms)) AS task_ms,
        coalesce(sum(own_cpu_ms), 0) AS cpu_ms
    FROM tasks JOIN stages USING (stage_id) LEFT JOIN recorded USING (stage_id)
    WHERE
        (recorder IS NOT NULL OR contains(io_kinds, 'python'))
        AND coalesce(of_all OR list_contains(of_workers, worker_id), true)
    GROUP BY stage_id
),
-- More than the tasks' time is of several workers for one task, or of a higher rate than assumed.
scaled AS (
    SELECT
        ran.*,
        recorder,
        coalesce(least(task_ms / nullif(seen_ms, 0), 1.0), 0) AS factor,
        factor * recorded.user_ms AS user_ms,
        factor * recorded.serialization_ms AS serialization_ms,
        factor * recorded.start_ms AS start_ms,
        coalesce(factor * (recorded.user_ms + recorded.serialization_ms + recorded.start_ms), 0) AS busy_ms
    FROM ran LEFT JOIN recorded USING (stage_id)
),
hottest AS (
    SELECT stage_id, recorder, function, file, arg_max(line, own_ms) AS line, sum(own_ms) AS function_ms
    FROM spark_python_functions
    GROUP BY stage_id, recorder, function, file
    QUALIFY row_number() OVER (PARTITION BY stage_id, recorder ORDER BY sum(own_ms) DESC, function) = 1
),
moved AS (
    SELECT
        stage_id,
        sum(value) FILTER (name = 'data sent to Python workers') AS sent_bytes,
        sum(value) FILTER (name = 'data returned from Python workers') AS returned_bytes
    FROM operator_metrics
    GROUP BY stage_id
)
SELECT
    stage_id,
    recorder,
    task_ms,
    user_ms,
    CASE WHEN recorder = 'samples' THEN serialization_ms END AS serialization_ms,
    CASE WHEN recorder = 'samples' THEN start_ms END AS start_ms,
    least(cpu_ms, task_ms - busy_ms) AS jvm_ms,
    greatest(task_ms - busy_ms - cpu_ms, 0)
        + CASE WHEN recorder = 'calls' THEN serialization_ms + start_ms ELSE 0 END AS wait_ms,
    function,
    file,
    line,
    factor * function_ms AS function_ms,
    sent_bytes::BIGINT AS sent_bytes,
    returned_bytes::BIGINT AS returned_bytes
FROM scaled LEFT JOIN hottest USING (stage_id, recorder) LEFT JOIN moved USING (stage_id)
ORDER BY task_ms DESC, stage_id
