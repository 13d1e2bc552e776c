-- The scopes within each scope, itself included.
--
-- one row per scope and scope within it:
--   scope_id       the outer scope
--   part_id        a scope within it, at any depth, or itself
WITH RECURSIVE within AS (
    SELECT scope_id, scope_id AS part_id FROM scopes
    UNION
    SELECT w.scope_id, s.scope_id AS part_id FROM within AS w JOIN scopes AS s ON s.parent_id = w.part_id
)
SELECT scope_id, part_id FROM within
