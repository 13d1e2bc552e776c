-- The callees of each function, and how certain each is.
--
-- one row per call that a function's text contains, once per name called:
--   index_name    the index
--   function_id   the calling function
--   function      its qualified name
--   callee_name   the simple name called, as in the text; with its class if it is outside
--   status        resolved: to one function of the index; by name: functions of the index have that name, but it is unknown which is called, or whether it belongs to another library; elsewhere: no function of the index has it; outside: types show that it belongs to another library, which callee_name names
--   candidates    functions of the index with that name; 1 if resolved
--   callee_id     the called function if resolved
--   callee        its qualified name
--   callee_label  its label
--   callee_confidence  calibrated probability of that label
WITH names AS (
    SELECT
        index_name,
        CASE split_part(qualified_name, '.', -1)
            WHEN '<init>' THEN split_part(class_name, '.', -1) ELSE split_part(qualified_name, '.', -1)
        END AS callee_name,
        count(*) AS candidates
    FROM functions
    GROUP BY ALL
)
SELECT
    calls.index_name, calls.caller_id AS function_id, caller.qualified_name AS function, calls.callee_name,
    CASE
        WHEN calls.callee_id IS NOT NULL THEN 'resolved'
        WHEN names.candidates > 0 THEN 'by name'
        WHEN calls.callee_name LIKE '%_._%' THEN 'outside'
        ELSE 'elsewhere'
    END AS status,
    CASE WHEN calls.callee_id IS NOT NULL THEN 1 ELSE coalesce(names.candidates, 0) END AS candidates,
    calls.callee_id, callee.qualified_name AS callee, callee.label AS callee_label,
    callee.confidence AS callee_confidence
FROM calls
JOIN functions AS caller ON caller.index_name = calls.index_name AND caller.function_id = calls.caller_id
LEFT JOIN labelled AS callee ON callee.index_name = calls.index_name AND callee.function_id = calls.callee_id
LEFT JOIN names ON names.index_name = calls.index_name AND names.callee_name = calls.callee_name
