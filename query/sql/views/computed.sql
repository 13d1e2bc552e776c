-- Tables that code fills for a run when a statement queries them (query.statements.computed); in the format of indexes/schema.sql.

CREATE TABLE critical_path (                  -- one row per segment of the critical path, in order of time
    position INTEGER NOT NULL,                -- from 0
    node_id VARCHAR NOT NULL,                 -- the node of the execution DAG, as in nodes: a stage, or an interval of the driver
    name VARCHAR NOT NULL,                    -- display name
    start_ms DOUBLE NOT NULL,                 -- start of the segment
    end_ms DOUBLE NOT NULL,                   -- its end: the start of the next one
    <resource>_ms DOUBLE NOT NULL,            -- wall-clock of the segment on <resource>
    other_ms DOUBLE NOT NULL                  -- wall-clock on no resource, or unknown; together the columns sum to end_ms - start_ms
);

CREATE TABLE findings (                       -- one row per finding, the most costly first
    kind VARCHAR NOT NULL,                    -- key of its kind, such as idle-slots
    cost_ms DOUBLE NOT NULL,                  -- upper bound of its cost, in the run's wall-clock
    text VARCHAR NOT NULL,                    -- the finding, a sentence
    basis VARCHAR NOT NULL,                   -- measured, modelled or guessed
    advice VARCHAR NOT NULL                   -- the recommended action
);
