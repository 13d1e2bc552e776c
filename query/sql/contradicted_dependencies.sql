-- Dependencies that the trace states, but its own times contradict: the source ended after the target could begin.
--
-- parameters  maximum time between an end and the start that it causes, ms
--
-- one row per trace:
--   contradicted, stated    their number, and that of all between stages that ran; without pipelined dependencies
--   source, target          one of the contradicted, the first by name
SELECT
    count(*) FILTER (late) AS contradicted,
    count(*) AS stated,
    min(source) FILTER (late) AS source,
    arg_min(target, source) FILTER (late) AS target
FROM (
    SELECT
        source, target,
        sources.end_ms > coalesce(targets.submit_ms, targets.first_launch_ms) + ? AS late
    FROM dependencies
    JOIN stages AS sources ON sources.stage_id = source
    JOIN stages AS targets ON targets.stage_id = target
    WHERE kind <> 'pipelined' AND sources.first_launch_ms IS NOT NULL AND targets.first_launch_ms IS NOT NULL
)
