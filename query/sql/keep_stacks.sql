-- The stacks of a run as stored in its file: their frames as text, and the attributed frame of each.
--
-- reads   stack_frames(stack_id, depth, frame_id)      depth 0 is the leaf
--         frames(frame_id, class_name, method, line)
--         cut(stack_id, truncated, operator, pipeline)      pipeline -1 for none
--         the result of attributed_frames.sql, as `decided`
--
-- one row per stack, into the table stacks
INSERT INTO stacks BY NAME
WITH decided AS ({decided}),
texts AS (
    SELECT
        stack_id,
        list(concat(class_name, '.', method, CASE WHEN line > 0 THEN ':' || line END) ORDER BY depth) AS frames
    FROM stack_frames JOIN frames USING (frame_id)
    GROUP BY stack_id
)
SELECT
    texts.frames, cut.truncated, cut.operator, CASE WHEN cut.pipeline >= 0 THEN cut.pipeline END AS pipeline,
    decided.*
FROM decided JOIN texts USING (stack_id) JOIN cut USING (stack_id)
ORDER BY stack_id
