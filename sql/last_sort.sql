-- fmsort_last_sort(): the columns that are the same everywhere.
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET enable_hashagg = off;

CREATE TABLE l AS SELECT i AS id, i % 10 AS k, repeat('x', 20) AS pay
FROM generate_series(1, 5000) i;
ANALYZE l;
CREATE VIEW last_sort AS
SELECT sort_number, sort_method, sort_space_type, merge_mode,
  runs > 1 AS several_runs, merge_passes > 0 AS passes, blocks > 0 AS blocks,
  block_size, assist_blocks, io_method IS NOT NULL AS io,
  direct_io IS NOT NULL AS direct, tuples,
  sort_space_bytes > 0 AS space,
  bytes_spilled > 0 AS spilled, reads > 0 AS reads,
  read_batches BETWEEN 1 AND reads AS batches, writes > 0 AS writes,
  bytes_read > 0 AS read, bytes_written > 0 AS written,
  run_formation_time > 0 AS formation_time, input_time >= 0 AS input_time,
  block_order_time >= 0 AS order_time, merge_time >= 0 AS merge_time,
  blocked_time >= 0 AS blocked_time
FROM fmsort_last_sort();
\x on

\echo in memory
SET work_mem = '4MB';
SELECT count(*) FROM (SELECT * FROM l ORDER BY k) s;
SELECT * FROM last_sort;

\echo external
SET work_mem = '64kB';
SET fmsort.block_size = 2560;
SET fmsort.assist_blocks = 3;
SELECT count(*), min(id), max(length(pay)) FROM (SELECT * FROM l ORDER BY k) s;
SELECT * FROM last_sort;

\echo what asking does not change
SELECT * FROM last_sort;

\x off
\echo in one merge pass every block is read once, and written once
SET work_mem = '128kB';
SET fmsort.block_size = 1024;
SET fmsort.mode = 'traditional';
SELECT count(pay) FROM (SELECT * FROM l ORDER BY k) s;
SELECT merge_passes, reads = blocks AS each_block_once,
  bytes_read = blocks * block_size AS all_of_it,
  bytes_written >= bytes_read AS written,
  bytes_spilled = bytes_written AS spilled,
  sort_space_bytes = bytes_spilled AS space
FROM fmsort_last_sort();
SET fmsort.mode = 'double_buffering';
SELECT count(pay) FROM (SELECT * FROM l ORDER BY k) s;
SELECT merge_passes, reads = blocks AS each_block_once,
  bytes_read = blocks * block_size AS all_of_it
FROM fmsort_last_sort();
-- fmsort may have to read first keys back, too
RESET fmsort.mode;
SELECT count(pay) FROM (SELECT * FROM l ORDER BY k) s;
SELECT merge_passes, reads = blocks AS each_block_once,
  bytes_read >= blocks * block_size AS all_of_it
FROM fmsort_last_sort();

\echo several sorts of one statement
SET work_mem = '4MB';
SELECT count(*) FROM
  (SELECT * FROM l ORDER BY k) s, (SELECT DISTINCT k FROM l) d
WHERE s.k = d.k;
SELECT sort_number, sort_method, tuples FROM last_sort ORDER BY sort_number;

\echo of a statement that sorts often, the last 64 are kept
CREATE FUNCTION sorts_often() RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
  n int;
BEGIN
  FOR n IN 1 .. 100 LOOP
    PERFORM id FROM (SELECT id FROM l WHERE id <= n ORDER BY k OFFSET 0) s;
  END LOOP;
END
$$;
SELECT sorts_often();
SELECT count(*), min(sort_number), max(sort_number), min(tuples), max(tuples) FROM last_sort;

\echo statements that do not sort leave it as it is
SELECT 1;
SELECT count(*), max(sort_number) FROM last_sort;
SET fmsort.mode = off;
SELECT count(*) FROM (SELECT * FROM l ORDER BY k) s;
SELECT count(*), max(sort_number) FROM last_sort;
RESET fmsort.mode;

\echo a new session knows of none
\c -
SELECT * FROM fmsort_last_sort();

DROP FUNCTION sorts_often();
DROP VIEW last_sort;
DROP TABLE l;
