-- The device's profile: arguments of fmsort_calibrate(), what
-- fmsort_recommend() says, and that a wrong profile costs little.
--
-- Seen to fail with: fmsort_profile_changed() without an invalidation;
-- measured_block_bytes() of sizing.c without its share.
\ir begin.psql

SELECT no_plan();

-- ---- arguments ------------------------------------------------------------------

SELECT throws_ok('SELECT fmsort_calibrate(seconds => 0)', '22023', NULL,
  'seconds: above 0');
SELECT throws_ok('SELECT fmsort_calibrate(seconds => ''NaN'')', '22023', NULL,
  'seconds: a number');
SELECT throws_ok('SELECT fmsort_calibrate(seconds => 1e6)', '22023', NULL,
  'seconds: an hour at most');
SELECT throws_ok('SELECT fmsort_calibrate(size_mb => 1)', '22023', NULL,
  'size_mb: 16 at least');
SELECT throws_ok('SELECT fmsort_calibrate(seconds => NULL)', '22004', NULL,
  'seconds: not null');
SELECT throws_ok('SELECT fmsort_calibrate(block_sizes => ''{1000}'')', '22023',
  NULL, 'block_sizes: powers of two');
SELECT throws_ok('SELECT fmsort_calibrate(queue_depths => ''{128}'')', '22023',
  NULL, 'queue_depths: 64 at most');
SELECT throws_ok('SELECT fmsort_calibrate(queue_depths => ''{NULL}'')',
  '22023', NULL, 'queue_depths: no nulls');
SELECT throws_ok('SELECT fmsort_calibrate(patterns => ''{XX}'')', '22023',
  'invalid pattern "XX"', 'patterns: known ones');
SELECT throws_ok('SELECT fmsort_recommend(''none'', 1000)', '22023', NULL,
  'work_mem: what SET takes');
SELECT throws_ok('SELECT fmsort_recommend(''1kB'', 1000)', '22023', NULL,
  'work_mem: 64 kB at least');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 0)', '22023', NULL,
  'input_bytes: above 0');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 1000, -1)', '22023', NULL,
  'tuple_bytes: above 0');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 1000, distinct_keys => -1)',
  '22023', NULL, 'recommended: distinct_keys from 0');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 1000, block_size => 1000)',
  '22023', NULL, 'block_size: a multiple of 512');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 1000, assist_blocks => 1025)',
  '22023', NULL, 'assist_blocks: 1024 at most');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 1000, tablespace => ''no'')',
  '42704', NULL, 'tablespace: one that exists');

-- ---- figures -----------------------------------------------------------------------

-- Through the page cache, as direct I/O need not be possible here; again, if
-- the machine stood still and left no time for some of the points.
CREATE TEMPORARY TABLE measured AS
SELECT * FROM fmsort_calibrate(seconds => 0.1, size_mb => 16,
  direct_io => false, patterns => '{append}');
DO $do$
BEGIN
  FOR i IN 1 .. 10 LOOP
    DELETE FROM measured;
    INSERT INTO measured
    SELECT * FROM fmsort_calibrate(seconds => 3, size_mb => 16,
      direct_io => false, patterns => '{SR,RR,SW,RW,"RR misaligned",
      "RW misaligned","SW after RW","RR with SW","RR lasting","RR joined","RR used",
      append,"give back"}',
      block_sizes => '{512,4096,65536}', queue_depths => '{1,4}');
    EXIT WHEN (SELECT count(*) FROM measured) >= 25;
  END LOOP;
END
$do$;
SELECT cmp_ok(count(*), '>=', 25::bigint, 'each pattern, size and depth')
FROM measured;
SELECT is(count(DISTINCT pattern), 13::bigint, 'each pattern') FROM measured;
SELECT ok(bool_and(mb_per_s > 0 AND iops > 0), 'there are rates')
FROM measured;
SELECT ok(bool_and(abs(mb_per_s - iops * block_bytes / 1e6) < 0.001 * mb_per_s),
  'rates in bytes and in requests agree') FROM measured;
SELECT ok(bool_and(p50_us > 0 AND p50_us <= p95_us AND p95_us <= p99_us),
  'percentiles of the latency are in order') FROM measured;
SELECT is((SELECT count(*) FROM fmsort_device_rate), 0::bigint,
  'a measurement of the page cache is not kept');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  'no temporary file is left');

-- ---- fmsort_recommend() ----------------------------------------------------------------

SELECT is(sort_method, 'in-memory', 'what fits is sorted in memory')
FROM fmsort_recommend('64MB', 1000000);
SELECT ok(measured_at IS NULL AND run_formation_ms IS NULL AND
  read_mb_per_s IS NULL AND chosen_block_size > 0,
  'without a profile: settings, but no times')
FROM fmsort_recommend('4MB', 200000000);

-- fake(rate of a block size and a depth): the profile of all tablespaces
CREATE FUNCTION fake(rate text, write_mb float8 DEFAULT 1000) RETURNS void
LANGUAGE plpgsql AS
$$
BEGIN
  DELETE FROM fmsort_device_profile;
  INSERT INTO fmsort_device_profile
  SELECT spcname, now(), 'none', 'none', 'sync', 1, 1, 400, 1,
    100, 0.5, 30, 1000, 4000, 100, 0.5, 30, 1000, 4000
  FROM pg_tablespace;
  EXECUTE 'INSERT INTO fmsort_device_rate
    SELECT spcname, ''RR'', block, depth, (' || rate || ')::float8, 1, 1, 1, 1, 1
    FROM pg_tablespace, generate_series(0, 13) b, generate_series(0, 6) d,
      LATERAL (SELECT (512 << b) AS block, 1 << d AS depth) s';
  INSERT INTO fmsort_device_rate
  SELECT spcname, 'append', 262144, 4, write_mb, 1, 1, 1, 1, 1
  FROM pg_tablespace;
END
$$;

-- a device with 30 us a request and 1 GB/s in all, 8 at once
SET fmsort.direct_io = on;
SELECT fake('least(1000, block / 1e6 / (30e-6 + block / 1e9) * least(depth, 8))');
CREATE TEMPORARY TABLE flash AS
SELECT * FROM fmsort_recommend('16MB', 200000000);
SELECT ok(measured_at IS NOT NULL AND run_formation_ms > 0 AND merge_ms > 0 AND
  blocked_ms >= 0 AND blocked_ms <= merge_ms, 'with a profile there are times')
FROM flash;
SELECT is(chosen_block_size, 32768, 'the smallest block that is fast enough')
FROM flash;
CREATE TEMPORARY TABLE passes AS
SELECT * FROM fmsort_recommend('4MB', 200000000, block_size => 131072);
-- the same, if space is given back at 100 MB/s
INSERT INTO fmsort_device_rate
SELECT spcname, 'give back', 4194304, 1, 100, 1, 1, 1, 1, 1 FROM pg_tablespace;
SET fmsort.compression = off;
SELECT ok(r.merge_passes = 2 AND r.merge_ms = p.merge_ms,
  'giving space back slowly takes no pass longer, as none does')
FROM passes p, fmsort_recommend('4MB', 200000000, block_size => 131072) r;
RESET fmsort.compression;
SELECT ok(r.compressed AND NOT f.compressed AND
    abs(r.bytes_spilled - f.bytes_spilled / 2.25) <= 1 AND
    r.run_formation_ms > f.run_formation_ms,
  '... and is slow enough for compressing what is spilled')
FROM flash f, fmsort_recommend('16MB', 200000000) r;
DELETE FROM fmsort_device_rate WHERE pattern = 'give back';
-- the same for a moment only: then 125 MB/s, or 3,000 requests a second
INSERT INTO fmsort_device_rate
SELECT spcname, 'RR lasting', block, 8, mb, 1, 1, 1, 1, 1
FROM pg_tablespace, (VALUES (4096, 12.288), (1048576, 125)) v (block, mb);
SELECT is(array_agg(round(read_mb_per_s) ORDER BY block), '{12,98,125}',
  'what does not last does not count for a sort')
FROM unnest('{4096,32768,262144}'::int[]) block,
  fmsort_recommend('64MB', 200000000, block_size => block);
SELECT cmp_ok(r.blocked_ms, '>', 4 * f.blocked_ms, '... which waits')
FROM flash f, fmsort_recommend('16MB', 200000000) r;
-- a hard disk: 8 ms a request, 150 MB/s
SELECT fake('block / 1e6 / (8e-3 + block / 150e6)', 150);
SELECT is(chosen_block_size, 1048576, 'a hard disk wants the largest blocks')
FROM fmsort_recommend('64MB', 200000000);
SELECT is(merge_passes, 1, '... that fit into one merge')
FROM fmsort_recommend('4MB', 200000000);
SELECT cmp_ok(d.blocked_ms, '>', 10 * f.blocked_ms, '... and waits')
FROM flash f, fmsort_recommend('16MB', 200000000, block_size => 16384) d;
-- from the page cache: what asking for blocks costs, 4 us each time: two of 8
-- assist blocks are asked for at once, and sixteen of 64
SET fmsort.direct_io = off;
SELECT is(round(((few.merge_ms - many.merge_ms) * 1e6 / few.bytes_spilled)::numeric, 2),
  round((4000 * (1 / 2.0 - 1 / 16.0) / 8192)::numeric, 2),
  'small submissions cost more')
FROM fmsort_recommend('64MB', 200000000, block_size => 8192, assist_blocks => 8) few,
  fmsort_recommend('64MB', 200000000, block_size => 8192, assist_blocks => 64) many;
-- 2 million rows, 3 runs and more: where many keys are alike, runs change seldom
SELECT ok(bool_and(merge_ms < before) AND count(*) = 4,
  'the merge takes the longer the more keys differ')
FROM (SELECT merge_ms, lead(merge_ms) OVER (ORDER BY keys) AS before
  FROM unnest('{100, 10000, 50000, 200000, 2000000}'::bigint[]) keys,
    fmsort_recommend('64MB', 200000000, distinct_keys => keys)) s
WHERE before IS NOT NULL;
SELECT ok(r.merge_ms BETWEEN 0.5 * u.merge_ms AND 2 * u.merge_ms,
  '... not known: something between')
FROM fmsort_recommend('64MB', 200000000) u,
  unnest('{1, 1000000000000}'::bigint[]) keys,
  fmsort_recommend('64MB', 200000000, distinct_keys => keys) r;
-- what memory does not hold was written, at 4,000 MB/s, and is read, at 10
SELECT fake('10', 4000);
SELECT ok(small.bytes_spilled > 0 AND small.blocked_ms = 0 AND
    large.blocked_ms > 0.5 * large.bytes_spilled / 10e3,
  'a spill of 10 TB does not stay in the page cache')
FROM fmsort_recommend('4MB', 10000000) small,
  fmsort_recommend('64MB', 10000000000000) large;
SELECT fake('10', 0.1);
SELECT cmp_ok(blocked_ms, '<', (0.5 * bytes_spilled / 10e3)::float8,
  '... but for what has not been written')
FROM fmsort_recommend('64MB', 10000000000000);
-- past it: blocks that begin with the same key are one read of several
SET fmsort.direct_io = on;
SELECT fake('least(1000, block / 1e6 / (30e-6 + block / 1e9) * least(depth, 2))');
SELECT cmp_ok(alike.read_mb_per_s, '>', 1.5 * differ.read_mb_per_s,
  'many rows of a key are read by larger requests')
FROM fmsort_recommend('64MB', 1000000000, block_size => 4096, assist_blocks => 64,
    distinct_keys => 3000) alike,
  fmsort_recommend('64MB', 1000000000, block_size => 4096, assist_blocks => 64,
    distinct_keys => 10000000) differ;
SELECT is(alike.read_mb_per_s, differ.read_mb_per_s,
  '... which a block that is as large already does not become')
FROM fmsort_recommend('64MB', 1000000000, block_size => 131072, assist_blocks => 64,
    distinct_keys => 3000) alike,
  fmsort_recommend('64MB', 1000000000, block_size => 131072, assist_blocks => 64,
    distinct_keys => 10000000) differ;
-- runs that come to the end of a large block together want all their next ones
SELECT fake('4000');
SELECT ok(few.blocked_ms > 0.45 * few.bytes_spilled / 4e6 AND
    small.blocked_ms < 0.4 * small.bytes_spilled / 4e6,
  'large blocks are waited for if there are fewer assist blocks than runs')
FROM fmsort_recommend('64MB', 1000000000, block_size => 1048576, assist_blocks => 8) few,
  fmsort_recommend('64MB', 1000000000, block_size => 32768, assist_blocks => 8) small;
-- a single assist block is read while another's tuples are merged
SELECT ok(r.blocked_ms BETWEEN 0.05 * device_ms AND 0.5 * device_ms,
  'with one assist block a part of reading is waited for')
FROM fmsort_recommend('64MB', 1000000000, block_size => 32768, assist_blocks => 1) r,
  LATERAL (SELECT r.bytes_spilled / r.read_mb_per_s / 1000 AS device_ms) d;
SELECT cmp_ok(r.blocked_ms, '<', 0.05 * r.bytes_spilled / r.read_mb_per_s / 1000,
  '... and with many nearly all does')
FROM fmsort_recommend('64MB', 1000000000, block_size => 32768, assist_blocks => 64) r;
-- an earlier pass writes what it reads, and waits for that
SELECT ok(r.merge_passes = 2 AND
    r.blocked_ms > 0.1 * r.bytes_spilled / r.read_mb_per_s / 1000,
  '... unless a pass has to write, too')
FROM fmsort_recommend('4MB', 1000000000, block_size => 131072, assist_blocks => 64) r;
-- a block that a pass reads and writes costs twice, and once more in the last merge
CREATE TEMPORARY TABLE two_passes AS
SELECT merge_ms, bytes_spilled / 131072 AS blocks
FROM fmsort_recommend('4MB', 1000000000, block_size => 131072, distinct_keys => 1000000000);
UPDATE fmsort_device_profile SET direct_merge_block_ns = direct_merge_block_ns + 1e6;
SELECT cmp_ok(r.merge_ms - t.merge_ms, '>', (2.1 * t.blocks)::float8,
  'writing a block in a pass has its price')
FROM two_passes t,
  fmsort_recommend('4MB', 1000000000, block_size => 131072, distinct_keys => 1000000000) r;
UPDATE fmsort_device_profile SET direct_merge_block_ns = direct_merge_block_ns - 1e6;
-- changing runs cannot be more than all of a tuple
UPDATE fmsort_device_profile SET direct_merge_change_ns = 1e8;
SELECT cmp_ok(r.merge_ms, '>=', r.blocked_ms,
  'a price that is nonsense makes no time negative')
FROM fmsort_recommend('64MB', 1000000000, distinct_keys => 2) r;
RESET fmsort.direct_io;
-- the block size and the assist blocks may be given
SELECT is(chosen_block_size || ' ' || chosen_assist_blocks, '8192 3',
  'settings that are given are taken')
FROM fmsort_recommend('16MB', 200000000, block_size => 8192, assist_blocks => 3);

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

-- as much is spilled as was foreseen, by the rows' width as the planner has it
SET fmsort.compression = off;
CREATE TABLE by_k AS SELECT * FROM d ORDER BY k;
SELECT ok(r.bytes_spilled BETWEEN 0.95 * s.bytes_spilled AND 1.05 * s.bytes_spilled,
  'what is spilled is known beforehand')
FROM fmsort_last_sort() s,
  (SELECT sum(avg_width)::int AS width FROM pg_stats WHERE tablename = 'd') w,
  fmsort_recommend('2MB', 100000 * width, width) r;
DROP TABLE by_k;
RESET fmsort.compression;

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
      ('not a number', $$'NaN'$$),
      ('infinite', $$'Infinity'$$),
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
WHERE name IN ('nothing is possible', 'not a number', 'infinite');
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

SELECT cmp_ok(merge_passes, '>', 1, 'recommended: more runs than one merge takes')
FROM fmsort_recommend('64kB', 10000000, block_size => 16384);

SELECT throws_ok('CREATE TRIGGER t BEFORE INSERT ON d EXECUTE FUNCTION
  fmsort_profile_changed(); SELECT fmsort_profile_changed()',
  NULL, NULL, 'the trigger function is for triggers');

DROP TABLE d, sorted;
DROP FUNCTION sort_d(), fake(text, float8);
SELECT * FROM finish();
