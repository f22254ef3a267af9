-- Rows and values that are awkward: none or 1,600 columns, whole rows and
-- system columns, expanded objects, toasted keys and payloads, very long rows.
-- Each query must give what it gives with PostgreSQL's own sort.
--
-- Seen to fail with: fms_keys_column_flags() of key_compare.c counting from the
-- header of the heap tuple.
\ir begin.psql

BEGIN;
SELECT no_plan();

-- The rows in the order in which they come, through one digest.
CREATE FUNCTION digest(query text, mode text, memory text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  result text;
BEGIN
  PERFORM set_config('fmsort.mode', mode, true),
    set_config('work_mem', memory, true);
  EXECUTE 'SELECT count(*) || '' rows '' || coalesce(sum(n * h), 0) FROM (
    SELECT row_number() OVER () AS n, hashtextextended(s::text, 0)::numeric AS h
    FROM (' || query || ' OFFSET 0) s) t' INTO result;
  RETURN result;
END
$$;

CREATE FUNCTION same(query text, name text) RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
  expected text := digest(query, 'off', '64MB');
BEGIN
  RETURN NEXT is(digest(query, 'fmsort', '64kB'), expected, name || ': spilled');
  RETURN NEXT is(digest(query, 'fmsort', '64MB'), expected,
    name || ': in memory');
END
$$;

-- no column at all
CREATE TABLE nothing ();
INSERT INTO nothing SELECT FROM generate_series(1, 4000);
SELECT is(count(*), 4000::bigint, 'rows without columns')
FROM (SELECT FROM nothing ORDER BY ctid DESC OFFSET 0) s;

-- as many as there may be
DO $$
DECLARE
  columns text;
  numbers text;
BEGIN
  SELECT string_agg(format('c%s int2', i), ', '),
    string_agg(format('(g::bigint * %s * 7919 %% 30000)::int2', i), ', ')
  INTO columns, numbers FROM generate_series(1, 1600) i;
  EXECUTE 'CREATE TABLE wide (' || columns || ')';
  EXECUTE 'INSERT INTO wide SELECT ' || numbers
    || ' FROM generate_series(1, 120) g';
END
$$;
SELECT same('SELECT * FROM wide ORDER BY c1600 DESC, c1', '1,600 columns');
SELECT same('SELECT c3, c900 FROM wide ORDER BY c900, c1600, ctid',
  'two of 1,600 columns');

-- whole rows and system columns
CREATE TABLE t AS
SELECT i AS id, i % 7 AS k, md5(i::text) AS t FROM generate_series(1, 3000) i;
SELECT same('SELECT t, ctid, tableoid::regclass, xmin FROM t ORDER BY k, t',
  'whole rows');
SELECT same('SELECT id FROM t ORDER BY t DESC', 'by the whole row');
SELECT same('SELECT * FROM t ORDER BY ctid DESC', 'by a system column');

-- a column that was added later, and one that is gone
ALTER TABLE t ADD later text DEFAULT 'later', ADD number numeric DEFAULT 1.50;
INSERT INTO t SELECT i, i % 7, 'x', NULL, -i FROM generate_series(1, 50) i;
ALTER TABLE t DROP k;
SELECT same('SELECT * FROM t ORDER BY later, number, id', 'columns added later');
SELECT same('SELECT * FROM t ORDER BY array[later], id', 'in an array');

-- expanded objects: arrays that PL/pgSQL holds in pieces
CREATE FUNCTION expanded() RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
  a int[] := array(SELECT generate_series(1, 300));
  r record;
  seen bigint := 0;
BEGIN
  a[5] := 7;
  FOR r IN SELECT g, a AS held FROM generate_series(1, 500) g
    ORDER BY a, -g LOOP
    seen := (seen * 31 + r.g + r.held[5] + r.held[300]) % 1000000007;
  END LOOP;
  RETURN seen;
END
$$;
SET LOCAL work_mem = '64kB';
SET LOCAL fmsort.mode = off;
SELECT expanded() AS expected \gset
SET LOCAL fmsort.mode = fmsort;
SELECT is(expanded(), :expected::bigint, 'expanded objects');

-- toasted: in line compressed, stored elsewhere, both
CREATE TABLE toasted AS
SELECT i AS id, (SELECT string_agg(md5((i * 1000 + j)::text), '')
    FROM generate_series(1, 150) j) AS elsewhere,
  repeat(chr(65 + i % 20), 3000) || i AS compressed
FROM generate_series(1, 400) i;
SELECT same('SELECT * FROM toasted ORDER BY -id', 'toasted payload');
SELECT same('SELECT * FROM toasted ORDER BY compressed COLLATE "C", id',
  'compressed keys');
SELECT same('SELECT * FROM toasted ORDER BY elsewhere COLLATE "C" DESC, id',
  'keys stored elsewhere');
SELECT same('SELECT id FROM toasted ORDER BY elsewhere, id',
  'keys stored elsewhere, by the default collation');

-- the payload is sorted as it is stored: 1.9 MB are elsewhere, and stay there
SET LOCAL work_mem = '4MB';
SELECT count(id) FROM (SELECT * FROM toasted ORDER BY -id OFFSET 0) s
  \g /dev/null
SELECT cmp_ok(sort_space_bytes, '<', 204800::bigint,
  'payload is not fetched for the sort') FROM fmsort_last_sort();

-- rows of 40 MB
SELECT same('SELECT id, repeat(chr(64 + id), 40 * 1000 * 1000) AS long
  FROM generate_series(1, 3) id ORDER BY id DESC', 'rows of 40 MB');
SELECT same('SELECT id, repeat(''x'', 20 * 1000 * 1000) || id AS long
  FROM generate_series(1, 3) id ORDER BY 2 DESC', 'keys of 20 MB');

-- more columns than a tuple may have, in a row that is not stored yet
CREATE FUNCTION refused(query text, mode text) RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
  PERFORM set_config('fmsort.mode', mode, true);
  RETURN throws_ok(query, '54011', 'number of columns (1800) exceeds limit (1664)',
    'rows of 1,800 columns are refused: ' || mode);
END
$$;
SELECT refused(query, mode) FROM unnest('{off,fmsort}'::text[]) mode,
  (SELECT format('SELECT generate_series(1, coalesce(%s)) FROM wide a, wide b
    WHERE a.c1 = b.c1 ORDER BY a.c1', string_agg(format('a.c%1$s, b.c%1$s', i),
    ', ')) AS query FROM generate_series(1, 900) i) q;
SET LOCAL fmsort.mode = fmsort;

-- a collation that is not determined: refused with the server's error
CREATE TABLE english (t text COLLATE "C");
CREATE TABLE spanish (t text COLLATE "POSIX");
SELECT throws_ok(
  'SELECT t FROM english UNION ALL SELECT t FROM spanish ORDER BY 1', '42P22',
  'could not determine which collation to use for string comparison',
  'a sort without a collation is refused');

SELECT * FROM finish();
ROLLBACK;
