-- fmsort_compare() in the hands of any user: how much may be asked of it, and
-- that no query leaves anything behind.
--
-- Seen to fail with: compare.c before leftovers.c; no bound for the modes;
-- formation of which the input is a part.
\ir begin.psql

BEGIN;
SET LOCAL work_mem = '1MB';
SELECT plan(31);

-- ---- how much ------------------------------------------------------------------

SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT 1', array_fill('stock'::text, '{17}'))$$,
  '22023', 'fmsort_compare() takes at most 16 modes, not 17');
SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT 1', array_fill('stock'::text, '{100000}'), 1000)$$,
  '22023', 'fmsort_compare() takes at most 16 modes, not 100000');
SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT 1', array_fill('stock'::text, '{10,10}'))$$,
  '22023', 'fmsort_compare() takes at most 16 modes, not 100');
SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT 1', '{stock}', 1001)$$,
  '22023', 'repeat must be from 1 to 1000, not 1001');
SELECT is(count(*)::int, 16, 'sixteen modes')
FROM fmsort_compare('SELECT 1', array_fill('stock'::text, '{16}'));
SELECT is(count(*)::int, 2, 'a thousand runs')
FROM fmsort_compare('SELECT 1', '{stock,fmsort}', 1000);

-- ---- what a rollback does not take back ------------------------------------------

CREATE FUNCTION does(command text) RETURNS int LANGUAGE plpgsql AS
$$
BEGIN
  EXECUTE command;
  RETURN 1;
END
$$;
CREATE TEMPORARY SEQUENCE counter;
CREATE TEMPORARY TABLE refused (command text, what text);
INSERT INTO refused VALUES
  ('SELECT pg_advisory_lock(4901)', 'takes a session''s advisory lock'),
  ('SELECT pg_advisory_lock_shared(49, 1)', 'takes a session''s advisory lock'),
  ('SELECT pg_try_advisory_lock(4901)', 'takes a session''s advisory lock'),
  ('SELECT pg_advisory_unlock(4900)', 'releases a session''s advisory lock'),
  ('SELECT pg_advisory_unlock_all()', 'releases a session''s advisory lock'),
  ('SELECT nextval(''counter'')', 'changes a sequence'),
  ('SELECT setval(''counter'', 7)', 'changes a sequence'),
  ('SELECT setseed(0.5)', 'sets the seed of random()'),
  ('PREPARE left_behind AS SELECT 1', 'prepares a statement'),
  ('DEALLOCATE refused_not', 'deallocates a statement'),
  ('DISCARD PLANS', 'discards the session''s state'),
  ('LOAD ''fmsort''', 'loads a library'),
  ('FETCH ALL FROM opened', 'moves a cursor'),
  ('CLOSE opened', 'closes a cursor'),
  ('COPY (SELECT 1) TO PROGRAM ''true''', 'copies to or from a file or program');
PREPARE refused_not AS SELECT 1;
DECLARE opened CURSOR FOR SELECT generate_series(1, 3);
SELECT pg_advisory_lock(4900) \g /dev/null

SELECT throws_ok(
  format('SELECT * FROM fmsort_compare(%L, %L)',
    format('SELECT does(%L)', command), '{fmsort}'),
  '0A000', 'fmsort_compare() does not run a query that ' || what)
FROM refused;
SELECT throws_ok(
  $$SELECT * FROM fmsort_compare('SELECT pg_advisory_lock(g) FROM generate_series(1, 3) g', '{stock}')$$,
  '0A000',
  'fmsort_compare() does not run a query that takes a session''s advisory lock');

SELECT is(array_agg(objid::int), '{4900}'::int[],
  'the session has the advisory locks that it had')
FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT is(array_agg(name), '{refused_not}'::text[], '... and the prepared statements')
FROM pg_prepared_statements WHERE name IN ('left_behind', 'refused_not');
SELECT results_eq('FETCH 1 FROM opened', 'SELECT 1', '... and its cursor is where it was');

-- ---- what a rollback takes back --------------------------------------------------

SELECT lives_ok(format('SELECT * FROM fmsort_compare(%L, %L)',
  format('SELECT does(%L)', command), '{fmsort,stock}'), command)
FROM (VALUES ('DECLARE left_open CURSOR WITH HOLD FOR SELECT 1'),
  ('SET work_mem = ''64kB'''),
  ('SELECT pg_advisory_xact_lock(4902)')) v (command);
SELECT is((SELECT count(*) FROM pg_cursors WHERE name = 'left_open') +
  (SELECT count(*) FROM pg_settings
   WHERE name = 'work_mem' AND setting = '64') +
  (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4902),
  0::bigint, '... are as before');

-- ---- times -----------------------------------------------------------------------

SELECT ok(run_formation_ms + merge_ms <= total_ms + 0.2 AND run_formation_ms < 300,
  'two sorts, of which one waits for the other: their own times are added up')
FROM fmsort_compare('SELECT * FROM (SELECT *, rank() OVER (ORDER BY -g) r
  FROM (SELECT g, repeat(''.'', 100) AS pay,
    CASE g WHEN 1 THEN pg_sleep(0.3) END FROM generate_series(1, 20000) g OFFSET 0) i
  OFFSET 0) s ORDER BY r', '{fmsort}');

-- ---- afterwards the session may do all that ---------------------------------------

SELECT is(nextval('counter'), 1::bigint, 'the sequence begins at its beginning');

SELECT pg_advisory_unlock(4900) \g /dev/null
SELECT * FROM finish();
ROLLBACK;
