-- OFFSET and MOVE: rows that nobody wants are passed over and their blocks not
-- read, the others are the same; what users see of that; and where it must not
-- happen.
--
-- Seen to fail with: read_order.c counting no rows behind the last first key, or
-- going on when too many rows have been passed; run.c forgetting the rows of a
-- chain; node.c skipping below a node that evaluates functions, more than the
-- offset, or not counting for the Limit; spill.c not counting rows in memory;
-- fmsort.c not counting the rows of a MOVE; a history without a checkpoint.
\ir begin.psql

BEGIN;
SELECT no_plan();

-- k: each value four times; v: not null in one row of three
CREATE TABLE b AS
SELECT i AS id, (i * 7919) % 15013 AS k, md5(i::text) AS pay,
  CASE WHEN i % 3 = 0 THEN (i * 7919) % 60013 END AS v
FROM generate_series(1, 60000) i;
ANALYZE b;
-- chains of blocks everywhere
CREATE TABLE wide (id int, k int, pay text);
ALTER TABLE wide ALTER pay SET STORAGE PLAIN;
INSERT INTO wide
SELECT i AS id, (i * 7919) % 307 AS k,
  repeat('x', CASE i % 5 WHEN 0 THEN 3000 ELSE i % 100 END) AS pay
FROM generate_series(1, 9000) i;
ANALYZE wide;

SET enable_hashagg = off;
SET work_mem = '256kB';
SET fmsort.block_size = 2048;

CREATE FUNCTION rows_of(query text, mode text = 'fmsort') RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  r record;
  n int := 0;
  answer text := '';
BEGIN
  PERFORM set_config('fmsort.mode', mode, true);
  FOR r IN EXECUTE query LOOP
    n := n + 1;
    answer := md5(answer || r::text);
  END LOOP;
  RETURN n || ' ' || answer;
END
$$;

-- The query's answer is PostgreSQL's.
CREATE FUNCTION same(query text, mode text, name text) RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
  expected text := rows_of(query, 'off');
BEGIN
  RETURN NEXT is(rows_of(query, mode), expected, mode || ': ' || name);
END
$$;

CREATE FUNCTION last_sort(OUT skipped bigint, OUT blocks_skipped bigint,
  OUT blocks bigint, OUT reads bigint, OUT runs bigint)
LANGUAGE sql AS
'SELECT rows_skipped, s.blocks_skipped, s.blocks, s.reads, s.runs
FROM fmsort_last_sort() s ORDER BY sort_number DESC LIMIT 1';

-- ---- a deep page --------------------------------------------------------------

SET work_mem = '1MB';
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 50 OFFSET 40000', mode,
  'a deep page')
FROM unnest('{double_buffering,traditional,multi_block,flash,fmsort}'::text[])
  mode;
SELECT unnest(ARRAY[
  is(skipped, 40000::bigint, 'all rows of the offset are skipped'),
  cmp_ok(blocks_skipped, '>', blocks * 6 / 10,
    'fmsort: most of their blocks are not read'),
  cmp_ok(reads, '<', blocks / 10, 'fmsort: few blocks are read')])
FROM last_sort();
SELECT is(rows_of('SELECT k FROM b ORDER BY k, id LIMIT 50 OFFSET 40000',
    'flash'),
  rows_of('SELECT k FROM b ORDER BY k, id LIMIT 50 OFFSET 40000', 'off'),
  'flash, again');
SELECT unnest(ARRAY[
  cmp_ok(blocks_skipped, '>', blocks * 6 / 10,
    'flash: most blocks are not read'),
  cmp_ok(reads, '<=', blocks - blocks_skipped, 'flash: the others are read')])
FROM last_sort();
SELECT rows_of('SELECT * FROM b ORDER BY k, id LIMIT 50 OFFSET 40000',
  'traditional') \g /dev/null
SELECT unnest(ARRAY[
  is(blocks_skipped, 0::bigint, 'a mode without a read order reads all'),
  is(skipped, 40000::bigint, '... but passes over the rows')])
FROM last_sort();

SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 7 OFFSET ' || n, mode,
  'OFFSET ' || n)
FROM unnest('{1,999,5000,30001,59990,59999,60000,60001,9223372036854775807}'
    ::bigint[]) n, unnest('{fmsort,flash}'::text[]) mode;
SELECT unnest(ARRAY[
  cmp_ok(reads, '<=', runs, 'behind the last row: only last blocks are read'),
  is(blocks_skipped, blocks - runs, '... all others are skipped'),
  is(skipped, 60000::bigint, '... and no more rows than there are')])
FROM last_sort();

SELECT is(rows_of('SELECT * FROM b ORDER BY k OFFSET 45678', mode),
  rows_of('SELECT * FROM b ORDER BY k, id OFFSET 45678', 'off'),
  mode || ': ties keep their order')
FROM unnest('{fmsort,flash}'::text[]) mode;
SELECT same('SELECT * FROM b ORDER BY k, id OFFSET 30000 FETCH FIRST 9 ROWS
  WITH TIES', 'fmsort', 'FETCH FIRST .. WITH TIES');
SELECT same('SELECT k FROM b ORDER BY k OFFSET 30000 FETCH FIRST 1 ROW
  WITH TIES', 'fmsort', 'one row with its ties');
SELECT same('SELECT * FROM wide ORDER BY k, id LIMIT 20
  OFFSET ' || n, mode, 'chains of blocks, OFFSET ' || n)
FROM unnest('{3000,4567,8990}'::int[]) n,
  unnest('{fmsort,flash}'::text[]) mode;
SELECT cmp_ok(blocks_skipped, '>', blocks / 2, 'chains are skipped')
FROM last_sort();

SET fmsort.compression = on;
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 20 OFFSET 40000', mode,
  'compressed') FROM unnest('{fmsort,flash}'::text[]) mode;
SELECT cmp_ok(blocks_skipped, '>', blocks / 2, 'compressed blocks are skipped')
FROM last_sort();
RESET fmsort.compression;

SET work_mem = '64kB';
SET fmsort.checksums = on;
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 20 OFFSET 40000', mode,
  'several passes') FROM unnest('{flash,fmsort}'::text[]) mode;
SELECT cmp_ok(blocks_skipped, '>', 100::bigint, 'after several passes, too')
FROM last_sort();
RESET fmsort.checksums;

-- the last merge takes some rows from memory
RESET fmsort.block_size;
SET work_mem = '3MB';
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 20 OFFSET ' || n, mode,
  'rows in memory, OFFSET ' || n)
FROM unnest('{20000,45000,59999}'::int[]) n,
  unnest('{flash,fmsort}'::text[]) mode;
SELECT cmp_ok(blocks_skipped, '>', 0::bigint, 'with rows in memory, too')
FROM last_sort();
SET work_mem = '64MB';
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 20 OFFSET ' || n, 'fmsort',
  'in memory, OFFSET ' || n) FROM unnest('{20,45000,70000}'::int[]) n;
SET work_mem = '1MB';

-- words: nulls are counted, not stored
SET fmsort.block_size = 512;
SET work_mem = '256kB';
SELECT same(format('SELECT v FROM b ORDER BY v %s LIMIT 9 OFFSET %s', nulls, n),
  mode, format('words, %s, OFFSET %s', nulls, n))
FROM unnest('{NULLS FIRST,NULLS LAST}'::text[]) nulls,
  unnest('{15000,19995,20000,39999,40000,45000,59999}'::int[]) n,
  unnest('{flash,fmsort}'::text[]) mode;
SELECT cmp_ok(blocks_skipped, '>', blocks * 9 / 10, 'words are skipped')
FROM last_sort();

-- ---- the offset ------------------------------------------------------------------

SET fmsort.block_size = 2048;
SET work_mem = '512kB';
PREPARE page(bigint, bigint) AS
SELECT id FROM b ORDER BY k, id OFFSET $1 LIMIT $2;
SELECT same(format('EXECUTE page(%s, %s)', n, m), 'fmsort',
  format('a parameter: OFFSET %s LIMIT %s', n, m))
FROM unnest('{"NULL",0,33333}'::text[]) n, unnest('{"NULL",0,5}'::text[]) m;
SELECT throws_ok('EXECUTE page(-1, 5)', '2201X',
  'OFFSET must not be negative', 'a negative offset is an error');
SELECT throws_ok('EXECUTE page(5, -1)', '2201W',
  'LIMIT must not be negative', 'a negative limit is an error');
SELECT same('SELECT n, x.id FROM generate_series(1000, 1002) n, LATERAL
  (SELECT id FROM b ORDER BY k, id OFFSET n * 40 LIMIT 3) x', 'fmsort',
  'rescans, each with an offset of its own');
SELECT cmp_ok(blocks_skipped, '>', 0::bigint, 'rescans skip')
FROM last_sort();
SELECT same('SELECT n, x.id FROM generate_series(1, 4) n, LATERAL
  (SELECT id FROM b WHERE id > n * 100 ORDER BY k, id OFFSET 31000 LIMIT 3) x',
  'fmsort', 'rescans with other rows');

-- ---- only where nobody looks at a row ----------------------------------------

CREATE SEQUENCE calls;
CREATE FUNCTION calls() RETURNS bigint LANGUAGE sql AS
'SELECT last_value FROM calls';
SELECT count(*) FROM (SELECT nextval('calls') AS call, k FROM b ORDER BY k, id
  LIMIT 3 OFFSET 30000) s \g /dev/null
SELECT is(calls(), 30003::bigint,
  'a function in the select list is called for each row');
SELECT count(*) FROM (SELECT * FROM (SELECT * FROM b ORDER BY k, id OFFSET 0) s
  WHERE nextval('calls') > 0 LIMIT 3 OFFSET 30000) s \g /dev/null
SELECT is(calls(), 60006::bigint, '... and one in a condition, too');
SELECT is(skipped, 0::bigint, '... nothing is skipped') FROM last_sort();

SET fmsort.debug_skip = off;
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 50 OFFSET 40000', 'fmsort',
  'fmsort.debug_skip = off');
SELECT is(skipped + blocks_skipped, 0::bigint, '... skips nothing')
FROM last_sort();
RESET fmsort.debug_skip;

-- ---- presorted input ----------------------------------------------------------

CREATE INDEX ON b (k);
ANALYZE b;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT same('SELECT * FROM b ORDER BY k, id LIMIT 5 OFFSET ' || n, 'fmsort',
  'groups, OFFSET ' || n) FROM unnest('{31,32,33,1000,59998}'::int[]) n;
SELECT is(skipped, 59998::bigint, 'rows of all groups are skipped')
FROM last_sort();
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX b_k_idx;

-- ---- cursors --------------------------------------------------------------------

CREATE FUNCTION moves(scroll text, moves text[], mode text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  c refcursor;
  r record;
  move text;
  n bigint;
  answer text := '';
BEGIN
  PERFORM set_config('fmsort.mode', mode, true);
  SELECT 0 AS id INTO r;
  IF scroll = 'SCROLL' THEN
    OPEN c SCROLL FOR SELECT id, k FROM b ORDER BY k, id;
  ELSE
    OPEN c NO SCROLL FOR SELECT id, k FROM b ORDER BY k, id;
  END IF;
  FOREACH move IN ARRAY moves LOOP
    n := substring(move from '-?\d+');
    CASE split_part(move, ' ', 1)
      WHEN 'MOVE' THEN MOVE RELATIVE n FROM c;
      WHEN 'FORWARD' THEN MOVE FORWARD n FROM c;
      WHEN 'RELATIVE' THEN FETCH RELATIVE n FROM c INTO r;
      WHEN 'ABSOLUTE' THEN FETCH ABSOLUTE n FROM c INTO r;
    END CASE;
    GET DIAGNOSTICS n = ROW_COUNT;
    answer := concat_ws(' ', answer, n, r.id);
  END LOOP;
  CLOSE c;
  RETURN answer;
END
$$;

SELECT is(moves(scroll, m, mode), moves(scroll, m, 'off'),
  format('%s %s: %s', mode, scroll, m))
FROM unnest('{flash,fmsort}'::text[]) mode,
  (VALUES ('NO SCROLL', '{FORWARD 30000,RELATIVE 1,RELATIVE 1}'::text[]),
    ('NO SCROLL', '{RELATIVE 30000,ABSOLUTE 50000,RELATIVE 1,FORWARD 20000}'),
    ('NO SCROLL', '{FORWARD 2,FORWARD 3,FORWARD 59996,RELATIVE 1}'),
    ('NO SCROLL', '{FORWARD 60000,RELATIVE 1}'),
    ('NO SCROLL', '{RELATIVE 1,FORWARD 59998,RELATIVE 1,RELATIVE 1}'),
    ('NO SCROLL', '{FORWARD 60001,RELATIVE 1}'),
    ('SCROLL', '{FORWARD 30000,RELATIVE 1,RELATIVE -1,RELATIVE -1,RELATIVE -5}'),
    ('SCROLL', '{ABSOLUTE 50000,RELATIVE -1,RELATIVE -20000,RELATIVE 1}'),
    ('SCROLL', '{ABSOLUTE 20000,ABSOLUTE 40000,ABSOLUTE 30000,ABSOLUTE 19999,
      RELATIVE 1,RELATIVE 1,RELATIVE 30000,ABSOLUTE 2}'),
    ('SCROLL', '{FORWARD 70000,RELATIVE -1,RELATIVE -1,ABSOLUTE -40000}')
  ) v (scroll, m);
SELECT moves('NO SCROLL', '{FORWARD 40000,RELATIVE 1}', 'fmsort') \g /dev/null
SELECT unnest(ARRAY[
  is(skipped, 39998::bigint, 'MOVE: all rows but the first and last'),
  cmp_ok(blocks_skipped, '>', blocks / 2, 'MOVE: blocks are not read')])
FROM last_sort();
SELECT moves('SCROLL', '{FORWARD 40000,RELATIVE -1}', 'fmsort') \g /dev/null
SELECT unnest(ARRAY[
  cmp_ok(blocks_skipped, '>', blocks / 2, 'MOVE, if it may scroll, too'),
  cmp_ok(reads, '<', blocks / 2, '... and what is skipped stays unread')])
FROM last_sort();

-- Row by row forwards and back, across what was skipped.
CREATE FUNCTION back_and_forth(mode text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  c refcursor;
  r record;
  answer text := '';
BEGIN
  PERFORM set_config('fmsort.mode', mode, true);
  OPEN c SCROLL FOR SELECT id, k FROM b ORDER BY k, id;
  MOVE FORWARD 30000 FROM c;
  FOR i IN 1 .. 6000 LOOP
    FETCH c INTO r;
    answer := md5(answer || r.id);
  END LOOP;
  FOR i IN 1 .. 12000 LOOP
    FETCH PRIOR FROM c INTO r;
    answer := md5(answer || r.id);
  END LOOP;
  MOVE FORWARD 20000 FROM c;
  FOR i IN 1 .. 20100 LOOP
    FETCH PRIOR FROM c INTO r;
    answer := md5(answer || r.id);
  END LOOP;
  CLOSE c;
  RETURN answer;
END
$$;
SELECT is(back_and_forth('fmsort'), back_and_forth('off'),
  'back and forth across what was skipped');

-- a Limit that scrolls never asks for what was skipped
CREATE FUNCTION page_scrolls(mode text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  c refcursor;
  r record;
  answer text := '';
  i int;
BEGIN
  PERFORM set_config('fmsort.mode', mode, true);
  OPEN c SCROLL FOR SELECT id FROM b ORDER BY k, id LIMIT 5 OFFSET 30000;
  FOREACH i IN ARRAY '{1,1,-1,-1,-1,1,7,-2,-9,3}'::int[] LOOP
    FETCH RELATIVE i FROM c INTO r;
    answer := concat_ws(' ', answer, r.id);
  END LOOP;
  CLOSE c;
  RETURN answer;
END
$$;
SELECT is(page_scrolls('fmsort'), page_scrolls('off'),
  'scrolling in a deep page');

SELECT * FROM finish();
ROLLBACK;
