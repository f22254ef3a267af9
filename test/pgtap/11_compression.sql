-- Compressed spills: the same rows in fewer bytes, wherever the sort is asked to
-- go, and what temp_file_limit makes of it.
--
-- Seen to fail with: pass_bundle() of merge.c not counting the records that it
-- passes.
\ir begin.psql

BEGIN;
SELECT no_plan();
SET LOCAL work_mem = '256kB';
SET LOCAL max_parallel_workers_per_gather = 0;

CREATE TABLE words AS
SELECT i AS id, (i * 7919) % 10007 AS k,
  'slyly final deposits ' || i % 100 || repeat(' above the ironic packages', 3) AS pay
FROM generate_series(1, 30000) i;
CREATE TABLE noise AS
SELECT i AS id, (i * 7919) % 10007 AS k,
  decode(md5(i::text) || md5((-i)::text) || md5((i + 0.5)::text), 'hex') AS pay
FROM generate_series(1, 30000) i;
-- some that no bundle takes, and all that follow them
CREATE TABLE wide (id int, k int, pay text);
ALTER TABLE wide ALTER pay SET STORAGE PLAIN;
INSERT INTO wide
SELECT i, (i * 7919) % 307,
  repeat('x', CASE i % 50 WHEN 0 THEN 7000 ELSE i % 200 END)
FROM generate_series(1, 3000) i;
ANALYZE words, noise, wide;

CREATE TABLE done (relation text, setting text, compression float8,
  blocks bigint, written bigint, decision text, digest text);

CREATE FUNCTION sorted(relation text, setting text) RETURNS void
LANGUAGE plpgsql AS
$$
DECLARE
  digest text;
BEGIN
  PERFORM set_config('fmsort.compression', setting, true);
  EXECUTE format('SELECT md5(string_agg(id || ''-'' || md5(pay::text), '''')) FROM
    (SELECT * FROM %I ORDER BY k) s', relation) INTO digest;
  INSERT INTO done
  SELECT sorted.relation, setting, compression, blocks, bytes_written, decision, digest
  FROM fmsort_last_sort() s ORDER BY sort_number DESC LIMIT 1;
END
$$;

SELECT sorted(r, s) FROM unnest('{words, noise, wide}'::text[]) r,
  unnest('{off, on, auto}'::text[]) s \g /dev/null

SELECT is(count(DISTINCT digest), 1::bigint, relation || ': the same sequence')
FROM done GROUP BY relation;
SELECT is(compression, NULL, relation || ', off: nothing is compressed')
FROM done WHERE setting = 'off';
SELECT is(compression, NULL,
  relation || ', automatic: nor with so little memory')
FROM done WHERE setting = 'auto';
SELECT ok(decision IS NULL OR decision NOT LIKE '%compression%', relation || ', ' || setting || ': no word of it')
FROM done;
-- rows that are not compressed have no keys on disk
SELECT ok(c.compression > 2 AND c.written < p.written / 2 AND
    c.blocks < p.blocks / 2 AND
    p.written / c.written::float8 / c.compression BETWEEN 0.7 AND 1.1,
  format('words: %s bytes instead of %s, as is said: %s times', c.written, p.written,
    round(c.compression::numeric, 2)))
FROM done c, done p WHERE c.relation = 'words' AND c.setting = 'on' AND
  p.relation = 'words' AND p.setting = 'off';
SELECT cmp_ok(c.written / p.written::float8, '<', 1.25::float8,
  'noise: a key more than without, as it is stored as it is')
FROM done c, done p WHERE c.relation = 'noise' AND c.setting = 'on' AND
  p.relation = 'noise' AND p.setting = 'off';

-- ---- back and forth ------------------------------------------------------------------------

SET LOCAL fmsort.compression = on;

-- where to, in thousandths of the rows; far enough for the checkpoints in between
CREATE FUNCTION places(relation text) RETURNS SETOF int LANGUAGE plpgsql AS
$$
DECLARE
  n int;
BEGIN
  EXECUTE format('SELECT count(*) FROM %I', relation) INTO n;
  RETURN QUERY SELECT greatest(n * p / 1000, 1) FROM
    unnest('{0, 970, 17, 500, 501, 499, 1, 999, 600, 800, 750, 300, 900, 850, 640, 233}'
      ::int[]) p;
END
$$;

CREATE FUNCTION wander(relation text, block_size int) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  c refcursor;
  there text := '';
  back text := '';
  row_id int;
  place int;
BEGIN
  PERFORM set_config('fmsort.block_size', block_size::text, true);
  OPEN c SCROLL FOR EXECUTE format('SELECT id FROM %I ORDER BY k', relation);
  FOR place IN SELECT places(relation) LOOP
    MOVE ABSOLUTE place FROM c;
    FETCH RELATIVE 0 FROM c INTO row_id;
    there := there || ' ' || row_id;
  END LOOP;
  FOR n IN REVERSE place .. 2 LOOP
    FETCH PRIOR FROM c INTO row_id;
    back := back || ' ' || row_id;
  END LOOP;
  CLOSE c;
  RETURN there || '|' || back;
END
$$;

CREATE FUNCTION expected(relation text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  ids int[];
BEGIN
  EXECUTE format('SELECT array_agg(id) FROM (SELECT id FROM %I ORDER BY k, id) s',
    relation) INTO ids;
  RETURN (SELECT string_agg(' ' || ids[p], '' ORDER BY o)
    FROM places(relation) WITH ORDINALITY u(p, o)) || '|' ||
    (SELECT string_agg(' ' || ids[p], '' ORDER BY p DESC)
     FROM generate_series(1, array_length(ids, 1) * 233 / 1000 - 1) p);
END
$$;

SELECT is(wander(r, b), expected(r),
  format('%s, blocks of %s: a cursor that goes back and forth', r, b))
FROM unnest('{words, noise, wide}'::text[]) r,
  unnest('{0, 1024, 4096, 32768}'::int[]) b;
SET LOCAL fmsort.block_size = 0;

-- a merge join returns to its marks
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SELECT is(count(*), (SELECT sum(n * n) FROM
    (SELECT count(*) AS n FROM words GROUP BY k % 500) s)::bigint,
  'a merge join that goes back to marks')
FROM words a JOIN words b ON a.k % 500 = b.k % 500;

-- ---- less of the disk ---------------------------------------------------------------------

-- some 4.8 MB as they are
SET LOCAL temp_file_limit = '3MB';
SET LOCAL fmsort.compression = off;
SELECT throws_ok('SELECT count(pay) FROM (SELECT * FROM words ORDER BY k OFFSET 0) s',
  '53400', NULL, 'a spill that temp_file_limit does not let through');
SET LOCAL fmsort.compression = on;
SELECT lives_ok('SELECT count(pay) FROM (SELECT * FROM words ORDER BY k OFFSET 0) s',
  '... does fit when it is compressed');
RESET temp_file_limit;

SELECT * FROM finish();
ROLLBACK;
