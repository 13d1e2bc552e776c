-- Operators of Spark plans that stayed on the JVM although an engine (Comet, Gluten, RAPIDS, Photon, Auron) ran others.
--
-- one row per group of connected operators on the JVM, and stage with time of them:
--   scope_id       SQL query
--   fallback       number of the group in the query's plan, from 0
--   engine         comet, gluten, rapids, photon or auron
--   stage_id       the stage; NULL if no time of them is known
--   operators      their names, from the result of the query to its input
--   reason         why, as the engine logs it, first that of the operator nearest to the input; NULL if it does not
--   jvm_ms         their time, summed over tasks
--   conversion_ms  time of converting rows to columns and back around them, as far as the conversions are operators that
--     are timed: Spark's generated code does them within jvm_ms
--   converted_rows  rows that were converted
WITH placed AS (
    SELECT e.scope_id, e.fallback, e.engine, e.node_id, e.ran_in, e.named, e.reason, o.name
    FROM spark_engine_operators AS e JOIN operators AS o USING (scope_id, node_id)
    WHERE e.fallback IS NOT NULL
),
fallbacks AS (
    SELECT
        scope_id, fallback, any_value(engine) AS engine,
        list(trim(name) ORDER BY node_id) FILTER (ran_in = 'jvm' AND named) AS operators
    FROM placed
    GROUP BY scope_id, fallback
),
reasons AS (
    SELECT scope_id, fallback, string_agg(reason, '; ' ORDER BY last_id DESC) AS reason
    FROM (
        SELECT scope_id, fallback, reason, max(node_id) AS last_id
        FROM placed WHERE reason IS NOT NULL GROUP BY ALL
    )
    GROUP BY scope_id, fallback
),
times AS (
    SELECT
        p.scope_id, p.fallback, t.stage_id,
        coalesce(sum({plus_ms}) FILTER (p.ran_in = 'jvm'), 0) AS jvm_ms,
        coalesce(sum({plus_ms}) FILTER (p.ran_in = 'conversion'), 0) AS conversion_ms
    FROM placed AS p JOIN operator_times AS t USING (scope_id, node_id)
    GROUP BY ALL
),
converted AS (
    SELECT p.scope_id, p.fallback, m.stage_id, sum(m.value)::BIGINT AS converted_rows
    FROM placed AS p JOIN operator_metrics AS m USING (scope_id, node_id)
    WHERE p.ran_in = 'conversion' AND p.named AND m.name IN ('number of output rows', 'number of input rows')
    GROUP BY ALL
)
SELECT
    f.scope_id, f.fallback, f.engine, t.stage_id, f.operators, r.reason, coalesce(t.jvm_ms, 0) AS jvm_ms,
    coalesce(t.conversion_ms, 0) AS conversion_ms, c.converted_rows
FROM fallbacks AS f
LEFT JOIN reasons AS r USING (scope_id, fallback)
LEFT JOIN times AS t USING (scope_id, fallback)
LEFT JOIN converted AS c ON c.scope_id = f.scope_id AND c.fallback = f.fallback AND c.stage_id = t.stage_id
ORDER BY f.scope_id, f.fallback, t.stage_id
