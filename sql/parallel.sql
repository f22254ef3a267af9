-- A Gather Merge directly above a Sort becomes an FMSort above a Gather of
-- nodes that form runs; otherwise it stays.  test/t/012_parallel_merge.pl has
-- what they return.
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET enable_hashagg = off;
SET enable_incremental_sort = on;
SET jit = off;

CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    CONTINUE WHEN line ~ '^ *(Disabled: true|Workers Planned|Replaces: )';
    RETURN NEXT regexp_replace(line, '^( *(Init|Sub)Plan) .*$', '\1');
  END LOOP;
END
$$;

CREATE TABLE p (id int, k int, t text COLLATE "C");
INSERT INTO p SELECT i, i % 10, 't' || i % 7 FROM generate_series(1, 10000) i;
CREATE INDEX p_k ON p (k);
ANALYZE p;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;

\echo directly above
SELECT plan('SELECT * FROM p ORDER BY k');
SELECT plan('SELECT * FROM p ORDER BY t DESC, id LIMIT 1001');
SELECT plan('SELECT id + 1 FROM p ORDER BY k');
SELECT plan('WITH s AS MATERIALIZED (SELECT * FROM p ORDER BY k)
  SELECT count(*) FROM s');
\echo the leader computes what workers may not
SELECT plan('SELECT id, random() < 2 FROM p ORDER BY k');

\echo something in between
SELECT plan('SELECT k, count(*) FROM p GROUP BY k');

\echo a small LIMIT
SELECT plan('SELECT * FROM p ORDER BY t DESC, id LIMIT 1000');
SELECT plan('SELECT * FROM p ORDER BY t DESC, id LIMIT 1000 OFFSET 1');

\echo switched off
SET fmsort.parallel = off;
SELECT plan('SELECT * FROM p ORDER BY k');
RESET fmsort.parallel;
SET fmsort.mode = off;
SELECT plan('SELECT * FROM p ORDER BY k');
RESET fmsort.mode;

\echo nothing is written to the plan of a prepared statement
SET plan_cache_mode = force_generic_plan;
PREPARE s AS SELECT count(*) FROM (SELECT * FROM p ORDER BY k OFFSET 0) s;
EXECUTE s;
EXPLAIN (COSTS OFF) EXECUTE s;
SET fmsort.parallel = off;
EXPLAIN (COSTS OFF) EXECUTE s;
EXECUTE s;
DROP TABLE p;
DROP FUNCTION plan;
