-- The frames of the shown stacks, the root first.
--
-- parameters  shown_stacks, a table of their ids; shown_names, the rows of frame_names
--
-- one row per stack and frame:
--   stack_id  the stack
--   depth     0 for the root
--   number    number of the frame's name
SELECT stack_id, depth, number
FROM (
    SELECT stack_id, unnest(range(len(frames))) AS depth, unnest(list_reverse(frames)) AS frame
    FROM stacks SEMI JOIN shown_stacks USING (stack_id)
) JOIN shown_names USING (frame)
ORDER BY depth, stack_id
