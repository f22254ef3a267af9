-- A short walk through all of fmsort, for servers that run up to twenty times
-- slower (script/test valgrind, script/test sanitize): each row says what was
-- sorted and whether fmsort's rows are the stock sort's.  Its output is what
-- counts least: the tool looks at every access to memory meanwhile.
\set QUIET 1
\set ON_ERROR_STOP 1
\pset format unaligned
\pset tuples_only 1
\pset pager off

SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 0;
SET enable_hashjoin = off;
SET enable_nestloop = off;

CREATE TEMP TABLE t AS
SELECT i AS id, (i * 7919) % 1009 AS k,
  CASE WHEN i % 11 > 0 THEN md5((i % 97)::text) END AS s,
  (i * 31 % 503) / 7.0 AS n, (i % 13)::float8 - 6 AS f,
  repeat('x', CASE WHEN i % 500 = 0 THEN 9000 ELSE i % 40 END) AS pay
FROM generate_series(1, 4000) i;
ANALYZE t;

-- the rows of a query in the order in which they come, as one number
CREATE FUNCTION pg_temp.rows(query text) RETURNS text LANGUAGE plpgsql AS
$$ DECLARE r record; sum text := ''; BEGIN
  FOR r IN EXECUTE query LOOP sum := md5(sum || r::text); END LOOP;
  RETURN sum; END $$;
-- a sort by all of the row is the same in both
CREATE FUNCTION pg_temp.same(query text, settings text DEFAULT '')
RETURNS text LANGUAGE plpgsql AS
$$ DECLARE stock text; ours text; BEGIN
  SET LOCAL fmsort.mode = off;
  stock := pg_temp.rows(query);
  RESET fmsort.mode;
  EXECUTE settings;
  ours := pg_temp.rows(query);
  RESET fmsort.mode; RESET fmsort.block_size; RESET fmsort.checksums;
  RESET fmsort.compression; RESET fmsort.assist_blocks;
  RETURN format('%s | %s | %s', stock = ours, query, settings); END $$;

SELECT pg_temp.same('SELECT id, k, pay FROM t ORDER BY k, id',
  format('SET fmsort.mode = %s; SET fmsort.block_size = %s;
    SET fmsort.checksums = %s; SET fmsort.compression = %s;
    SET fmsort.assist_blocks = 4', m, b, c, z))
FROM unnest('{fmsort,flash,double_buffering,multi_block,single_block,
  traditional}'::text[]) m,
  unnest('{0,512,4096}'::int[]) b,
  unnest('{on,off}'::text[], '{off,on}') AS u(c, z);
SELECT pg_temp.same(format('SELECT * FROM t ORDER BY %s, id', keys))
FROM unnest('{s,s DESC NULLS LAST,n,f DESC,"s COLLATE \"C\", n",
  "row(k, s)","(''10.'' || k % 256 || ''.1.'' || id % 9)::inet","array[k, id]",pay,
  "(id || '' days'')::interval","s::bytea"}'::text[]) keys;
SELECT pg_temp.same('SELECT id FROM t ORDER BY k, id LIMIT 100');
SELECT pg_temp.same('SELECT DISTINCT s, k FROM t ORDER BY s, k');
SELECT pg_temp.same('SELECT a.id, b.id FROM t a JOIN t b USING (k)
  WHERE a.id < 2000 ORDER BY a.id, b.id');
SELECT pg_temp.same('SELECT id, sum(n) OVER (PARTITION BY s ORDER BY k, id)
  FROM t ORDER BY id');

-- back and forth
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY k, id;
MOVE 3500 FROM c;
MOVE BACKWARD 3400 FROM c;
FETCH 1 FROM c \gset
SELECT format('%s | a cursor that goes back', :id =
  (SELECT id FROM (SELECT id, row_number() OVER (ORDER BY k, id) FROM t) r
   WHERE row_number = 101));
COMMIT;

-- errors in the middle
DO $$ BEGIN
  PERFORM 1 / (k - 500) FROM (SELECT k, pay FROM t ORDER BY k, id) s;
EXCEPTION WHEN division_by_zero THEN
  RAISE INFO 'an error in the merge';
END $$;
SELECT pg_temp.same('SELECT k, pay FROM t ORDER BY k, id');

-- workers
CREATE TABLE p AS SELECT * FROM t;
ANALYZE p;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SELECT pg_temp.same('SELECT * FROM p ORDER BY k, id');
DROP TABLE p;
