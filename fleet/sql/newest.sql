-- The valid rows of all rows that builds wrote.  A build only adds rows, so a log that grew, was touched or was retried
-- has a row for each time, and an application has one for each of its logs, for example after a rename, a roll or a
-- compaction.  The newest row of a path is valid; of an application, the run that is complete, has samples, was read last.
CREATE VIEW logs AS
SELECT * FROM all_logs
QUALIFY row_number() OVER (PARTITION BY path ORDER BY read_at DESC, log) = 1;

-- A log without dates identifies its application only by a file name: there its path separates applications.
CREATE TABLE newest AS
SELECT run_id FROM all_runs
QUALIFY row_number() OVER (
    PARTITION BY framework, app_id, attempt, started_at, CASE WHEN started_at < TIMESTAMP '2000-01-01' THEN path END
    ORDER BY complete DESC, has_samples DESC, read_at DESC, run_id
) = 1;

CREATE VIEW runs AS FROM all_runs WHERE run_id IN (FROM newest);
CREATE VIEW stages AS FROM all_stages WHERE run_id IN (FROM newest);
CREATE VIEW operators AS FROM all_operators WHERE run_id IN (FROM newest);
CREATE VIEW functions AS FROM all_functions WHERE run_id IN (FROM newest);
CREATE VIEW findings AS FROM all_findings WHERE run_id IN (FROM newest);
CREATE VIEW problems AS
FROM all_problems
WHERE run_id IN (FROM newest) OR (run_id IS NULL AND (path, read_at) IN (SELECT (path, read_at) FROM logs));
