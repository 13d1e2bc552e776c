-- The frames of the shown stacks, each with its name.
--
-- parameters  shown_stacks, a table of their ids
--             {name}, the name of a `frame` (query.page.stacktree.name_of)
--
-- one row per frame:
--   frame   as in stacks, 'package.Class.method:line'
--   name    'package.Class.method'
--   number  number of the name, from 0, in the order of names
SELECT frame, name, dense_rank() OVER (ORDER BY name) - 1 AS number
FROM (
    SELECT frame, {name} AS name
    FROM (SELECT DISTINCT unnest(frames) AS frame FROM stacks SEMI JOIN shown_stacks USING (stack_id))
)
