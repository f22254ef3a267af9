-- The device's profile: arguments of fmsort_calibrate(), that a wrong profile
-- costs little, and that one of another device does not count.
--
-- Seen to fail with: fmsort_profile_changed() without an invalidation;
-- measured_block_bytes() of sizing.c without its share; read_profile_row() of
-- profile.c that compares nothing.
\ir begin.psql

SELECT no_plan();

-- ---- arguments ------------------------------------------------------------------

SELECT throws_ok('SELECT fmsort_calibrate(seconds => 0.5)', '22023', NULL,
  'seconds: 1 at least');
SELECT throws_ok('SELECT fmsort_calibrate(seconds => ''NaN'')', '22023', NULL,
  'seconds: a number');
SELECT throws_ok('SELECT fmsort_calibrate(file_bytes => 1)', '22023', NULL,
  'file_bytes: 16 MB at least');
SELECT throws_ok('SELECT fmsort_calibrate(keep => NULL)', '22004', NULL,
  'keep: not null');

-- ---- figures -----------------------------------------------------------------------

-- Through the page cache, as direct I/O need not be possible here.
CREATE TEMPORARY TABLE measured AS
SELECT * FROM fmsort_calibrate(file_bytes => 16777216, direct_io => false);
SELECT is(count(*), 9::bigint, 'nine rows') FROM measured;
SELECT is(string_agg(DISTINCT measurement, ' ' ORDER BY measurement),
  'append random_read random_write sequential_read sequential_write',
  'each measurement, in words') FROM measured;
SELECT is(count(*), count(DISTINCT (measurement, block_size, queue_depth)),
  'each point once') FROM measured;
SELECT ok(bool_and(bytes_per_second > 0 AND verdict IS NULL),
  'there are rates; a page cache gets no verdict')
FROM measured;
SELECT is((SELECT count(*) FROM fmsort_device_rate), 0::bigint,
  'a measurement of the page cache is not kept');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  'no temporary file is left');

-- fake(rate of a block size and a depth): the profile of all tablespaces
CREATE FUNCTION fake(rate text) RETURNS void
LANGUAGE plpgsql AS
$$
BEGIN
  DELETE FROM fmsort_device_profile;
  INSERT INTO fmsort_device_profile
  SELECT oid, NULL, NULL, now(), 'none', 'none', 'sync', 1, 1
  FROM pg_tablespace;
  EXECUTE 'INSERT INTO fmsort_device_rate
    SELECT t.oid, ''random_read'', block, depth, (' || rate || ')::float8 * 1e6
    FROM pg_tablespace t, generate_series(0, 13) b, generate_series(0, 6) d,
      LATERAL (SELECT (512 << b) AS block, 1 << d AS depth) s';
  INSERT INTO fmsort_device_rate
  SELECT oid, 'append', 262144, 4, 1000000000 FROM pg_tablespace;
END
$$;

-- ---- what is recommended goes by it -------------------------------------------------

-- a device with 30 us a request and 1 GB/s in all, 8 at once
SELECT fake('least(1000, block / 1e6 / (30e-6 + block / 1e9) * least(depth, 8))');
SELECT is(block_size, 32768, 'the smallest block that is fast enough')
FROM fmsort_recommend('16MB', 200000000);
-- a hard disk: 8 ms a request, 150 MB/s
SELECT fake('block / 1e6 / (8e-3 + block / 150e6)');
SELECT is(block_size, 1048576, 'a hard disk wants the largest blocks')
FROM fmsort_recommend('64MB', 200000000);
SELECT is(merge_passes, 1, '... that fit into one merge')
FROM fmsort_recommend('4MB', 200000000);

-- ---- a sort goes by it, at once ------------------------------------------------------------

CREATE TABLE d AS
SELECT i AS id, (i * 7919) % 100003 AS k, md5(i::text) || md5(i::text) AS pay
FROM generate_series(1, 100000) i;
ANALYZE d;
SET work_mem = '2MB';

CREATE FUNCTION sort_d() RETURNS TABLE (block_size int, passes int, sum numeric)
LANGUAGE plpgsql AS
$$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM d ORDER BY k' INTO plan;
  plan := plan -> 0 -> 'Plan';
  block_size := plan ->> 'Block Size';
  passes := plan ->> 'Merge Passes';
  SELECT sum(n * s.id) INTO sum FROM
    (SELECT row_number() OVER () AS n, id FROM
      (SELECT id, k, pay FROM d ORDER BY k) q) s;
  RETURN NEXT;
END
$$;

DELETE FROM fmsort_device_profile;
CREATE TEMPORARY TABLE usual AS SELECT * FROM sort_d();
CREATE TABLE sorted (name text, block_size int, passes int, sum numeric);

-- Profiles that are nonsense: never another answer, never a pass more, never
-- blocks so small or so large that it would matter.
DO $do$
DECLARE
  lie record;
BEGIN
  FOR lie IN
    SELECT * FROM (VALUES
      ('small blocks are fast', '1e5 / block'),
      ('large blocks are fast', 'block / 1e3'),
      ('all is the same', '500'),
      ('all is very slow', '0.001'),
      ('only one at a time', '1000.0 / depth'),
      ('only many at a time', 'power(10, depth / 16)'),
      ('nothing is possible', '-1'),
      ('impossible', '1e7'),
      ('at random', 'random() * 1000')) v (name, rate)
  LOOP
    PERFORM fake(lie.rate);
    INSERT INTO sorted SELECT lie.name, s.* FROM sort_d() s;
  END LOOP;
END
$do$;
SELECT is(s.sum, u.sum, name || ': the same rows in the same order')
FROM sorted s, usual u;
SELECT cmp_ok(s.passes, '<=', u.passes, name || ': no pass more')
FROM sorted s, usual u;
SELECT ok(s.block_size BETWEEN 8192 AND 1048576, name || ': a sane block size')
FROM sorted s;
SELECT is(s.block_size, u.block_size, name || ': the profile does not count')
FROM sorted s, usual u
WHERE name IN ('nothing is possible', 'impossible');
SELECT cmp_ok(a.block_size, '<', b.block_size,
  'but a profile that can be true does')
FROM sorted a, sorted b
WHERE a.name = 'small blocks are fast' AND b.name = 'large blocks are fast';

-- changes count at once, in a transaction that is rolled back only there
SELECT fake('block / 1e3');
BEGIN;
SELECT fake('1e5 / block');
SELECT is(block_size, (SELECT block_size FROM sorted
  WHERE name = 'small blocks are fast'), 'a change counts at once')
FROM sort_d();
ROLLBACK;
SELECT is(block_size, (SELECT block_size FROM sorted
  WHERE name = 'large blocks are fast'), '... and no longer when rolled back')
FROM sort_d();
TRUNCATE fmsort_device_profile, fmsort_device_rate;
SELECT is(block_size, (SELECT block_size FROM usual),
  '... nor when it is emptied')
FROM sort_d();

-- a table that is locked is not waited for: the sort goes on without
BEGIN;
SELECT fake('block / 1e3');
LOCK TABLE fmsort_device_rate IN ACCESS EXCLUSIVE MODE;
SELECT is(passes, (SELECT passes FROM usual), 'a lock of one''s own is no obstacle')
FROM sort_d();
ROLLBACK;

-- owners may alter the tables
BEGIN;
SELECT fake('block / 1e3');
ALTER TABLE fmsort_device_profile DROP COLUMN host;
ALTER TABLE fmsort_device_rate ALTER COLUMN bytes_per_second TYPE text;
SELECT is(block_size, (SELECT block_size FROM sorted
  WHERE name = 'large blocks are fast'), 'columns may have other types')
FROM sort_d();
ROLLBACK;

-- ---- whose profile it is --------------------------------------------------------------------

SELECT fake('block / 1e3');
SELECT is(block_size, (SELECT block_size FROM sorted
  WHERE name = 'large blocks are fast'), 'a profile of any device counts')
FROM sort_d();
UPDATE fmsort_device_profile SET device = 'another';
SELECT is(block_size, (SELECT block_size FROM usual),
  '... one of another device does not')
FROM sort_d();
UPDATE fmsort_device_profile SET device = NULL, host = 'another host';
SELECT is(block_size, (SELECT block_size FROM usual),
  '... nor one of another host')
FROM sort_d();

-- ---- deleting it ----------------------------------------------------------------------------

SELECT fmsort_calibrate_reset('pg_default') \g /dev/null
SELECT is(count(*) FILTER (WHERE spcname = 'pg_default'), 0::bigint,
  'a tablespace''s profile is deleted')
FROM fmsort_device_profile JOIN pg_tablespace ON oid = tablespace;
SELECT cmp_ok(count(*), '>', 0::bigint, '... the others stay')
FROM fmsort_device_profile;
UPDATE fmsort_device_profile SET tablespace = 1 WHERE tablespace =
  (SELECT min(tablespace) FROM fmsort_device_profile);
SELECT fmsort_calibrate_reset() \g /dev/null
SELECT is((SELECT count(*) FROM fmsort_device_profile) +
  (SELECT count(*) FROM fmsort_device_rate), 0::bigint,
  'without a name all are, of tablespaces that do not exist, too');
SELECT fake('block / 1e3');
SELECT sort_d() \g /dev/null
SELECT fmsort_calibrate_reset() \g /dev/null
SELECT is(block_size, (SELECT block_size FROM usual), '... at once')
FROM sort_d();

SELECT throws_ok('CREATE TRIGGER t BEFORE INSERT ON d EXECUTE FUNCTION
  fmsort_profile_changed(); SELECT fmsort_profile_changed()',
  NULL, NULL, 'the trigger function is for triggers');

DROP TABLE d, sorted;
DROP FUNCTION sort_d(), fake(text);
SELECT * FROM finish();
