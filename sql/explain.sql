-- EXPLAIN: the sort keys as PostgreSQL itself would write them, and what the
-- sort did.
SET max_parallel_workers_per_gather = 0;
SET jit = off;

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE e (i int, t text, c text COLLATE "C", m mood, n name, p point,
  "Odd name" text COLLATE "POSIX");
INSERT INTO e (i, t) SELECT i % 10, md5(i::text)
FROM generate_series(1, 3000) i;
ANALYZE e;

-- The plan with FMSort and the one without differ by the node only.
CREATE FUNCTION differences(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
  mine text[];
  stock text[];
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF, VERBOSE) ' || query LOOP
    mine := mine || line;
  END LOOP;
  RETURN QUERY SELECT trim(m) FROM unnest(mine) m WHERE m LIKE '%Sort Key%';
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    mine := mine || line;
  END LOOP;
  SET LOCAL fmsort.mode = off;
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF, VERBOSE) ' || query LOOP
    stock := stock || line;
  END LOOP;
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    stock := stock || line;
  END LOOP;
  RESET fmsort.mode;
  stock := replace(stock::text, 'Incremental Sort', 'Sort');
  IF array_to_string(mine, E'\n') NOT LIKE '%Custom Scan (FMSort)%' THEN
    RETURN NEXT 'no FMSort';
  END IF;
  IF replace(array_to_string(mine, E'\n'), 'Custom Scan (FMSort)', 'Sort')
     <> array_to_string(stock, E'\n') THEN
    RETURN QUERY SELECT 'different: ' || m || ' <> ' || s
      FROM unnest(mine, stock) x(m, s)
      WHERE replace(m, 'Custom Scan (FMSort)', 'Sort') IS DISTINCT FROM s;
  END IF;
END
$$;

SELECT differences('SELECT * FROM e ORDER BY i');
SELECT differences('SELECT * FROM e ORDER BY i DESC');
SELECT differences('SELECT * FROM e ORDER BY i NULLS FIRST');
SELECT differences('SELECT * FROM e ORDER BY i DESC NULLS LAST');
SELECT differences('SELECT * FROM e ORDER BY i DESC NULLS FIRST, t NULLS LAST');
SELECT differences('SELECT * FROM e ORDER BY t COLLATE "C"');
SELECT differences('SELECT * FROM e ORDER BY c COLLATE "POSIX" DESC');
SELECT differences('SELECT * FROM e ORDER BY c');
SELECT differences('SELECT * FROM e ORDER BY c COLLATE "default"');
SELECT differences('SELECT * FROM e ORDER BY "Odd name" NULLS FIRST');
SELECT differences('SELECT * FROM e ORDER BY t USING ~<~');
SELECT differences('SELECT * FROM e ORDER BY t USING ~>~');
SELECT differences('SELECT * FROM e ORDER BY t USING ~>~ NULLS LAST');
SELECT differences('SELECT * FROM e ORDER BY i USING >');
SELECT differences('SELECT * FROM e ORDER BY m DESC, n, p <-> ''(0,0)''');
SELECT differences('SELECT * FROM e ORDER BY i + 1, lower(c), i * 2 DESC');
SELECT differences('SELECT x.t FROM e x ORDER BY x.i, x.t || ''!''');
SELECT differences('SELECT ROW(i, c) FROM e ORDER BY 1');
SELECT differences('SELECT rank() OVER (PARTITION BY i ORDER BY c DESC) FROM e');
SELECT differences('SELECT (SELECT max(s.c) FROM
  (SELECT c FROM e WHERE e.i = o.i ORDER BY e.t OFFSET o.i) s) FROM e o');
SELECT differences('INSERT INTO e (i) SELECT i FROM e ORDER BY i');

-- Constants, casts, COLLATE, parameters: only differences are shown.
CREATE FUNCTION alike(query text) RETURNS SETOF text LANGUAGE sql AS
$$
  SELECT query || ': ' || d FROM differences(query) d
  WHERE d NOT LIKE 'Sort Key: %' AND d NOT LIKE 'Presorted Key: %'
$$;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SELECT alike('SELECT ' || columns || ' FROM e x ORDER BY ' || keys)
FROM (VALUES ('i, 1, ''x'', NULL::int'), ('''x''::text || t, i'),
    ('1.5, i, t::varchar(5), 2::bigint'), ('i, ''a'' COLLATE "C"'),
    ('i, now() > ''2000-01-01'', ROW(1, i), ARRAY[1, 2]'),
    ('i, (SELECT 1), (SELECT max(i) FROM e)'), ('i, B''1'', -1, ''{}''::int[]'),
    ('*, 1'), ('x, i, t, 2')) c (columns),
  (VALUES ('i'), ('i, t'), ('i, t DESC')) k (keys);
SELECT alike('SELECT i FROM e ORDER BY ' || keys)
FROM (VALUES ('t::varchar(3)'), ('t::bytea'), ('i::numeric(9,2) DESC'),
    ('i::float8 + 1'), ('i::text COLLATE "C"'), ('(t COLLATE "C") || ''x'''),
    ('lower(t COLLATE "C") COLLATE "POSIX" DESC'), ('CASE WHEN i > 1 THEN t END'),
    ('i IS NULL, i'), ('coalesce(c, ''x'')'), ('nullif(i, 5) NULLS FIRST'),
    ('(i + 1) * 2, -i'), ('ARRAY[i, 1]'), ('ROW(i, ''x'')'),
    ('i = ANY (''{1,2}'')'), ('t LIKE ''a%'''), ('i BETWEEN 1 AND 3, i'),
    ('(SELECT max(s.i) FROM e s WHERE s.i = e.i)'),
    ('i + (SELECT min(i) FROM e)'), ('exists(SELECT FROM e s WHERE s.t = e.t)'),
    ('i IN (SELECT s.i FROM e s)'), ('p[0], p <-> point(1, i)'),
    ('"Odd name", "Odd name" || 1'), ('random()'), ('current_date - i'),
    ('m::text, ''sad''::mood = m'), ('extract(epoch FROM now()) + i'),
    ('greatest(i, 3), t COLLATE "C" USING ~>~')) k (keys);
SELECT alike(query) FROM (VALUES
  ('SELECT t, count(*), 1 FROM e GROUP BY t ORDER BY t'),
  ('SELECT t || ''x'', count(*) FROM e GROUP BY 1 ORDER BY 2, 1'),
  ('SELECT i, 1, count(*) FROM e GROUP BY 1, 2 ORDER BY 3'),
  ('SELECT 1 AS one, i FROM e UNION SELECT 2, i FROM e'),
  ('SELECT ''x'', i FROM e INTERSECT SELECT t, 3 FROM e'),
  ('SELECT i FROM e UNION ALL (SELECT 7 FROM e ORDER BY t) ORDER BY 1'),
  ('SELECT 1, rank() OVER (ORDER BY i, t), lag(t, 2, ''x'') OVER (ORDER BY t)
    FROM e'),
  ('SELECT DISTINCT i, 1, t FROM e ORDER BY t'),
  ('SELECT DISTINCT ON (i % 2) i, ''x'' FROM e ORDER BY i % 2, t'),
  ('SELECT a.i, 5 FROM e a JOIN e b ON a.t = b.t COLLATE "C" ORDER BY b.i'),
  ('SELECT (SELECT x.y FROM (SELECT t || o.i AS y, 9 FROM e s
    WHERE s.i = o.i ORDER BY s.i + o.i, s.t || o.t LIMIT 1) x) FROM e o'),
  ('SELECT * FROM (SELECT 1 AS one, t FROM e ORDER BY t OFFSET 0) s
    ORDER BY t || one'),
  ('SELECT * FROM e, LATERAL (SELECT s.i + 1, 2 FROM e s
    ORDER BY s.t <> e.t, s.i LIMIT 1) l'),
  ('WITH w AS MATERIALIZED (SELECT 1 AS one, i FROM e ORDER BY i)
    SELECT w.one, 4 FROM w ORDER BY w.i'),
  ('SELECT i, 1 FROM e WHERE i = 1 ORDER BY i, t')) q (query);
PREPARE p (int, text) AS SELECT i + $1, $2, 1 FROM e ORDER BY i + $1, t || $2;
SET plan_cache_mode = force_generic_plan;
SELECT alike('EXECUTE p(1, ''x'')');
SET plan_cache_mode = force_custom_plan;
SELECT alike('EXECUTE p(1, ''x'')');
RESET plan_cache_mode;
DEALLOCATE p;
RESET enable_hashagg;
RESET enable_hashjoin;

-- The rows of such a plan, constants and all.
SELECT DISTINCT i, 1 AS one, 'x' AS x, r
FROM (SELECT i, 7 AS seven, row_number() OVER (ORDER BY t) > 0 AS r FROM e
  ORDER BY i, t OFFSET 0) s WHERE i < 3 ORDER BY i;
SELECT 1 AS one, i, NULL AS n FROM e ORDER BY i, t LIMIT 2;

-- What varies from machine to machine is replaced: numbers of kB, blocks and
-- the like by N, and how I/O was done; and what varies from version to version.
CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF, TIMING OFF,
    BUFFERS OFF) '
    || query
  LOOP
    line := regexp_replace(line, '\m(Runs|Merge Passes|Blocks): \d+',
                           '\1: N', 'g');
    line := regexp_replace(line, '\d+kB', 'NkB', 'g');
    line := regexp_replace(line, 'I/O Method: (io_uring|sync)',
                           'I/O Method: io_uring or sync');
    line := regexp_replace(line, 'Direct I/O: (true|false)',
                           'Direct I/O: true or false');
    line := regexp_replace(line, '\mrows=(\d+)\.00\M', 'rows=\1');
    -- 19 says what a Result replaces, and gives subplans names
    CONTINUE WHEN line ~ '^ *Replaces: ';
    line := regexp_replace(line, '^( *(Init|Sub)Plan) .*$', '\1');
    RETURN NEXT line;
  END LOOP;
END
$$;

SET work_mem = '4MB';
SELECT explained('SELECT * FROM e ORDER BY t COLLATE "C"');
SELECT explained('SELECT * FROM e WHERE i < 0 ORDER BY i');
SET work_mem = '64kB';
SET fmsort.block_size = 1024;
SET fmsort.assist_blocks = 5;
SELECT explained('SELECT * FROM e ORDER BY t COLLATE "C"');
SET fmsort.mode = 'traditional';
SELECT explained('SELECT * FROM e ORDER BY i');
SET fmsort.mode = 'double_buffering';
SELECT explained('SELECT * FROM e ORDER BY i');
RESET fmsort.mode;

-- EXPLAIN without ANALYZE, and a node that never ran, say nothing of a sort.
EXPLAIN (COSTS OFF) SELECT * FROM e ORDER BY i;
SELECT explained('SELECT * FROM e WHERE false AND i > 1 ORDER BY i');
SELECT explained('SELECT CASE WHEN i > 100 THEN
  (SELECT min(s.i) FROM (SELECT i FROM e ORDER BY t OFFSET 1) s) END
  FROM e WHERE i = 200');

-- Names and types of the fields in JSON, but for one that came with 18.
CREATE FUNCTION fields(query text, timing text DEFAULT 'OFF')
RETURNS TABLE (field text, type text) LANGUAGE plpgsql AS
$$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE format('EXPLAIN (ANALYZE, COSTS OFF, SUMMARY OFF, TIMING %s,
    BUFFERS OFF, FORMAT JSON) %s', timing, query) INTO plan;
  RETURN QUERY
    SELECT f.key, jsonb_typeof(f.value)
    FROM jsonb_each(plan -> 0 -> 'Plan') f
    WHERE f.key <> 'Plans' AND f.key NOT LIKE 'Actual %'
      AND f.key <> 'Disabled'
    ORDER BY f.key COLLATE "C";
END
$$;
SELECT * FROM fields('SELECT * FROM e ORDER BY t COLLATE "C"', 'ON');
SELECT * FROM fields('SELECT * FROM e ORDER BY t COLLATE "C"', 'OFF')
WHERE field LIKE '%Time%';
SET work_mem = '4MB';
SELECT * FROM fields('SELECT * FROM e ORDER BY t COLLATE "C"', 'ON');

-- BUFFERS counts the temporary blocks, as it does for PostgreSQL's own sort.
SET work_mem = '64kB';
CREATE FUNCTION temporary_blocks() RETURNS TABLE (what text, counted boolean)
LANGUAGE plpgsql AS
$$
DECLARE
  plan jsonb;
BEGIN
  EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON)
    SELECT * FROM e ORDER BY t COLLATE "C"' INTO plan;
  plan := plan -> 0 -> 'Plan';
  RETURN QUERY SELECT f.key, f.value::int > 0 FROM jsonb_each(plan) f
    WHERE f.key LIKE 'Temp % Blocks' ORDER BY f.key COLLATE "C";
END
$$;
SELECT * FROM temporary_blocks();
DROP FUNCTION temporary_blocks();

DROP TABLE e;
DROP TYPE mood;
DROP FUNCTION alike(text), differences(text), explained(text), fields(text, text);
