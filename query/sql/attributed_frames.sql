-- The attributed frame of each stack (paper §4.1): the topmost one that is an indexed function and neither scaffolding,
-- waiting, a collection nor generated code.  A stack of a pool's idle loop works for no task, and a resting one waits for
-- no resource, so these have none.  If a stack has no function of the framework or the user, the time is attributed to
-- the topmost one of a library, unless the thread waits, for instance for a connection: then its purpose is unknown.
--
-- reads   stack_frames(stack_id, depth, frame_id)      depth 0 is the leaf
--         frames(frame_id, class_name, method, line, role, device)     device: disk or net where the JDK calls the kernel, cpu where a library compresses, encrypts or computes a checksum
--         resolved(frame_id, index_name, symbol, one column per resource)
--
-- one row per stack:
--   stack_id        the stack
--   attributed_depth  depth of the attributed frame; NULL if there is none
--   index_name      the index of its function
--   symbol          its function
--   (resources)     its resource breakdown, one column per resource; all CPU if the thread delegates the work to another process, all
--                   of one device if the stack ends in a call for it, all CPU if it ends in a codec that does not wait
--   skipped         reasons for which frames above it were skipped, in order, without repetition
WITH judged AS (
    SELECT
        stack_id,
        depth,
        frame_id,
        frames.role,
        frames.device,
        coalesce(nullif(frames.role, 'process'), CASE WHEN resolved.symbol IS NULL THEN 'not indexed' END) AS reason
    FROM stack_frames
    JOIN frames USING (frame_id)
    LEFT JOIN resolved USING (frame_id)
),
first AS (
    SELECT
        stack_id,
        CASE
            WHEN bool_or(coalesce(reason IN ('idle', 'rest'), false)) THEN NULL
            WHEN bool_or(reason IS NULL) THEN min(depth) FILTER (reason IS NULL)
            WHEN NOT bool_or(reason IN ('wait', 'peer')) THEN min(depth) FILTER (reason = 'library')
        END AS attributed_depth
    FROM judged
    GROUP BY stack_id
),
passed AS (
    SELECT stack_id, reason, min(depth) AS depth
    FROM judged
    JOIN first USING (stack_id)
    WHERE reason IS NOT NULL AND (attributed_depth IS NULL OR depth < attributed_depth)
    GROUP BY stack_id, reason
),
reasons AS (
    SELECT stack_id, string_agg(reason, ',' ORDER BY depth) AS skipped
    FROM passed
    GROUP BY stack_id
),
delegated AS (
    SELECT DISTINCT stack_id
    FROM judged JOIN first USING (stack_id)
    WHERE judged.role = 'process' AND judged.depth <= first.attributed_depth
),
waiting AS (
    SELECT DISTINCT stack_id
    FROM judged JOIN first USING (stack_id)
    WHERE judged.role IN ('wait', 'peer') AND depth < first.attributed_depth
),
called AS (
    SELECT stack_id, arg_min(device, depth) AS device
    FROM judged JOIN first USING (stack_id)
    WHERE device IS NOT NULL AND depth <= first.attributed_depth AND (device <> 'cpu' OR stack_id NOT IN (FROM waiting))
    GROUP BY stack_id
)
SELECT
    first.stack_id,
    first.attributed_depth,
    reasons.skipped,
    resolved.index_name,
    resolved.symbol,
    {vector}
FROM first
LEFT JOIN judged ON judged.stack_id = first.stack_id AND judged.depth = first.attributed_depth
LEFT JOIN resolved USING (frame_id)
LEFT JOIN reasons ON reasons.stack_id = first.stack_id
LEFT JOIN delegated ON delegated.stack_id = first.stack_id
LEFT JOIN called ON called.stack_id = first.stack_id
ORDER BY first.stack_id
