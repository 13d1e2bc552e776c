-- The callers of each function, and how certain each is.
--
-- one row per function and call that may be to it:
--   index_name    the index
--   function_id   the called function
--   function      its qualified name
--   status        resolved: the call is to this function; by name: the call has its name, but it is unknown which function of that name is called, or whether it belongs to another library
--   caller_id     the calling function
--   caller        its qualified name
--   caller_label  its label
--   caller_confidence  calibrated probability of that label
WITH named AS (
    SELECT
        index_name, function_id, qualified_name,
        CASE split_part(qualified_name, '.', -1)
            WHEN '<init>' THEN split_part(class_name, '.', -1) ELSE split_part(qualified_name, '.', -1)
        END AS callee_name
    FROM functions
),
meant AS (
    SELECT index_name, callee_id AS function_id, caller_id, 'resolved' AS status FROM calls WHERE callee_id IS NOT NULL
    UNION ALL
    SELECT calls.index_name, named.function_id, calls.caller_id, 'by name'
    FROM calls
    JOIN named ON named.index_name = calls.index_name AND named.callee_name = calls.callee_name
    WHERE calls.callee_id IS NULL
)
SELECT
    meant.index_name, meant.function_id, called.qualified_name AS function, meant.status,
    meant.caller_id, caller.qualified_name AS caller, caller.label AS caller_label,
    caller.confidence AS caller_confidence
FROM meant
JOIN functions AS called ON called.index_name = meant.index_name AND called.function_id = meant.function_id
JOIN labelled AS caller ON caller.index_name = meant.index_name AND caller.function_id = meant.caller_id
