-- The server's log as tables.  JSON escapes what the quotes here are.

CREATE TABLE raw (line jsonb);
COPY raw FROM :'log'
  (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02');
CREATE TABLE log AS SELECT row_number() OVER () AS id,
  line ->> 'error_severity' AS severity, line ->> 'state_code' AS state,
  line ->> 'message' AS message, line ->> 'detail' AS detail,
  line ->> 'statement' AS statement, line ->> 'user' AS role,
  line ->> 'file_name' AS file, line ->> 'func_name' AS function,
  (line ->> 'application_name' = 'sqlsmith::dut' AND
   line ->> 'backend_type' = 'client backend') AS smith
FROM raw;
DROP TABLE raw;
CREATE VIEW done AS SELECT role, message LIKE '%Custom Scan (FMSort)%' AS sorted,
  message LIKE '%Merge Mode: %' AS spilled
FROM log WHERE smith AND severity = 'LOG' AND message LIKE 'duration: %plan:%';
CREATE VIEW errors AS SELECT * FROM log
WHERE smith AND severity IN ('ERROR', 'FATAL') AND statement IS NOT NULL;
-- What a statement must not give: internal errors and want of resources.
CREATE TABLE suspects AS
SELECT min(id) AS id, state, role, statement, min(message) AS message,
  min(file || ', ' || function) AS place
FROM errors WHERE left(state, 2) IN ('XX', '53', '54', '58')
GROUP BY state, role, statement
UNION ALL
SELECT c.id, 'crash', s.role, substr(s.message, length('statement: ') + 1),
  c.message, NULL
FROM log c, LATERAL (SELECT * FROM log l WHERE l.id < c.id AND smith
    AND message LIKE 'statement: %' AND message !~ ': (BEGIN|ROLLBACK);'
    ORDER BY id DESC LIMIT 1) s
WHERE c.message ~ 'was terminated by signal'
  AND c.detail LIKE 'Failed process was running: %';
