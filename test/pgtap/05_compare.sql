-- fmsort_compare() and fmsort_compare_merges(): what they return, what they
-- refuse, and that a rollback undoes each run.
--
-- Seen to fail with, in fmsort_measure(): block_size always 0; no
-- transaction_read_only; no RAISE EXCEPTION 'roll back'; parallel workers for
-- the merges; no fmsort_last_sort_clear() before a run; no set_config() of
-- search_path.
\ir begin.psql

BEGIN;
SET LOCAL work_mem = '1MB';
SELECT no_plan();

CREATE TABLE orders AS
SELECT i AS o_orderkey, date '1992-01-01' + (i * 7919) % 2406 AS o_orderdate,
  repeat(md5(i::text), 2) AS o_comment
FROM generate_series(1, 60000) i;
ANALYZE orders;

-- ---- fmsort_compare() ----------------------------------------------------------

CREATE TEMPORARY TABLE compared AS
SELECT row_number() OVER () AS place, c.*
FROM fmsort_compare('SELECT * FROM orders ORDER BY o_orderdate') c;
SELECT is(array_agg(mode ORDER BY place), '{postgres,fmsort}'::text[],
  'PostgreSQL''s sort, then fmsort') FROM compared;
SELECT ok(bool_and(total_time > 0 AND temp_bytes_read > 1000000
    AND temp_bytes_written > 1000000), 'time and temporary bytes')
FROM compared;
SELECT is(array_agg(DISTINCT sort_method), '{external merge}'::text[],
  'the sort method') FROM compared;
SELECT is(speedup, 1::float8, 'the first row''s speed-up is 1')
FROM compared WHERE place = 1;
SELECT ok(abs(c.speedup - f.total_time / c.total_time) < 0.05 * c.speedup + 0.02,
  '... and the other''s is the ratio of the times')
FROM compared c, compared f WHERE c.place = 2 AND f.place = 1;

SELECT is(array_agg(sort_method), '{quicksort,in-memory}'::text[],
  'a sort in memory') FROM fmsort_compare(
  'SELECT * FROM orders WHERE o_orderkey < 100 ORDER BY o_orderdate', 1);
SET fmsort.min_rows = 1000000;
SELECT is(array_agg(sort_method), '{quicksort,in-memory}'::text[],
  'a sort that stays PostgreSQL''s otherwise') FROM fmsort_compare(
  'SELECT * FROM orders WHERE o_orderkey < 100 ORDER BY o_orderdate', 1);
SET fmsort.min_rows = 0;
SELECT ok(bool_and(sort_method IS NULL AND temp_bytes_written = 0),
  'no sort') FROM fmsort_compare('SELECT 1');
SELECT is(array_agg(sort_method), '{"external merge, quicksort","external merge, in-memory"}'::text[],
  'two sorts') FROM fmsort_compare($$
  SELECT * FROM orders ORDER BY o_orderdate,
    (SELECT max(x) FROM (SELECT -g AS x FROM generate_series(1, 9) g ORDER BY x OFFSET 1) s)$$);
SELECT is(count(*)::int, 2, 'a semicolon and a comment at the end')
FROM fmsort_compare('SELECT 1; -- done');
PREPARE prepared(int) AS SELECT * FROM orders WHERE o_orderkey < $1 ORDER BY 2;
SELECT is(count(*)::int, 2, 'a prepared statement')
FROM fmsort_compare('EXECUTE prepared(9)');
SELECT is(count(*)::int, 2, 'a thousand runs')
FROM fmsort_compare('SELECT 1', 1000);
SELECT is(count(*)::int, 0, 'null: no row') FROM fmsort_compare(NULL);

-- ---- fmsort_compare_merges() ---------------------------------------------------

CREATE TEMPORARY TABLE merges AS
SELECT row_number() OVER () AS place, c.*
FROM fmsort_compare_merges('SELECT * FROM orders ORDER BY o_orderdate') c;
SELECT is(array_agg(mode ORDER BY place), '{traditional,double_buffering,fmsort}'::text[],
  'a row for each merge') FROM merges;
SELECT ok(bool_and(total_time > 0 AND run_formation_time > 0
    AND merge_time >= blocked_time AND blocked_time >= 0
    AND run_formation_time + merge_time <= total_time + 0.2), 'times')
FROM merges;
SELECT ok(bool_and(runs > 1 AND merge_passes = 1 AND blocks > runs
    AND block_size > 0), 'runs, one pass, blocks') FROM merges;
SELECT is(min(speedup) FILTER (WHERE place = 1), 1::float8,
  'speed-up over the first') FROM merges;

-- Table 5: the same input buffer, but for whole sectors of 512 bytes
SELECT ok(max(input_buffer_bytes) <= min(input_buffer_bytes) * 1.15,
  'the same input buffer') FROM merges;
SELECT is(d.block_size, t.block_size / 2,
  'double buffering has blocks half as large')
FROM merges d, merges t
WHERE d.mode = 'double_buffering' AND t.mode = 'traditional';
SELECT is(array_agg(assist_blocks ORDER BY place), '{0,0,32}'::int[],
  'assist blocks in mode fmsort only') FROM merges;

CREATE TEMPORARY TABLE others AS
SELECT row_number() OVER () AS place, c.*
FROM fmsort_compare_merges('SELECT * FROM orders ORDER BY o_orderdate',
  '{traditional,single_block,multi_block,flash,fmsort}') c;
SELECT ok(max(input_buffer_bytes) <= min(input_buffer_bytes) * 1.15,
  'the same input buffer for other modes') FROM others;
SELECT is(array_agg(assist_blocks ORDER BY place), '{0,0,32,32,32}'::int[],
  'assist blocks of the other modes') FROM others;

SET LOCAL fmsort.block_size = 4096;
SET LOCAL fmsort.assist_blocks = 8;
SET LOCAL max_parallel_workers_per_gather = 2;
CREATE TEMPORARY TABLE based AS
SELECT * FROM fmsort_compare_merges('SELECT * FROM orders ORDER BY o_orderdate',
  '{traditional,double_buffering,fmsort,traditional}', 2);
SELECT is(array_agg(DISTINCT block_size), '{4096}'::int[],
  'fmsort.block_size is the traditional merge''s')
FROM based WHERE mode = 'traditional';
SELECT is(array_agg(block_size), '{2048}'::int[], '... and the base of others')
FROM based WHERE mode = 'double_buffering';
SELECT is(array_agg(assist_blocks), '{8}'::int[],
  'fmsort.assist_blocks is l')
FROM based WHERE mode = 'fmsort';
SELECT is(count(*)::int, 4, 'a mode may be named twice') FROM based;
SELECT is(array_agg(current_setting(name)),
  '{4kB,8,fmsort,2,off,1MB}'::text[], 'the settings are as before')
FROM unnest('{fmsort.block_size,fmsort.assist_blocks,fmsort.mode,
  max_parallel_workers_per_gather,transaction_read_only,work_mem}'::text[]) name;
RESET fmsort.block_size;
RESET fmsort.assist_blocks;

-- A parallel plan would have more and shorter runs.
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SELECT is(p.runs, m.runs, 'merges are compared without parallel workers')
FROM fmsort_compare_merges('SELECT * FROM orders ORDER BY o_orderdate', '{fmsort}') p,
  merges m WHERE m.mode = 'fmsort';
SET LOCAL max_parallel_workers_per_gather = 0;

SELECT ok(bool_and(run_formation_time IS NOT NULL AND runs IS NULL
    AND merge_time IS NULL AND input_buffer_bytes IS NULL),
  'a sort in memory: no merge') FROM fmsort_compare_merges(
  'SELECT * FROM orders WHERE o_orderkey < 100 ORDER BY o_orderdate');
SELECT ok(bool_and(run_formation_time IS NULL AND runs IS NULL),
  'no sort: nothing of an earlier one')
FROM fmsort_compare_merges('SELECT 1');
SELECT ok(bool_and(runs > 2 * n), 'two sorts: added up')
FROM (SELECT runs AS n FROM merges WHERE mode = 'fmsort') one,
  fmsort_compare_merges(
  'SELECT * FROM (SELECT *, rank() OVER (ORDER BY o_comment COLLATE "C") r FROM orders) s ORDER BY r DESC',
  '{fmsort}');
SELECT ok(run_formation_time + merge_time <= total_time + 0.2
    AND run_formation_time < 300,
  'two sorts, of which one waits for the other: their own times')
FROM fmsort_compare_merges('SELECT * FROM (SELECT *, rank() OVER (ORDER BY -g) r
  FROM (SELECT g, repeat(''.'', 100) AS pay,
    CASE g WHEN 1 THEN pg_sleep(0.3) END FROM generate_series(1, 20000) g OFFSET 0) i
  OFFSET 0) s ORDER BY r', '{fmsort}');

-- ---- arguments that are refused ------------------------------------------------

SELECT throws_ok($$SELECT fmsort_compare('SELECT 1', 0)$$, '22023',
  'repeat must be from 1 to 1000, not 0');
SELECT throws_ok($$SELECT fmsort_compare_merges('SELECT 1', repeat => 1001)$$,
  '22023', 'repeat must be from 1 to 1000, not 1001');
SELECT throws_ok(
  format('SELECT fmsort_compare_merges(%L, %L)', 'SELECT 1', modes), code, message)
FROM (VALUES ('{}'::text[], '22023', 'number of modes must be from 1 to 16, not 0'),
  (array_fill('flash'::text, '{17}'), '22023', 'number of modes must be from 1 to 16, not 17'),
  (array_fill('flash'::text, '{10,10}'), '22023', 'number of modes must be from 1 to 16, not 100'),
  ('{fmsort,NULL}', '22004', 'mode must not be null'),
  ('{fmsort,fastest}', '22023', 'unrecognized mode "fastest"'),
  ('{off}', '22023', 'unrecognized mode "off"')) v (modes, code, message);
SELECT is(count(*)::int, 16, 'sixteen modes, in two dimensions')
FROM fmsort_compare_merges('SELECT 1', array_fill('flash'::text, '{4,4}'));

-- ---- queries that are refused --------------------------------------------------

CREATE FUNCTION does(command text) RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
  EXECUTE command;
  RETURN 1;
END
$$;
SELECT throws_ok(format('SELECT fmsort_compare(%L)', query), code, message)
FROM (VALUES
  ('DELETE FROM orders', '25006', 'cannot execute DELETE in a read-only transaction'),
  ('WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d',
    '25006', 'cannot execute SELECT in a read-only transaction'),
  ('SELECT * FROM orders FOR UPDATE',
    '25006', 'cannot execute SELECT FOR UPDATE in a read-only transaction'),
  ('SELECT does(''DELETE FROM orders'')',
    '25006', 'cannot execute DELETE in a read-only transaction'),
  ('SELECT 1; SELECT 2', '42P11', 'cannot open multi-query plan as cursor'),
  ('SELECT 1; DROP TABLE orders', '42P11', 'cannot open multi-query plan as cursor'),
  ('DROP TABLE orders', '42601', 'syntax error at or near "DROP"'),
  ('(ANALYZE off) SELECT 1', '42601', 'syntax error at or near "ANALYZE"'),
  ('SELECT $1', '42P02', 'there is no parameter $1'),
  ('SELECT 1/0', '22012', 'division by zero')) v (query, code, message);

-- ---- what a rollback undoes ----------------------------------------------------

CREATE TEMPORARY TABLE scratch (i int);
SELECT lives_ok(format('SELECT * FROM fmsort_compare(%L)',
  format('SELECT does(%L)', command)), command)
FROM (VALUES ('INSERT INTO scratch VALUES (1)'),
  ('SET work_mem = ''64kB'''),
  ('SET search_path = nowhere'),
  ('DECLARE left_open CURSOR WITH HOLD FOR SELECT 1'),
  ('SELECT pg_advisory_xact_lock(4902)')) v (command);
SELECT is((SELECT count(*) FROM scratch) +
  (SELECT count(*) FROM pg_cursors WHERE name = 'left_open') +
  (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4902) +
  (SELECT count(*) FROM pg_settings WHERE (name, setting) IN
    (('work_mem', '64'), ('search_path', 'nowhere'))),
  0::bigint, '... nothing of it is left');
SELECT lives_ok('INSERT INTO scratch VALUES (1)', 'the transaction may write');

-- ---- the query sees its caller's session ---------------------------------------

CREATE SCHEMA elsewhere;
CREATE TABLE elsewhere.there AS SELECT 1 AS i;
SET LOCAL search_path = elsewhere, public;
SELECT is(count(*)::int, 2, 'the search path is the caller''s')
FROM fmsort_compare('SELECT * FROM there ORDER BY i');
SELECT is(count(*)::int, 3, '... of the merges, too')
FROM fmsort_compare_merges('SELECT * FROM there ORDER BY i');
RESET search_path;

-- ---- cancelled -----------------------------------------------------------------

-- throws_ok() does not catch it
CREATE FUNCTION is_cancelled(command text) RETURNS boolean LANGUAGE plpgsql AS
$$
BEGIN
  EXECUTE command;
  RETURN false;
EXCEPTION
  WHEN query_canceled THEN RETURN true;
END
$$;
CREATE TEMPORARY TABLE cancelled AS SELECT clock_timestamp() AS started;
SET LOCAL statement_timeout = '300ms';
SELECT ok(is_cancelled(
  $$SELECT fmsort_compare('SELECT * FROM orders a, orders b ORDER BY a.o_comment')$$),
  'fmsort_compare() is cancelled');
SELECT ok(is_cancelled(
  $$SELECT fmsort_compare_merges('SELECT * FROM orders a, orders b ORDER BY a.o_comment')$$),
  'fmsort_compare_merges() is cancelled');
SET LOCAL statement_timeout = 0;
SELECT ok(clock_timestamp() - started < interval '5 s', '... at once')
FROM cancelled;
SELECT is(current_setting('transaction_read_only') || current_setting('fmsort.mode'),
  'offfmsort', '... and the settings are as before');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  '... and no temporary file is left');

SELECT * FROM finish();
ROLLBACK;
