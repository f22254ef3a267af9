-- What the modes of Flash mergesort's paper read, and in how many operations;
-- and a sort that writes its result first.
--
-- The rows' keys are spread evenly, so all runs have nearly the same number of
-- blocks and end nearly together: the paper's counts hold almost exactly.
--
-- Seen to fail with: mode_flash.c reading one block less than is free;
-- mode_multi_block.c giving no run the blocks that are left over,
-- or reading one block at a time; run.c noting first keys for mode flash.
\ir begin.psql

BEGIN;
SELECT no_plan();

CREATE TABLE b AS
SELECT i AS id, (i * 7919) % 60013 AS k, md5(i::text) AS pay
FROM generate_series(1, 60000) i;
ANALYZE b;
-- chains of blocks everywhere
CREATE TABLE wide (id int, k int, pay text);
ALTER TABLE wide ALTER pay SET STORAGE PLAIN;
INSERT INTO wide
SELECT i AS id, (i * 7919) % 307 AS k,
  repeat('x', CASE i % 5 WHEN 0 THEN 3000 ELSE i % 100 END) AS pay
FROM generate_series(1, 3000) i;
ANALYZE wide;

CREATE TABLE done (name text, mode text, method text, runs bigint,
  passes int, blocks bigint, block_size int, assist bigint, reads bigint,
  operations bigint, read bigint, written bigint, digest text);

CREATE FUNCTION sorted(name text, mode text, assist int, relation text = 'b',
  block int = 2048, memory text = '1MB', materialize text = 'off')
RETURNS void LANGUAGE plpgsql AS
$$
DECLARE
  digest text;
BEGIN
  PERFORM set_config('fmsort.mode', mode, true),
    set_config('fmsort.assist_blocks', assist::text, true),
    set_config('fmsort.block_size', block::text, true),
    set_config('fmsort.debug_materialize', materialize, true),
    set_config('work_mem', memory, true);
  EXECUTE format('SELECT md5(string_agg(id || pay, '''')) FROM
    (SELECT * FROM %I ORDER BY k, pay) s', relation) INTO digest;
  INSERT INTO done
  SELECT sorted.name, merge_mode, sort_method, runs, merge_passes, blocks,
    block_size, assist_blocks, s.reads, read_batches, bytes_read, bytes_written,
    digest
  FROM fmsort_last_sort() s ORDER BY sort_number DESC LIMIT 1;
END
$$;

SELECT sorted('single', 'single_block', 0) \g /dev/null
SELECT sorted('traditional', 'traditional', 0) \g /dev/null
SELECT sorted('multi 1', 'multi_block', 1) \g /dev/null
SELECT sorted('multi n', 'multi_block', runs::int) FROM done
WHERE name = 'single' \g /dev/null
SELECT sorted('multi 3n', 'multi_block', 3 * runs::int) FROM done
WHERE name = 'single' \g /dev/null
SELECT sorted('multi n/2', 'multi_block', runs::int / 2) FROM done
WHERE name = 'single' \g /dev/null
SELECT sorted('flash 1', 'flash', 1) \g /dev/null
SELECT sorted('flash 7', 'flash', 7) \g /dev/null
SELECT sorted('flash 100', 'flash', 100) \g /dev/null
SELECT sorted('flash auto', 'flash', 0) \g /dev/null
SELECT sorted('multi auto', 'multi_block', 0) \g /dev/null
SELECT sorted('fmsort', 'fmsort', 7) \g /dev/null
SET LOCAL fmsort.io_method = sync;
SELECT sorted('fmsort 16', 'fmsort', 16) \g /dev/null
RESET fmsort.io_method;

-- ---- what they have in common ------------------------------------------------

SELECT is(count(DISTINCT digest), 1::bigint, 'all modes: the same sequence')
FROM done;
SELECT is(passes, 1, name || ': one pass') FROM done;
SELECT is(mode, CASE split_part(name, ' ', 1) WHEN 'single' THEN 'traditional'
  WHEN 'multi' THEN 'multi_block' ELSE split_part(name, ' ', 1) END,
  name || ': mode') FROM done;
-- the block read order is read, too
SELECT ok(read BETWEEN blocks * block_size AND 1.1 * blocks * block_size,
  name || ': each block is read once') FROM done;
SELECT is(read, blocks * block_size, name || ': and nothing else') FROM done
WHERE mode IN ('traditional', 'multi_block');
SELECT ok(runs BETWEEN 4 AND 20, name || ': runs') FROM done;

-- ---- blocks and operations -----------------------------------------------------

SELECT is(array[assist, reads, operations], array[0, blocks, blocks],
  name || ': a read a block, one after the other')
FROM done WHERE mode = 'traditional';

-- a share is read at once; each run's last read may be short
SELECT ok(reads = operations AND
    reads BETWEEN blocks * runs / (runs + assist) AND
      blocks * runs / (runs + assist) + runs,
  format('%s: %s reads of %s blocks in %s runs, %s more than one a run', name,
    reads, blocks, runs, assist))
FROM done WHERE name IN ('multi n', 'multi 3n', 'multi auto');
-- some runs have two blocks, and the others one
SELECT ok(reads = operations AND
    reads BETWEEN blocks - blocks * assist / (runs - 1) / 2 - runs AND
      blocks - blocks * assist / runs / 2 + runs,
  format('%s: %s reads of %s blocks in %s runs, %s more than one a run', name,
    reads, blocks, runs, assist))
FROM done WHERE name IN ('multi 1', 'multi n/2');

-- all first blocks at once, then l at a time; more when runs have ended
SELECT ok(reads = blocks AND
    operations <= 1 + ceil((blocks - runs) / assist::numeric) AND
    operations >= 1 + floor((blocks - 2 * runs) / assist::numeric),
  format('%s: %s operations for %s blocks in %s runs, %s at a time', name,
    operations, blocks, runs, assist))
FROM done WHERE mode = 'flash';

-- who never waits asks for two batches at a time, once that has been seen
SELECT ok(reads = blocks AND
    operations BETWEEN blocks / 4 - 16 AND blocks / 4 + 64,
  format('%s: %s operations for %s blocks', name, operations, blocks))
FROM done WHERE name = 'fmsort 16';

-- automatic: the memory of run formation
SELECT ok((runs + assist) * block_size BETWEEN 0.7 * 1048576 AND 1048576,
  format('%s: %s blocks fill the memory', name, runs + assist))
FROM done WHERE name LIKE '% auto';

-- ---- rows larger than blocks, several passes -------------------------------------

TRUNCATE done;
SELECT sorted(format('%s, %s', mode, assist), mode, assist, 'wide', 512, '64kB')
FROM unnest('{off,fmsort,single_block,multi_block,flash}'::text[]) mode,
  unnest('{0,1,20}'::int[]) assist WHERE mode <> 'off' \g /dev/null
SELECT is(count(DISTINCT digest), 1::bigint,
  'rows larger than blocks: the same sequence') FROM done;
SELECT cmp_ok(passes, '>', 1, name || ': several passes') FROM done;
SELECT sorted('one pass', mode, assist, 'wide', 512, '512kB')
FROM unnest('{fmsort,multi_block,flash}'::text[]) mode,
  unnest('{0,1,20}'::int[]) assist \g /dev/null
SELECT is(count(DISTINCT digest), 1::bigint,
  'rows larger than blocks, one pass: the same sequence') FROM done;

-- ---- going back ----------------------------------------------------------------

CREATE FUNCTION scrolled(mode text, assist int) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  c SCROLL CURSOR FOR SELECT id, pay FROM wide ORDER BY k;
  seen text := '';
  r record;
  place int;
BEGIN
  PERFORM set_config('fmsort.mode', mode, true),
    set_config('fmsort.assist_blocks', assist::text, true),
    set_config('fmsort.block_size', '512', true),
    set_config('work_mem', '256kB', true);
  OPEN c;
  FOREACH place IN ARRAY '{3000,1,1500,1499,20,2999,700,3001,2500,5,4}'::int[]
  LOOP
    FETCH ABSOLUTE place FROM c INTO r;
    seen := seen || ' ' || coalesce(r.id::text, '-');
    FETCH NEXT FROM c INTO r;
    seen := seen || ' ' || coalesce(r.id || md5(r.pay), '-');
  END LOOP;
  CLOSE c;
  RETURN seen;
END
$$;
SELECT is(scrolled(mode, assist), scrolled('fmsort', 8),
  format('%s, %s: going to and fro', mode, assist))
FROM unnest('{single_block,multi_block,flash}'::text[]) mode,
  unnest('{0,1,20}'::int[]) assist;

-- ---- the result written first ------------------------------------------------------

TRUNCATE done;
SELECT sorted('merged', 'fmsort', 8) \g /dev/null
SELECT sorted('written', mode, 8, materialize => 'on')
FROM unnest('{fmsort,double_buffering,traditional,multi_block,flash}'::text[])
  mode \g /dev/null
SELECT is(count(DISTINCT digest), 1::bigint, 'materialised: the same sequence')
FROM done;
SELECT is(passes, CASE name WHEN 'merged' THEN 1 ELSE 2 END,
  format('%s, %s: passes', name, mode)) FROM done;
-- the block read order goes to disk, too, where it takes a twentieth of what the
-- blocks do here; FMsort reads it twice, ahead of the merge and with it.  Of each
-- run the last block need not be full, which the result has only once
SELECT ok(written::float / bytes BETWEEN fewest AND times + 0.1 AND
    read::float / bytes BETWEEN fewest AND
      times + CASE mode WHEN 'fmsort' THEN 0.2 ELSE 0.1 END,
  format('%s, %s: every block is read and written %s times', name, mode, times))
FROM done,
  LATERAL (SELECT CASE name WHEN 'merged' THEN 1.0 ELSE 2 END) t(times),
  LATERAL (SELECT blocks * block_size, times - (times - 1) * runs / blocks)
    b(bytes, fewest);

-- what would stay in memory is written, too; and more runs than one merge takes
TRUNCATE done;
SELECT sorted('merged', 'fmsort', 0, block => 0) \g /dev/null
SELECT sorted('written', 'fmsort', 0, block => 0, materialize => 'on')
\g /dev/null
SELECT sorted('many', 'fmsort', 0, block => 4096, memory => '64kB')
\g /dev/null
SELECT sorted('many', 'fmsort', 0, block => 4096, memory => '64kB',
  materialize => 'on') \g /dev/null
SELECT is(count(DISTINCT digest), 1::bigint,
  'materialised: the same sequence, whatever the runs') FROM done;
SELECT cmp_ok(max(written) FILTER (WHERE name = 'written'), '>',
  2 * max(written) FILTER (WHERE name = 'merged'),
  'materialised: nothing stays in memory') FROM done;
-- early merges leave runs of several levels, so it may be two passes
SELECT ok(max(passes) - min(passes) BETWEEN 1 AND 2,
  'many runs: a pass more, or two') FROM done WHERE name = 'many';

-- what fits stays in memory all the same
TRUNCATE done;
SELECT sorted('small', 'fmsort', 0, block => 0, memory => '64MB',
  materialize => 'on') \g /dev/null
SELECT is(method, 'in-memory', 'materialised: what fits is not written')
FROM done;

SELECT finish();
ROLLBACK;
