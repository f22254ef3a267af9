-- fmsort_compare(): what it returns, what it refuses, and that it leaves no
-- trace.
--
-- Seen to fail with, in compare.c: no common input buffer (set_contender()
-- always automatic); no transaction_read_only; the subtransaction committed
-- instead of rolled back; check_query() doing nothing; a speed-up over the last
-- mode.
\ir begin.psql

BEGIN;
SET LOCAL work_mem = '1MB';
SELECT plan(33);

CREATE TABLE orders AS
SELECT i AS o_orderkey, date '1992-01-01' + (i * 7919) % 2406 AS o_orderdate,
  repeat(md5(i::text), 2) AS o_comment
FROM generate_series(1, 60000) i;
ANALYZE orders;

-- ---- the table ---------------------------------------------------------------

CREATE TEMPORARY TABLE compared AS
SELECT row_number() OVER () AS place, c.*
FROM fmsort_compare('SELECT * FROM orders ORDER BY o_orderdate') c;
SELECT is(array_agg(mode ORDER BY place), '{stock,automatic,traditional,double_buffering,fmsort}'::text[],
  'a row a mode, the stock sort first') FROM compared;
SELECT ok(bool_and(total_ms > 0 AND run_formation_ms > 0 AND merge_ms >= 0
    AND blocked_ms >= 0 AND run_formation_ms <= total_ms), 'times')
FROM compared WHERE mode <> 'stock';
SELECT ok(bool_and(runs > 1 AND merge_passes = 1 AND blocks > runs
    AND block_size > 0), 'runs, one pass, blocks')
FROM compared WHERE mode <> 'stock';
SELECT ok(run_formation_ms IS NULL AND merge_ms IS NULL AND runs IS NULL
    AND blocks IS NULL AND block_size IS NULL,
  'of the stock sort only what can be known') FROM compared
WHERE mode = 'stock';
SELECT ok(bool_and(mb_read > 1 AND mb_written > 1),
  'MB read and written, of the stock sort, too') FROM compared;
SELECT is(min(speedup) FILTER (WHERE place = 1), 1::float8,
  'speed-up over the first: the first one''s is 1') FROM compared;
SELECT ok(bool_and(abs(speedup - f.total_ms / c.total_ms) < 0.05 * speedup + 0.02),
  '... and the others'' are ratios of the totals')
FROM compared c, (SELECT total_ms FROM compared WHERE place = 1) f;

-- Table 5: the same input buffer, but for whole sectors of 512 bytes
SELECT ok(max(input_buffer_kb) <= min(input_buffer_kb) * 1.15,
  'the same input buffer for three modes')
FROM compared WHERE mode IN ('traditional', 'double_buffering', 'fmsort');
SELECT is(d.block_size, t.block_size / 2,
  'double buffering has blocks half as large')
FROM compared d, compared t
WHERE d.mode = 'double_buffering' AND t.mode = 'traditional';
SELECT is(array_agg(assist_blocks ORDER BY place), '{0,0,32}'::int[],
  'assist blocks in mode fmsort only')
FROM compared WHERE mode IN ('traditional', 'double_buffering', 'fmsort');
SELECT ok(bool_and(input_buffer_kb IS NULL),
  'the stock sort and automatic use work_mem as they like')
FROM compared WHERE mode IN ('stock', 'automatic');

CREATE TEMPORARY TABLE others AS
SELECT row_number() OVER () AS place, c.*
FROM fmsort_compare('SELECT * FROM orders ORDER BY o_orderdate',
  '{traditional,single_block,multi_block,flash,fmsort}') c;
SELECT ok(max(input_buffer_kb) <= min(input_buffer_kb) * 1.15,
  'the same input buffer for other modes') FROM others;
SELECT is(array_agg(assist_blocks ORDER BY place), '{0,0,32,32,32}'::int[],
  'assist blocks of the other modes') FROM others;

SET LOCAL fmsort.block_size = 4096;
SET LOCAL fmsort.assist_blocks = 8;
CREATE TEMPORARY TABLE based AS
SELECT * FROM fmsort_compare('SELECT * FROM orders ORDER BY o_orderdate',
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
SELECT is(current_setting('fmsort.block_size'), '4kB',
  'the session''s settings are as before');
SELECT is(current_setting('transaction_read_only'), 'off',
  '... and it may write again');
RESET fmsort.block_size;
RESET fmsort.assist_blocks;

-- ---- nothing to merge, nothing to sort ---------------------------------------

SELECT ok(bool_and(run_formation_ms IS NOT NULL AND runs IS NULL),
  'a sort in memory: no merge') FROM fmsort_compare(
  'SELECT * FROM orders WHERE o_orderkey < 100 ORDER BY o_orderdate',
  '{fmsort,traditional}');
SELECT ok(bool_and(run_formation_ms IS NULL AND mb_written = 0),
  'no sort: no times of one')
FROM fmsort_compare('SELECT 1', '{stock,fmsort}');
SELECT ok(bool_and(runs > 2), 'two sorts: added up') FROM fmsort_compare(
  'SELECT * FROM (SELECT o_orderkey, rank() OVER (ORDER BY o_comment COLLATE "C") r FROM orders) s ORDER BY r DESC',
  '{fmsort}');

-- ---- what it refuses ---------------------------------------------------------

PREPARE refused(text) AS SELECT * FROM fmsort_compare($1, '{fmsort}');
SELECT throws_ok($$EXECUTE refused('DELETE FROM orders')$$, '0A000',
  'fmsort_compare() runs SELECT only');
SELECT throws_ok(
  $$EXECUTE refused('WITH d AS (DELETE FROM orders RETURNING *) SELECT * FROM d')$$,
  '0A000', 'fmsort_compare() runs SELECT only');
SELECT throws_ok($$EXECUTE refused('SELECT * INTO copy FROM orders')$$, '0A000',
  'fmsort_compare() runs SELECT only');
SELECT throws_ok($$EXECUTE refused('SELECT 1; SELECT 2')$$, '22023',
  'fmsort_compare() takes exactly one query');
SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT 1', '{fastest}')$$, '22023',
  'fmsort_compare() knows no mode "fastest"');
SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT 1', repeat => 0)$$, '22023',
  'repeat must be from 1 to 1000, not 0');

-- ---- what functions in the query do ------------------------------------------

CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
  DELETE FROM orders WHERE o_orderkey = 1;
  RETURN 1;
END
$$;
CREATE TEMPORARY TABLE scratch (i int);
CREATE FUNCTION scratches() RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
  INSERT INTO scratch VALUES (1);
  PERFORM set_config('work_mem', '64kB', false);
  RETURN 1;
END
$$;
SELECT throws_ok($$EXECUTE refused('SELECT writes() ORDER BY 1')$$, '25006',
  'cannot execute DELETE in a read-only transaction');
SELECT throws_ok($$SELECT fmsort_compare('SELECT 1', '{}')$$, '22023',
  'fmsort_compare() needs at least one mode');
SELECT throws_ok($$SELECT fmsort_compare('SELECT 1', '{stock,NULL}')$$,
  '22004', 'a mode must not be null');
CREATE TEMPORARY TABLE scratched AS
SELECT * FROM fmsort_compare('SELECT scratches()', '{fmsort}');
SELECT is(count(*)::int, 0, 'temporary tables are as before') FROM scratch;
SELECT is(current_setting('work_mem'), '1MB', '... and settings');

SELECT * FROM finish();
ROLLBACK;
