-- One row, or k rows, of each group: what a sort drops below Unique, Group and
-- WindowAgg, that the rows stay those of the whole sort, and that nothing is
-- dropped below any other shape.
--
-- Seen to fail with: plan.c not looking at other window functions, the top
-- window, frames or volatile functions; group_filter.c k one off, or an ICU sort
-- key taken for a string; formation.c, run.c or merge.c not filtering; sort.c
-- leaving nulls where they were before values were dropped.
\ir begin.psql

BEGIN;
SELECT no_plan();

-- g: 60 groups that fit into 64 kB; h: 4,000 that do not
CREATE TABLE r AS
SELECT i AS id, (hashint4(i) & 1048575) % 60 AS g,
  (hashint4(i + 7) & 1048575) % 4000 AS h, (hashint4(i + 9) & 1048575) % 5 AS o,
  CASE WHEN i % 7 > 0 THEN (hashint4(i + 5) & 1048575) % 90 END AS w,
  'name of some length that is cut off in the key '
  || (hashint4(i + 3) & 1048575) % 70 AS name
FROM generate_series(1, 20000) i;
ANALYZE r;
SET enable_hashagg = off;
SET max_parallel_workers_per_gather = 0;

CREATE TYPE seen AS (dropped bigint, spilled boolean, disk_kb int,
  memory_kb int, answer text);

-- What became of a query's sort, the first in its plan, and its rows in order.
CREATE FUNCTION see(query text, memory text) RETURNS seen LANGUAGE plpgsql AS
$$
DECLARE
  line text;
  plan text := '';
  result seen;
BEGIN
  PERFORM set_config('work_mem', memory, false);
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ' || query LOOP
    plan := plan || line || E'\n';
  END LOOP;
  result.dropped := coalesce(substring(plan FROM 'Duplicates Dropped: (\d+)')
    ::bigint, 0);
  result.spilled := plan LIKE '%external merge%';
  result.disk_kb := substring(plan FROM 'Disk: (\d+)kB');
  result.memory_kb := substring(plan FROM 'Memory: (\d+)kB');
  EXECUTE 'SELECT md5(string_agg(q::text, '' '')) || count(*) FROM (' || query
    || ' OFFSET 0) q' INTO result.answer;
  RETURN result;
END
$$;

-- Dropped and spilled at 64 kB, and whether all rows and all settings agree.
CREATE FUNCTION filtered(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  small seen;
  large seen;
  off seen;
BEGIN
  small := see(query, '64kB');
  large := see(query, '64MB');
  SET LOCAL fmsort.debug_group_filter = off;
  off := see(query, '64kB');
  SET LOCAL fmsort.debug_group_filter = on;
  RETURN concat_ws(', ',
    CASE WHEN small.dropped > 0 AND large.dropped > 0 THEN 'drops'
      WHEN small.dropped + large.dropped = 0 THEN 'keeps'
      ELSE 'drops at one size only' END,
    CASE WHEN small.spilled THEN 'spills' END,
    CASE WHEN small.answer <> off.answer OR large.answer <> off.answer
      THEN 'other rows' END,
    CASE WHEN off.dropped > 0 THEN 'drops if off' END);
END
$$;

-- ---- the shapes ----

SELECT is(filtered(query), expected, query) FROM (VALUES
  ('SELECT DISTINCT ON (g) * FROM r ORDER BY g, o', 'drops'),
  ('SELECT DISTINCT ON (g) * FROM r ORDER BY g DESC, name, o', 'drops'),
  ('SELECT DISTINCT ON (h) * FROM r ORDER BY h, o', 'drops, spills'),
  ('SELECT DISTINCT ON (name) * FROM r ORDER BY name, o DESC', 'drops'),
  ('SELECT DISTINCT ON (name, g) * FROM r ORDER BY name, g, o',
   'drops, spills'),
  ('SELECT DISTINCT w FROM r', 'drops'),
  ('SELECT DISTINCT w FROM r ORDER BY w DESC', 'drops'),
  ('SELECT DISTINCT w FROM r ORDER BY w NULLS FIRST', 'drops'),
  ('SELECT DISTINCT h % 999 FROM r', 'drops'),
  ('SELECT DISTINCT id / 2 FROM r', 'drops, spills'),
  ('SELECT DISTINCT nullif(id / 2, 7) FROM r ORDER BY 1 NULLS FIRST',
   'drops, spills'),
  ('SELECT DISTINCT nullif(id % 9999, 7) FROM r ORDER BY 1',
   'drops, spills'),
  ('SELECT DISTINCT g, name FROM r', 'drops, spills'),
  ('SELECT g FROM r GROUP BY g', 'drops'),
  ('SELECT g, o FROM r GROUP BY g, o HAVING g > 3', 'drops'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE n = 1', 'drops'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE n < 3', 'drops'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY h ORDER BY o, id)
     AS n FROM r) x WHERE n <= 2::int2', 'drops, spills'),
  ('SELECT * FROM (SELECT w, row_number() OVER (PARTITION BY w) AS n FROM r) x
    WHERE n <= 3', 'drops'),
  ('SELECT * FROM (SELECT g, o, rank() OVER (PARTITION BY g ORDER BY o) AS n
    FROM r) x WHERE n <= 90', 'drops, spills'),
  ('SELECT * FROM (SELECT h, id, rank() OVER (PARTITION BY h ORDER BY id / 2000)
     AS n FROM r) x WHERE n <= 2', 'drops, spills'),
  ('SELECT * FROM (SELECT h, id, dense_rank() OVER (PARTITION BY h
     ORDER BY id / 2000) AS n FROM r) x WHERE n <= 2', 'drops, spills'),
  ('SELECT * FROM (SELECT h, id, dense_rank() OVER (PARTITION BY h
     ORDER BY id / 2000 DESC) AS n FROM r) x WHERE n < 1', 'drops, spills')
) v (query, expected);

-- ---- where they are dropped ----

SELECT is((see('SELECT DISTINCT ON (h) * FROM r ORDER BY h, o', '64kB')).dropped,
  (SELECT 20000 - count(DISTINCT h) FROM r),
  'the last merge leaves one row of each group');
SET fmsort.debug_group_filter = off;
SELECT disk_kb AS whole_kb FROM see('SELECT DISTINCT ON (id / 4) * FROM r
  ORDER BY id / 4, o', '64kB') \gset
SET fmsort.debug_group_filter = on;
SELECT cmp_ok((see('SELECT DISTINCT ON (id / 4) * FROM r
  ORDER BY id / 4, o', '64kB')).disk_kb, '<', :whole_kb / 2,
  'runs are written without rows that are not wanted');

-- Once memory has been full, rows behind those in memory are not copied: an
-- input ends with few of them in memory, not with up to half of work_mem.
CREATE FUNCTION kept_kb(order_by text) RETURNS int LANGUAGE sql AS
$$
SELECT max((see(format('SELECT DISTINCT ON (g %% 2) * FROM (SELECT * FROM r
  LIMIT %s) x ORDER BY g %% 2, %s', 19000 + i * 50, order_by), '64kB')).memory_kb)
FROM generate_series(0, 19) i
$$;
SELECT cmp_ok(kept_kb('o'), '<', 20, 'rows are refused before the copy');
SELECT cmp_ok(kept_kb('id DESC'), '>', 28,
  '... but not if each is better than those before');

-- ---- other shapes ----

SELECT is(filtered(query), 'keeps, spills', query) FROM (VALUES
  ('SELECT g, count(*) FROM r GROUP BY g'),
  ('SELECT * FROM (SELECT *, row_number() OVER w AS n, count(*) OVER (w ROWS
     BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS c FROM r
     WINDOW w AS (PARTITION BY g ORDER BY o)) x WHERE n = 1'),
  ('SELECT * FROM (SELECT *, row_number() OVER w AS n, count(*) OVER w AS c
     FROM r WINDOW w AS (PARTITION BY g ORDER BY o ROWS BETWEEN CURRENT ROW
     AND UNBOUNDED FOLLOWING)) x WHERE n = 1'),
  ('SELECT * FROM (SELECT *, count(*) OVER (PARTITION BY g ORDER BY id) AS n
     FROM r) x WHERE n <= 2'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE n <= id % 3'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE n <= (SELECT 2)'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE n > 330'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE 1 >= n'),
  ('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n FROM r) x WHERE n <= 2 AND n <= 3'),
  ('SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY o
     RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM r) x WHERE n = 1'),
  ('SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n, CASE WHEN random() > 2 THEN 1 END AS v FROM r) x WHERE n = 1
    AND v IS NULL'),
  ('SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY g ORDER BY o)
     AS n, (SELECT 1 WHERE random() < 2 OR r.id = 0) AS v FROM r) x
    WHERE n = 1 AND v = 1'),
  ('SELECT g, rank() OVER (PARTITION BY g ORDER BY o) AS n FROM r')
) v (query);

-- the lower of two windows
SELECT is(filtered('SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY
  g ORDER BY id) AS n, max(id) OVER (ORDER BY id DESC) AS m FROM r) x WHERE
  n = 1 AND m > 0'), 'keeps, spills', 'a window that is not the top one');

-- the first rows of all are a bound
SET work_mem = '64kB';
SELECT is((SELECT count(*) FROM (SELECT * FROM (SELECT id, row_number() OVER
  (ORDER BY o, id) AS n FROM r) x WHERE n <= 10) y), 10::bigint,
  'row_number() without a partition');
SELECT is((SELECT sort_method FROM fmsort_last_sort()), 'top-N', '... top-N');

-- ---- values that are equal and differ ----

CREATE TABLE v AS SELECT i AS id,
  (ARRAY['0', '-0', 'NaN', '1', NULL])[1 + i % 5]::float8 AS f,
  (ARRAY['1', '1.0', '1.00', 'NaN', NULL])[1 + i % 5]::numeric AS n,
  (ARRAY['a', 'a ', 'a  ', 'b', NULL])[1 + i % 5]::bpchar AS c,
  (ARRAY['1 day', '24:00', '30 days', '1 mon'])[1 + i % 4]::interval AS t
FROM generate_series(1, 6000) i;
SELECT is(filtered(format('SELECT DISTINCT ON (%1$s) %1$s, id FROM v
  ORDER BY %1$s %2$s', c, d)), 'drops', c || ' ' || d)
FROM unnest('{f,n,c,t}'::text[]) c, unnest('{"",DESC}'::text[]) d;
SELECT results_eq('SELECT DISTINCT ON (f) id FROM v WHERE f = 0',
  'VALUES (1)', 'of 0 and -0 the one that arrived first');
SELECT results_eq('SELECT DISTINCT ON (n) id FROM v WHERE n = 1',
  'VALUES (1)', 'of 1, 1.0 and 1.00 likewise');
SELECT results_eq('SELECT DISTINCT ON (f) id FROM v WHERE f IS NULL',
  'VALUES (4)', 'nulls are equal');

SELECT getdatabaseencoding() = 'UTF8' AND EXISTS (SELECT FROM pg_collation
  WHERE collname = 'und-x-icu') AS has_icu \gset
\if :has_icu
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2',
  deterministic = false);
CREATE TABLE i AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN upper(s) ELSE s END
  AS s FROM (SELECT i, repeat('x', i % 40) || i % 3 AS s
  FROM generate_series(1, 6000) i) x;
SELECT is(filtered(format('SELECT DISTINCT ON (s COLLATE %1$I) * FROM i
  ORDER BY s COLLATE %1$I, id DESC', c)), 'drops', c)
FROM unnest('{ci,und-x-icu,de-x-icu}'::text[]) c;
SELECT is(filtered('SELECT lower(s), n FROM (SELECT s, rank() OVER (ORDER BY
  s COLLATE ci USING ~<~) AS n FROM i) x WHERE n <= 50'), 'keeps, spills',
  'an order that tells equal texts apart');
SELECT is((SELECT count(*) FROM (SELECT DISTINCT s COLLATE ci FROM i) x),
  (SELECT count(DISTINCT lower(s)) FROM i), 'upper and lower case are equal');
\endif

-- ---- all ways of merging ----

CREATE FUNCTION answer(query text, memory text) RETURNS text LANGUAGE sql
BEGIN ATOMIC
SELECT (see(query, memory)).answer;
END;
SELECT format($$SET fmsort.mode = %L;
  SET fmsort.compression = %L;
  SET fmsort.checksums = %L;
  SET fmsort.block_size = %L;
  SELECT is(answer(q, '64kB'), answer(q, '64MB'), %L) FROM (VALUES
   ('SELECT DISTINCT ON (h) * FROM r ORDER BY h, o'),
   ('SELECT * FROM (SELECT *, rank() OVER (PARTITION BY name, h ORDER BY o)
      AS n FROM r) x WHERE n <= 2'),
   ('SELECT DISTINCT id / 2 FROM r')) v (q)$$, mode, compression, checksums,
   block, concat_ws(' ', mode, compression, checksums, block))
FROM unnest('{fmsort,double_buffering,traditional,multi_block,flash}'::text[])
  mode, unnest('{on,off}'::text[]) compression,
  unnest('{on,off}'::text[]) checksums, unnest('{0,512,4096}'::text[]) block
\gexec
RESET fmsort.mode;
RESET fmsort.compression;
RESET fmsort.checksums;
RESET fmsort.block_size;

-- ---- read again, and groups of presorted input ----

SET work_mem = '64kB';
SET enable_material = off;
SELECT is((SELECT string_agg(concat_ws(':', x, c, s), ' ') FROM
  generate_series(1, 4) x, LATERAL (SELECT count(*) AS c, sum(id) AS s FROM
  (SELECT DISTINCT ON (h) id FROM r WHERE id <= 9000 ORDER BY h, o) d
  WHERE d.id % 5 <> x) y), (SELECT string_agg(concat_ws(':', x, c, s), ' ')
  FROM (SELECT x, count(*) AS c, sum(id) AS s FROM generate_series(1, 4) x,
  (SELECT min(id) AS id FROM (SELECT id, h, rank() OVER (PARTITION BY h
  ORDER BY o, id) AS n FROM r WHERE id <= 9000) n WHERE n = 1 GROUP BY h) d
  WHERE d.id % 5 <> x GROUP BY x) y), 'a sort that is read again');
CREATE INDEX ON r (g);
SET enable_incremental_sort = on;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT is(filtered('SELECT DISTINCT ON (g, o / 3) * FROM r ORDER BY g, o / 3'),
  'drops', 'presorted input');

SELECT finish();
ROLLBACK;
