-- Tables that code fills, of a run that a statement asks (query.statements.computed); in the format of indexes/schema.sql.

CREATE TABLE critical_path (                  -- one row per stretch of the critical path: what the end of the run waited for, in order of time
    position INTEGER NOT NULL,                -- from 0
    node_id VARCHAR NOT NULL,                 -- the node of the execution DAG, as in nodes: a group, or an interval of the coordinator
    name VARCHAR NOT NULL,                    -- what a user recognises
    start_ms DOUBLE NOT NULL,                 -- start of the stretch
    end_ms DOUBLE NOT NULL,                   -- its end: the start of the next one
    <resource>_ms DOUBLE NOT NULL,            -- wall-clock of the stretch on <resource>
    other_ms DOUBLE NOT NULL                  -- wall-clock on none of the resources or unknown; with theirs it sums to end_ms - start_ms
);

CREATE TABLE findings (                       -- one row per thing that cost the run time, the most costly first
    rule VARCHAR NOT NULL,                    -- key of its kind, such as idle-slots
    cost_ms DOUBLE NOT NULL,                  -- what it cost at most, of the run's wall-clock
    what VARCHAR NOT NULL,                    -- what was seen, a sentence
    basis VARCHAR NOT NULL,                   -- measured, modelled or guessed
    advice VARCHAR NOT NULL                   -- what to do about it
);
