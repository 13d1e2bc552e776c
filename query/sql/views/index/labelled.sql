-- Functions with their label: the resource that takes most of each one's time.
--
-- one row per function:
--   index_name      the index
--   function_id     number within the index
--   qualified_name  in the syntax of its language
--   label           the resource with the largest share
--   share           that share of the function's time, 0 to 1
--   confidence      calibrated probability that the label is right, 0 to 1
--   source          measured (in calls of the function) or model
--   decided_by      if the model's label differs from that of the function's own text: the callee that it is from, disk API or net API for a direct call, or no device in callees; else NULL
--   has_body        whether the source has code for it; an abstract or native method has none, and its label is from its name
--   generated       whether it is generated code: by typical file names of generators, or because the file has more functions (2 000) than people write
--   module          its part of the source: the folder above its packages if there is one (java.base), else the first names of its package: four if it begins with a domain (org.apache.x.y), else two
--   has_doc         whether its label also uses documentation, not only code
--   kind            function, method, constructor, initialiser or lambda
--   language        java, scala, python or cpp
--   package         package or module it is declared in
--   class_name      enclosing type within the package; NULL for none
--   file            path relative to the source root
--   first_line      first line, 1-based
--   last_line       last line, inclusive
--   symbol          unique, stable name
--   <resource>      share of the function's time on <resource>
SELECT
    f.index_name, f.function_id, f.qualified_name,
    {label} AS label,
    {largest} AS share,
    f.confidence, f.source, f.decided_by,
    f.kind IN ('lambda', 'initialiser') OR named.function_id IS NOT NULL AS has_body,
    regexp_matches(f.file, '_pb2(_grpc)?\.py$|(^|/)gen_\w+\.py$|_generated\.py$|/proto/\w+\.java$|(Protos|OuterClass|Grpc|Parser(Base)?(Listener|Visitor))\.java$')
        OR large.file IS NOT NULL AS generated,
    CASE
        WHEN split_part(f.file, '/', 1) <> split_part(replace(f.package, '::', '.'), '.', 1)
            AND contains(f.file, '/') AND contains(split_part(f.file, '/', 1), '.')
            THEN split_part(f.file, '/', 1)
        WHEN regexp_matches(f.package, '^(org|com|net|io)\.') THEN array_to_string(string_split(f.package, '.')[:4], '.')
        ELSE array_to_string(string_split(f.package, '.')[:2], '.')
    END AS module,
    f.doc_chars > 0 AS has_doc,
    f.kind, f.language, f.package, f.class_name, f.file, f.first_line, f.last_line, f.symbol,
    {resources}
FROM functions AS f
LEFT JOIN (SELECT DISTINCT index_name, function_id FROM runtime_names) AS named USING (index_name, function_id)
LEFT JOIN (SELECT index_name, file FROM functions GROUP BY ALL HAVING count(*) > 2000) AS large USING (index_name, file)
