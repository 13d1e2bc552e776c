-- Differences between the functions of two indexes, attached as a and b.
--
-- parameters  {vector}, the shares as a list of doubles; {code}, {doc}, those of one classifier alone, NULL if it was
--             not run
--             {noticeable}, the minimum change of a share to report
--
-- one row per function that is in one index only, or whose shares changed by at least that, the most important first:
--   what            label (its largest share is of another resource), share, moved (the same text under another name),
--                   new or gone
--   qualified_name  in the language's notation, from b if b has the function
--   old_name        for a function that moved, its name in a
--   before, after   the shares, in the order of the resources; NULL if the index lacks the function
--   change          largest change of a share; NULL if it is in one index only
--   same_text       whether code and documentation are the same characters
--   doc_before, doc_after          characters of documentation
--   code_before, code_after        shares by the code's classifier
--   doc_shares_before, doc_shares_after    shares by the documentation's classifier
--   decided_before, decided_after  the callee, or kind of call, that decided the label against the function's own text
--   a_id, b_id      function_id in a and in b
WITH
a AS (
    SELECT
        function_id, regexp_replace(symbol, '^\S+ \S+ ', '') AS own, qualified_name, text_hash, code_chars, doc_chars,
        split_part(qualified_name, '.', -1) AS simple, {vector} AS shares, {code} AS code, {doc} AS doc,
        decided_by
    FROM a.functions
),
b AS (
    SELECT
        function_id, regexp_replace(symbol, '^\S+ \S+ ', '') AS own, qualified_name, text_hash, code_chars, doc_chars,
        split_part(qualified_name, '.', -1) AS simple, {vector} AS shares, {code} AS code, {doc} AS doc,
        decided_by
    FROM b.functions
),
gone AS (SELECT *, count(*) OVER same AS n FROM a ANTI JOIN b USING (own) WINDOW same AS (PARTITION BY text_hash, code_chars, doc_chars, simple)),
fresh AS (SELECT *, count(*) OVER same AS n FROM b ANTI JOIN a USING (own) WINDOW same AS (PARTITION BY text_hash, code_chars, doc_chars, simple)),
moved AS (  -- one function per text and name, because the hash is short
    SELECT gone.own AS a_own, fresh.own AS b_own
    FROM gone JOIN fresh USING (text_hash, code_chars, doc_chars, simple)
    WHERE gone.n = 1 AND fresh.n = 1 AND code_chars > 60
),
pairs AS (
    SELECT own AS a_own, own AS b_own FROM a SEMI JOIN b USING (own)
    UNION ALL SELECT a_own, b_own FROM moved
    UNION ALL SELECT own, NULL FROM gone WHERE own NOT IN (SELECT a_own FROM moved)
    UNION ALL SELECT NULL, own FROM fresh WHERE own NOT IN (SELECT b_own FROM moved)
),
compared AS (
    SELECT
        a.own AS a_own, b.own AS b_own, coalesce(b.qualified_name, a.qualified_name) AS qualified_name,
        a.qualified_name AS name_before, a.shares AS before, b.shares AS after,
        list_max([abs(pair[1] - pair[2]) FOR pair IN list_zip(a.shares, b.shares)]) AS change,
        a.text_hash = b.text_hash AND a.code_chars = b.code_chars AND a.doc_chars = b.doc_chars AS same_text,
        a.doc_chars AS doc_before, b.doc_chars AS doc_after, a.code AS code_before, b.code AS code_after,
        a.doc AS doc_shares_before, b.doc AS doc_shares_after,
        a.decided_by AS decided_before, b.decided_by AS decided_after, a.function_id AS a_id, b.function_id AS b_id
    FROM pairs LEFT JOIN a ON a.own = a_own LEFT JOIN b ON b.own = b_own
)
SELECT
    CASE
        WHEN before IS NULL THEN 'new'
        WHEN after IS NULL THEN 'gone'
        WHEN list_position(before, list_max(before)) <> list_position(after, list_max(after)) THEN 'label'
        WHEN a_own <> b_own THEN 'moved'
        ELSE 'share'
    END AS what,
    qualified_name, CASE WHEN a_own <> b_own THEN name_before END AS old_name, before, after, change, same_text,
    doc_before, doc_after, code_before, code_after, doc_shares_before, doc_shares_after,
    decided_before, decided_after, a_id, b_id
FROM compared
WHERE change IS NULL OR change >= {noticeable} OR a_own <> b_own
ORDER BY list_position(['label', 'share', 'moved', 'new', 'gone'], what), change DESC, qualified_name, a_own, b_own
