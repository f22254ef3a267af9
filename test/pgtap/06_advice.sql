-- fmsort_last_sort(): the work_mem that would have done, tried out; and the
-- sort did what it did, for every choice.
\ir begin.psql

SELECT no_plan();

CREATE TABLE a AS SELECT i AS id, (i * 7919) % 10007 AS k, md5(i::text) AS pay
FROM generate_series(1, 40000) i;
ANALYZE a;

-- One sort, and what is said of it.
CREATE FUNCTION sorted(memory text, mode text, block text, rest text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS
$$
BEGIN
  PERFORM set_config('work_mem', memory, false),
    set_config('fmsort.mode', mode, false),
    set_config('fmsort.block_size', block, false);
  EXECUTE 'SELECT count(*) FROM (SELECT * FROM a ORDER BY k OFFSET 0 '
    || rest || ') s';
END
$$;
CREATE VIEW said AS SELECT * FROM fmsort_last_sort();

-- ---- advice that is followed helps, and less than it does not -----------------

CREATE TABLE advice (mode text, block text, one_pass bigint, in_memory bigint);
CREATE FUNCTION note(mode text, block text) RETURNS void LANGUAGE sql AS
$$
  INSERT INTO advice SELECT $1, $2, one_pass_work_mem_bytes / 1024,
    in_memory_work_mem_bytes / 1024
  FROM fmsort_last_sort()
$$;
SELECT sorted('64kB', 'fmsort', '0') \g /dev/null
SELECT note('fmsort', '0') \g /dev/null
SELECT sorted('64kB', 'fmsort', '8192') \g /dev/null
SELECT cmp_ok(merge_passes, '>', 1, 'work_mem too small for one pass') FROM said;
SELECT note('fmsort', '8192') \g /dev/null
SELECT sorted('64kB', 'double_buffering', '8192') \g /dev/null
SELECT note('double_buffering', '8192') \g /dev/null
SELECT sorted('64kB', 'traditional', '16384') \g /dev/null
SELECT note('traditional', '16384') \g /dev/null

SELECT cmp_ok(one_pass, '<', in_memory, mode || ' ' || block ||
  ': one pass takes less than all memory') FROM advice;
SELECT cmp_ok(in_memory, '<', 8192::bigint, mode || ' ' || block ||
  ': ... which is no more than the rows need') FROM advice;

-- each in a statement of its own: that is what fmsort_last_sort() tells of
SELECT format('SELECT sorted(%L, %L, %L)', memory || 'kB', mode, block),
  format('SELECT is(concat_ws('' '', sort_method, merge_passes), %L, %L) FROM said',
    expected, format('%s, block size %s: %s kB', mode, block, memory))
FROM advice, LATERAL (VALUES (one_pass, 'external merge 1'),
  (in_memory, 'in-memory'), (in_memory - 128, 'external merge 1'))
  tried (memory, expected)
WHERE tried.memory > 64 \gexec

-- ---- what it would have taken, where a LIMIT dropped rows ---------------------

SELECT sorted('64MB', 'fmsort', '0') \g /dev/null
SELECT is(one_pass_work_mem_bytes, NULL, 'in memory: no advice') FROM said;
SELECT is(work_mem_bytes, 67108864::bigint, '... work_mem as it was') FROM said;

-- ---- decision ----------------------------------------------------------------------

SELECT is(decision, NULL, 'decision: in memory, nothing to say') FROM said;
SELECT sorted('64MB', 'fmsort', '0', 'LIMIT 7') \g /dev/null
SELECT is(decision, 'top-N: only 7 rows are wanted, the others were dropped',
  'decision: top-N') FROM said;

SELECT sorted('256kB', 'fmsort', '0') \g /dev/null
SELECT matches(decision, '^page cache: the spill is small$',
  'decision: all automatic') FROM said;

SET fmsort.assist_blocks = 3;
SET fmsort.io_method = sync;
SET fmsort.direct_io = off;
SELECT sorted('512kB', 'fmsort', '2048') \g /dev/null
SELECT is(decision, NULL, 'decision: all set, and followed') FROM said;
SELECT sorted('64kB', 'fmsort', '4194304') \g /dev/null
SELECT is(decision, 'block size: work_mem has no room for two runs'' blocks of 4194304, as set',
  'decision: a block size that work_mem does not hold') FROM said;
SET fmsort.assist_blocks = 1024;
SELECT sorted('64kB', 'fmsort', '512') \g /dev/null
SELECT is(decision, 'assist blocks: work_mem has no room for 1024, as set',
  'decision: more assist blocks than work_mem holds') FROM said;
SELECT sorted('256kB', 'traditional', '2048') \g /dev/null
SELECT is(decision, NULL, 'decision: a mode without assist blocks') FROM said;

-- a guess that is far too high
RESET fmsort.io_method;
RESET fmsort.direct_io;
RESET fmsort.block_size;
RESET fmsort.mode;
SET work_mem = '64kB';
CREATE FUNCTION many() RETURNS SETOF int LANGUAGE sql ROWS 1e12
AS 'SELECT generate_series(1, 20000)';
SELECT count(*) FROM (SELECT * FROM many() m ORDER BY -m OFFSET 0) s \g /dev/null
SELECT matches(decision, '(direct I/O: memory has no room for the spill|the file system refuses direct I/O with such blocks|without io_uring the kernel has to read ahead)$',
  'decision: much was expected') FROM said;

-- ... and one that is far too low: the spill goes on like one of another work_mem
CREATE FUNCTION few() RETURNS SETOF text LANGUAGE plpgsql ROWS 10
AS 'BEGIN RETURN QUERY SELECT md5(i::text) FROM generate_series(1, 200000) i; END';
SELECT count(*) FROM (SELECT * FROM few() f ORDER BY f COLLATE "C" OFFSET 0) s \g /dev/null
SELECT isnt(decision, 'page cache: the spill is small', 'decision: little was expected')
FROM said;
SELECT io_method AS grown FROM said \gset
SET work_mem = '2MB';
SELECT count(*) FROM (SELECT * FROM few() f ORDER BY f COLLATE "C" OFFSET 0) s \g /dev/null
SELECT is(io_method, :'grown', '... io_uring where there is one') FROM said;

DROP VIEW said;
DROP TABLE a, advice;
DROP FUNCTION sorted(text, text, text, text), note(text, text), many(), few();
SELECT * FROM finish();
