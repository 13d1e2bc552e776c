-- Resolves each frame to a function of an index.
--
-- A frame has class, method and line.  The class determines the file that declares it, the line the innermost
-- function of that file around it; this covers lambdas, specialisations, default arguments, forwarders, companions,
-- local classes and overloads.  The method's name decides between functions that share a line, and finds the
-- function if the line is unknown or, in another version than the index's, unreliable.
--
-- In:   frames_to_resolve (frame_id, class_name, method, line)
--       frame_classes (class_name, rank, looked_up, runtime_class, in_lambda)   query.attribution.code.names, best rank first
--       frame_methods (method, name, is_lambda)                                 query.attribution.code.names
--       turns (turn, index_name, is_exact)      the indexes by priority; whether of the version that ran
--       indexed_functions, indexed_classes, indexed_names      the tables of all of them, with their turn; a function's
--                                               name is the part after the last dot of its qualified name
-- Out:  answered (frame_id, turn, function_id, how)      of the first index that knows it; how: line, name, native
--       located                                          frames with an indexed class, see below

-- file_names: the possible names of a class or Python path, and its file.
-- A Python file also has the name of its last folders, if it is unambiguous: its root may be deeper in the index.
CREATE OR REPLACE TEMP TABLE file_names AS
WITH python_files AS (
    SELECT DISTINCT turn, file, string_split(file, '/') AS parts FROM indexed_functions WHERE language = 'python'
),
endings AS (
    SELECT turn, file, array_to_string(parts[start:], '/') AS name
    FROM (SELECT turn, file, parts, unnest(range(2, len(parts))) AS start FROM python_files)
)
SELECT DISTINCT turn, class_name AS name, file FROM indexed_classes
UNION ALL
SELECT turn, file, file FROM python_files
UNION ALL
SELECT turn, name, any_value(file) FROM endings GROUP BY turn, name HAVING count(*) = 1;

-- located: each frame with the files of its class, by the best name in an index; several if several source roots
-- declare one class.
CREATE OR REPLACE TEMP TABLE located AS
WITH class_files AS (
    SELECT turn, class_name, runtime_class, in_lambda, file
    FROM frame_classes JOIN file_names ON looked_up = file_names.name
    QUALIFY rank = min(rank) OVER (PARTITION BY turn, class_name)
)
SELECT frame_id, turn, line, name, is_lambda OR in_lambda AS is_lambda, runtime_class, file
FROM frames_to_resolve
JOIN class_files USING (class_name)
JOIN frame_methods USING (method);

-- blocks: the functions of these files, once for each block of 32 lines they touch, so that a line joins with few.
CREATE OR REPLACE TEMP TABLE blocks AS
SELECT
    turn,
    file,
    unnest(range(first_line // 32, last_line // 32 + 1)) AS block,
    function_id,
    kind,
    first_line,
    last_line,
    -- Python names the code of a class body after the class.
    CASE
        WHEN language = 'python' AND ends_with(name, '<body>') THEN regexp_extract(class_name, '[^.]+$')
        ELSE regexp_extract(name, '[^:]+$')
    END AS simple_name
FROM indexed_functions
WHERE (turn, file) IN (SELECT DISTINCT (turn, file) FROM located);

-- named: the names that functions of these files have at run time.
CREATE OR REPLACE TEMP TABLE named AS
SELECT turn, file, method, rtrim(indexed_names.class_name, '$') AS own_class, function_id, first_line
FROM indexed_names JOIN indexed_functions USING (turn, function_id)
WHERE (turn, file) IN (SELECT DISTINCT (turn, file) FROM located);

-- By line.  `fits` says whether a function's name is the frame's: this distinguishes a method from a lambda or an
-- anonymous class on its line.  If no function around the line fits, but the class has one of that name, the line is
-- from other code than the index's (another version, a bridge method), and the name counts.
CREATE OR REPLACE TEMP TABLE frames_found AS
WITH places AS (
    SELECT DISTINCT turn, file, line, name, is_lambda FROM located WHERE line > 0
),
around AS (
    SELECT
        places.*,
        function_id,
        last_line - first_line AS extent,
        CASE
            WHEN is_lambda THEN kind = 'lambda' OR simple_name = name
            WHEN name IN ('<init>', '<clinit>', '$init$') THEN kind IN ('constructor', 'initialiser')
            ELSE simple_name = name
        END AS fits
    FROM places
    JOIN blocks
        ON blocks.turn = places.turn
        AND blocks.file = places.file
        AND block = line // 32
        AND line BETWEEN first_line AND last_line
),
innermost AS (
    SELECT
        turn, file, line, name, is_lambda,
        arg_max(function_id, (fits, -extent, function_id)) AS function_id,
        max((fits, -extent)) AS quality,
        bool_or(fits) AS has_name
    FROM around
    GROUP BY ALL
)
SELECT frame_id, turn, arg_max(function_id, (quality, -function_id)) AS function_id, 'line' AS how
FROM located JOIN innermost USING (turn, file, line, name, is_lambda)
WHERE has_name OR is_lambda OR NOT EXISTS (
    FROM named
    WHERE named.turn = located.turn
        AND named.file = located.file
        AND method = located.name
        AND own_class = rtrim(located.runtime_class, '$')
)
GROUP BY frame_id, turn;

-- By name, for the rest: in the frame's own class, else anywhere in the class's file (anonymous classes, whose numbers
-- are not in the source).  Of overloads, the one that starts nearest before the line counts.  In an index of another
-- version, names precede lines.
INSERT INTO frames_found
SELECT
    frame_id,
    turn,
    arg_max(
        function_id,
        (own_class = rtrim(runtime_class, '$'), -abs(coalesce(line, 0) - first_line), -function_id)
    ),
    'name'
FROM located
JOIN named USING (turn, file)
WHERE method = name
    AND (frame_id, turn) NOT IN (SELECT (frame_id, turn) FROM frames_found JOIN turns USING (turn) WHERE is_exact)
GROUP BY frame_id, turn;

-- Of the rest, methods without a body in the source: a frame of one is a native method, because an abstract one never
-- runs.  They have no name at run time in an index and no line in a frame; class and name identify them.
INSERT INTO frames_found
SELECT frame_id, turn, min(function_id), 'native'
FROM located
JOIN indexed_functions AS bodiless
    USING (turn, file)
WHERE bodiless.kind = 'method'
    AND language = 'java'
    AND bodiless.name = located.name
    AND concat_ws('.', nullif(package, ''), replace(class_name, '.', '$')) = located.runtime_class
    AND (frame_id, turn) NOT IN (
        SELECT (frame_id, turn) FROM frames_found JOIN turns USING (turn) WHERE is_exact OR how = 'name'
    )
    AND (turn, function_id) NOT IN (SELECT (turn, function_id) FROM indexed_names)
GROUP BY frame_id, turn;

-- From the first index that has the frame; in one of another version, names precede lines.
CREATE OR REPLACE TEMP TABLE answered AS
SELECT frame_id, unnest(arg_min(
    struct_pack(turn := turn, function_id := function_id, how := how),
    (turn, CASE how WHEN 'line' THEN CASE WHEN is_exact THEN 0 ELSE 3 END WHEN 'name' THEN 1 ELSE 2 END)
))
FROM frames_found JOIN turns USING (turn)
GROUP BY frame_id;
