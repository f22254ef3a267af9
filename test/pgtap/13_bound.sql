-- A LIMIT larger than memory: the rows that it cannot need are refused, and the
-- answer is that of a sort of all rows.
--
-- Seen to fail with: a cutoff for fewer rows than the LIMIT; a bound WITH TIES;
-- refused rows not counted; no blocks given back; the setting not looked at;
-- nothing refused while a run is written.
\ir begin.psql

BEGIN;
SELECT no_plan();

CREATE TABLE b AS
SELECT i AS id, (i::bigint * 7919) % 60013 AS k, (i * 31) % 12 AS few,
  nullif((i::bigint * 7919) % 60013, 5) AS sparse,
  (((i::bigint * 7919) % 60013) / 100.0)::numeric(15, 2) AS price,
  'Common beginning of a text ' || md5(i::text) AS pay
FROM generate_series(1, 60000) i;
ANALYZE b;
SET LOCAL work_mem = '256kB';
SET LOCAL max_parallel_workers_per_gather = 0;

CREATE TABLE done (name text, setting text, digest text, method text,
  tuples bigint, refused bigint, written bigint);

-- Runs a query with the cutoff, without it, and with PostgreSQL's sort.
CREATE FUNCTION bounded(name text, query text) RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
  digest text;
  setting text;
BEGIN
  FOREACH setting IN ARRAY ARRAY['on', 'off', 'stock'] LOOP
    PERFORM set_config('fmsort.debug_cutoff',
        CASE setting WHEN 'off' THEN 'off' ELSE 'on' END, true),
      set_config('fmsort.mode', CASE setting WHEN 'stock' THEN 'off'
        ELSE coalesce(substring(name from 'mode (\w+)'), 'fmsort') END, true),
      fmsort_last_sort_clear();
    EXECUTE format('SELECT count(*) || '' '' || md5(string_agg(q::text, '' ''))
      FROM (%s) q', query) INTO digest;
    INSERT INTO done
    SELECT bounded.name, setting, digest, s.* FROM (SELECT max(sort_method),
      sum(tuples), sum(rows_refused), sum(bytes_written)
      FROM fmsort_last_sort()) s;
  END LOOP;
  RETURN NEXT is((SELECT count(DISTINCT d.digest) FROM done d
      WHERE d.name = bounded.name), 1::bigint, name || ': the same rows');
  RETURN NEXT ok((SELECT method = 'external merge' AND refused > tuples / 3
      FROM done d WHERE d.name = bounded.name AND d.setting = 'on'),
    name || ': a third is refused');
  RETURN NEXT is((SELECT refused FROM done d
      WHERE d.name = bounded.name AND d.setting = 'off'), 0::numeric::bigint,
    name || ': nothing is, if the cutoff is off');
  RETURN NEXT ok((SELECT bool_or(a.written * 3 < b.written * 2) FROM done a,
      done b WHERE a.name = bounded.name AND b.name = bounded.name AND
      a.setting = 'on' AND b.setting = 'off'),
    name || ': a third less is written');
END
$$;

SELECT bounded(name, query) FROM (VALUES
  ('a number', 'SELECT id, k FROM b ORDER BY k, id LIMIT 6000'),
  ('descending', 'SELECT id, k FROM b ORDER BY k DESC, id LIMIT 6000'),
  ('an offset', 'SELECT id FROM b ORDER BY k, id LIMIT 3000 OFFSET 3000'),
  ('numeric', 'SELECT id, price FROM b ORDER BY price, id LIMIT 6000'),
  ('text', 'SELECT pay FROM b ORDER BY pay COLLATE "C" LIMIT 6000'),
  ('ties', 'SELECT few, id FROM b ORDER BY few, id LIMIT 6000'),
  ('nulls', 'SELECT sparse, id FROM b ORDER BY sparse NULLS FIRST, id
    LIMIT 6000'),
  ('words', 'SELECT k FROM b ORDER BY k LIMIT 20000'),
  ('words and nulls', 'SELECT sparse FROM b ORDER BY sparse NULLS FIRST
    LIMIT 20000'),
  ('Append', '(SELECT id, k FROM b ORDER BY k, id) UNION ALL
    SELECT 0, 0 LIMIT 6000'),
  ('mode double_buffering', 'SELECT id FROM b ORDER BY k, id LIMIT 6000'),
  ('mode traditional', 'SELECT id FROM b ORDER BY k, id LIMIT 6000'),
  ('mode multi_block', 'SELECT id FROM b ORDER BY k, id LIMIT 6000'),
  ('mode flash', 'SELECT id FROM b ORDER BY k, id LIMIT 6000')
) queries(name, query);

SET LOCAL fmsort.checksums = on;
SET LOCAL fmsort.compression = on;
SELECT bounded('compressed', 'SELECT * FROM b ORDER BY k, id LIMIT 10000');
RESET fmsort.compression;
RESET fmsort.checksums;
SET LOCAL fmsort.mode = 'fmsort';
SET LOCAL fmsort.debug_cutoff = 'on';

-- rows that are no ties stay, however many there are
SELECT fmsort_last_sort_clear() \g /dev/null
SELECT is((SELECT count(*) FROM (SELECT few FROM b ORDER BY few
    FETCH FIRST 4000 ROWS WITH TIES) s), 5000::bigint, 'WITH TIES');
SELECT is(rows_refused, 0::bigint, 'WITH TIES refuses nothing')
FROM fmsort_last_sort();

-- each row is better than those before: none is refused as it comes
SELECT fmsort_last_sort_clear() \g /dev/null
SELECT is((SELECT count(*) || ' ' || sum(id) || ' ' || max(id) FROM
    (SELECT id, pay FROM b ORDER BY id DESC LIMIT 6000) s),
  '6000 342003000 60000', 'each row is better');
SELECT ok(rows_refused < 3000, '... and few are refused')
FROM fmsort_last_sort();
SELECT ok(bytes_spilled < bytes_written / 3,
  '... but what earlier runs have is given back')
FROM fmsort_last_sort();

-- in memory: all but those of the LIMIT are counted
SELECT fmsort_last_sort_clear() \g /dev/null
SELECT count(*) FROM (SELECT id FROM b ORDER BY k, id LIMIT 10) s \g /dev/null
SELECT is(sort_method || ' ' || rows_refused, 'top-N 59990', 'top-N')
FROM fmsort_last_sort();

-- each worker refuses rows by its own bound
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL work_mem = '64kB';
SELECT fmsort_last_sort_clear() \g /dev/null
SELECT is((SELECT md5(string_agg(id::text, ' ')) FROM
    (SELECT id FROM b ORDER BY k, id LIMIT 4000) s),
  (SELECT digest FROM (SELECT md5(string_agg(id::text, ' ' ORDER BY k, id))
    AS digest FROM b WHERE k < (SELECT k FROM b ORDER BY k OFFSET 4000 LIMIT 1))
    s), 'in a parallel plan');
SELECT ok(bool_or(rows_refused > tuples / 3), '... rows are refused')
FROM fmsort_last_sort() WHERE sort_method = 'external merge';

SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  'no temporary file is left');

SELECT * FROM finish();
ROLLBACK;
