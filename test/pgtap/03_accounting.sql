-- What the server counts, limits and shows of a sort's temporary files.
--
-- Seen to fail with: fms_tape_trim() of tape.c doing nothing; count_blocks() of
-- tape.c forgetting the rest of a page.
\ir begin.psql

SELECT no_plan();

CREATE TABLE b AS
SELECT i AS id, (i * 7919) % 10007 AS k, md5(i::text) AS pay
FROM generate_series(1, 30000) i;
ANALYZE b;
CREATE TABLE counted (what text, files bigint, bytes bigint);

CREATE FUNCTION count_now(name text) RETURNS void LANGUAGE sql AS
$$
  INSERT INTO counted SELECT name, temp_files, temp_bytes
  FROM pg_stat_database WHERE datname = current_database()
$$;
CREATE TABLE done (mode text, memory text, method text, passes int,
  blocks bigint, block_size int, reads bigint, batches bigint, assist int,
  read bigint, written bigint, spilled bigint, tuples bigint, space bigint,
  files bigint, bytes bigint);

-- mode, work_mem, block size, assist blocks
\set mode fmsort
\set memory 256kB
\set block 2560
\set assist 8
\ir sort_once.psql
\set mode fmsort
\set memory 1MB
\set block 0
\set assist 0
\ir sort_once.psql
\set mode fmsort
\set memory 64kB
\set block 4096
\set assist 2
\ir sort_once.psql
\set mode double_buffering
\set memory 1MB
\set block 1024
\set assist 0
\ir sort_once.psql
\set mode double_buffering
\set memory 64kB
\set block 8192
\set assist 0
\ir sort_once.psql
\set mode traditional
\set memory 1MB
\set block 4096
\set assist 0
\ir sort_once.psql
\set mode traditional
\set memory 64kB
\set block 16384
\set assist 0
\ir sort_once.psql
\set mode fmsort
\set memory 64MB
\set block 0
\set assist 0
\ir sort_once.psql
RESET fmsort.mode;
RESET fmsort.block_size;
RESET fmsort.assist_blocks;

CREATE VIEW named AS SELECT *, concat_ws(', ', mode, memory,
  'blocks of ' || block_size) AS name FROM done;

SELECT is(tuples, 30000::bigint, name || ': all tuples') FROM named;
SELECT is(method, CASE memory WHEN '64MB' THEN 'in-memory'
    ELSE 'external merge' END, name || ': method')
FROM named;
SELECT is(bytes, spilled,
  name || ': pg_stat_database.temp_bytes grows by what was spilled')
FROM named;
SELECT cmp_ok(files, '>=', 1::bigint,
  name || ': pg_stat_database.temp_files grows') FROM named
WHERE method LIKE 'ext%';
SELECT is(files, 0::bigint, name || ': no temporary file') FROM named
WHERE method NOT LIKE 'ext%';
SELECT is(spilled + read + written + coalesce(blocks, 0), 0::bigint,
  name || ': nothing was spilled') FROM named WHERE method NOT LIKE 'ext%';
SELECT is(space, spilled, name || ': the space used')
FROM named WHERE method LIKE 'ext%';
SELECT cmp_ok(written, '>=', blocks * block_size, name || ': bytes written')
FROM named WHERE method LIKE 'ext%';
SELECT cmp_ok(batches, '<=', reads, name || ': batches of reads') FROM named;

-- in one pass every block is read once; in more, some are again
SELECT ok(bool_or(passes = 1) AND bool_or(passes > 1),
  'merges of one pass and of several')
FROM done;
SELECT is(reads, blocks, name || ': one pass reads each block once')
FROM named WHERE passes = 1;
SELECT cmp_ok(read, '>=', blocks * block_size, name || ': bytes read')
FROM named WHERE passes > 0;
SELECT is(read, blocks * block_size, name || ': and nothing else')
FROM named WHERE passes = 1 AND mode <> 'fmsort';
SELECT cmp_ok(reads, '>', blocks, name || ': more passes read more')
FROM named WHERE passes > 1;
SELECT cmp_ok(written, '>', blocks * block_size,
  name || ': and write more') FROM named WHERE passes > 1;

SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  'no temporary file is left');

-- ---- EXPLAIN (BUFFERS) ----------------------------------------------------------

CREATE FUNCTION plan_of(query text, options text) RETURNS jsonb
LANGUAGE plpgsql AS
$$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON' || options || ') ' || query
  INTO plan;
  RETURN plan -> 0 -> 'Plan';
END
$$;

SET work_mem = '256kB';
SET fmsort.mode = 'traditional';
SET fmsort.block_size = 4096;
CREATE TEMPORARY TABLE plan AS
SELECT plan_of('SELECT * FROM b ORDER BY k', ', BUFFERS') AS p;
SELECT is((p ->> 'Temp Read Blocks')::bigint,
  (p ->> 'Blocks')::bigint * (p ->> 'Block Size')::bigint / 8192,
  'temporary blocks read, in pages') FROM plan;
SELECT cmp_ok((p ->> 'Temp Written Blocks')::bigint, '>=',
  (p ->> 'Temp Read Blocks')::bigint, 'temporary blocks written, in pages')
FROM plan;
SELECT is((p -> 'Plans' -> 0 ->> 'Temp Read Blocks')::bigint, 0::bigint,
  'none of them below the sort') FROM plan;
-- each of the sort's two files may end within a page
SELECT cmp_ok(abs((p ->> 'Sort Space Used')::bigint / 8 -
  (p ->> 'Temp Written Blocks')::bigint), '<=', 2::bigint,
  'the space used was written') FROM plan;
DROP TABLE plan;

-- track_io_timing is for those who may set it
SET track_io_timing = on;
-- only what is waited for counts, and small spills may never wait
SET fmsort.io_method = sync;
CREATE TEMP TABLE plan AS
  SELECT p FROM plan_of('SELECT * FROM b ORDER BY k', ', BUFFERS') p;
SELECT cmp_ok((p ->> 'Temp I/O Write Time')::float8, '>', 0::float8,
  'track_io_timing: writes') FROM plan;
SELECT cmp_ok((p ->> 'Temp I/O Read Time')::float8, '>', 0::float8,
  'track_io_timing: reads') FROM plan;
DROP TABLE plan;
RESET fmsort.io_method;
RESET track_io_timing;

-- ---- limits and tablespaces ------------------------------------------------------

SET temp_file_limit = '1MB';
SELECT throws_ok('SELECT count(pay) FROM (SELECT * FROM b ORDER BY k) s',
  '53400', NULL, 'temp_file_limit is kept');
SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  '... and leaves no file');
SET temp_file_limit = '16MB';
SELECT lives_ok('SELECT count(pay) FROM (SELECT * FROM b ORDER BY k) s',
  'a limit that is not reached does not matter');
RESET temp_file_limit;

-- ---- it never uses more than work_mem ----------------------------------------------

-- What fits is what is counted: a sort in memory takes no more than work_mem.
SET work_mem = '4MB';
SELECT cmp_ok((p ->> 'Sort Space Used')::bigint, '<=', 4096::bigint,
  'a sort in memory takes no more than work_mem')
FROM plan_of('SELECT * FROM b ORDER BY k', '') p
WHERE p ->> 'Sort Method' = 'in-memory';

-- The next sort of a transaction begins with the memory of the last one.  A sort
-- of words needs only one of its two pieces.
BEGIN;
SET LOCAL work_mem = '64MB';
SELECT count(t) FROM (SELECT i, repeat('x', 100) AS t FROM generate_series(1, 20000) i
  ORDER BY -i OFFSET 0) s \g /dev/null
SELECT count(i) FROM (SELECT i FROM generate_series(1, 1000000) i
  ORDER BY i DESC OFFSET 0) s \g /dev/null
SELECT is(sort_method, 'in-memory', 'words after tuples in one transaction')
FROM fmsort_last_sort() ORDER BY 1 LIMIT 1;
COMMIT;

DROP VIEW named;
DROP TABLE b, counted, done;
DROP FUNCTION plan_of(text, text), count_now(text);
SELECT * FROM finish();
