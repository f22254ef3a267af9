-- Where a Sort may stand, an FMSort stands; only below grouping sets does it
-- have to stay.
--
-- Newer servers say more, and plan set operations, semijoins and LATERAL in
-- other ways: plan() leaves out what some versions do not say, and
-- as_planned() only compares.
SET work_mem = '4MB';
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = on;
SET jit = off;

CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS
$$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    CONTINUE WHEN line ~ '^ *(Disabled: true|Window: |Replaces: )';
    RETURN NEXT regexp_replace(line, '^( *(Init|Sub)Plan) .*$', '\1');
  END LOOP;
END
$$;

-- Is it the plan without fmsort, but for the node?  And is there such a node?
CREATE FUNCTION as_planned(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  mine text;
  stock text;
BEGIN
  mine := (SELECT string_agg(line, E'\n') FROM plan(query) line);
  SET LOCAL fmsort.mode = off;
  stock := (SELECT string_agg(line, E'\n') FROM plan(query) line);
  RESET fmsort.mode;
  RETURN CASE
    WHEN mine NOT LIKE '%Custom Scan (FMSort)%' THEN 'no FMSort'
    WHEN replace(mine, 'Custom Scan (FMSort)', 'Sort') <> stock
    THEN E'different:\n' || mine || E'\n' || stock
    ELSE 'every Sort is an FMSort' END;
END
$$;

CREATE TABLE a (id int, k int, t text COLLATE "C");
CREATE TABLE b (id int, k int, t text COLLATE "C");
INSERT INTO a SELECT i, i % 10, 't' || i % 7 FROM generate_series(1, 1000) i;
INSERT INTO b SELECT i, i % 10, 't' || i % 7 FROM generate_series(1, 1000) i;
CREATE INDEX a_k ON a (k);
CREATE UNIQUE INDEX b_id ON b (id);
ANALYZE a, b;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;

\echo ORDER BY
SELECT plan($$SELECT * FROM a ORDER BY t$$);
SELECT plan($$SELECT * FROM a ORDER BY k, t DESC$$);
SELECT plan($$SELECT k + 1 FROM a ORDER BY k + 1$$);
SELECT plan($$VALUES (2), (1) ORDER BY 1$$);

\echo DISTINCT and GROUP BY
SELECT plan($$SELECT DISTINCT t FROM a$$);
SELECT plan($$SELECT DISTINCT ON (k) k, t FROM a ORDER BY k, t$$);
SELECT plan($$SELECT t, count(*) FROM (SELECT * FROM a) a GROUP BY t$$);
SELECT plan($$SELECT t, count(*) FROM (SELECT * FROM a) a GROUP BY t ORDER BY count(*)$$);
SELECT as_planned($$SELECT k % 3, count(*) FROM a GROUP BY 1$$);

\echo window functions
SELECT plan($$SELECT rank() OVER (PARTITION BY k ORDER BY t) FROM a$$);
SELECT plan($$SELECT rank() OVER (ORDER BY t), rank() OVER (ORDER BY id) FROM a$$);

\echo merge joins: the inner side is marked and restored unless it is unique
SELECT plan($$SELECT * FROM a JOIN b ON a.k = b.k$$);
SELECT plan($$SELECT * FROM a JOIN b ON a.id = b.id$$);
SELECT plan($$SELECT * FROM a LEFT JOIN b ON a.id = b.id AND a.k = b.k$$);
SELECT plan($$SELECT * FROM a FULL JOIN b ON a.k = b.k$$);
SELECT as_planned($$SELECT * FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k)$$);
SELECT plan($$SELECT * FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k)$$);

\echo set operations
SELECT as_planned($$SELECT k FROM a UNION SELECT k FROM b$$);
SELECT as_planned($$SELECT k FROM a INTERSECT SELECT k FROM b$$);
SELECT as_planned($$SELECT k FROM a EXCEPT ALL SELECT k FROM b$$);

\echo children of Append and MergeAppend
SELECT plan($$(SELECT t FROM a ORDER BY t) UNION ALL (SELECT t FROM b ORDER BY t DESC)$$);
CREATE TABLE p (id int, k int, t text COLLATE "C") PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (500);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (1001);
CREATE INDEX ON p1 (k);
INSERT INTO p SELECT * FROM a;
ANALYZE p;
SET enable_indexscan = on;
SET enable_seqscan = off;
SELECT plan($$SELECT * FROM p ORDER BY k$$);
RESET enable_seqscan;
SET enable_indexscan = off;

\echo subqueries, CTEs, InitPlans, SubPlans
SELECT plan($$SELECT count(*) FROM (SELECT k FROM a ORDER BY t) s$$);
SELECT plan($$WITH c AS MATERIALIZED (SELECT * FROM a ORDER BY t) SELECT * FROM c, c AS d$$);
SELECT plan($$SELECT ARRAY(SELECT t FROM a ORDER BY id), (SELECT max(x.t) FROM
  (SELECT t FROM b WHERE b.k = a.k ORDER BY id OFFSET 1) x) FROM a$$);
SELECT as_planned($$SELECT * FROM a, LATERAL (SELECT b.t FROM b WHERE b.k = a.k ORDER BY b.id
  OFFSET 2) l$$);
SELECT plan($$WITH RECURSIVE r AS (
  SELECT 1 AS n UNION ALL
  SELECT n + 1 FROM (SELECT n FROM r WHERE n < 3 ORDER BY -n OFFSET 0) s)
SELECT * FROM r$$);

\echo statements that are not SELECT
CREATE TABLE c (id int, t text);
SELECT plan($$INSERT INTO c SELECT id, t FROM a ORDER BY t$$);
SELECT plan($$CREATE TABLE d AS SELECT * FROM a ORDER BY t$$);
SELECT plan($$CREATE MATERIALIZED VIEW m AS SELECT * FROM a ORDER BY t$$);
SELECT plan($$DECLARE x CURSOR FOR SELECT * FROM a ORDER BY t$$);
SELECT plan($$UPDATE c SET t = s.t FROM (SELECT DISTINCT id, t FROM a) s WHERE s.id = c.id$$);
SELECT plan($$DELETE FROM c USING (SELECT DISTINCT id FROM a) s WHERE s.id = c.id$$);
SELECT plan($$SELECT * FROM a ORDER BY t FOR UPDATE$$);

\echo COPY and REFRESH run such plans too: their sorts are remembered
COPY (SELECT id FROM a WHERE id < 4 ORDER BY t, id) TO STDOUT;
SELECT sort_number, sort_method, tuples FROM fmsort_last_sort();
CREATE MATERIALIZED VIEW m AS SELECT * FROM a WHERE id < 50 ORDER BY t;
SELECT sort_number, sort_method, tuples FROM fmsort_last_sort();
INSERT INTO a SELECT 40, 1, 'x';
REFRESH MATERIALIZED VIEW m;
SELECT sort_number, sort_method, tuples FROM fmsort_last_sort();
DELETE FROM a WHERE t = 'x';

\echo Below a LIMIT
SELECT plan($$SELECT * FROM a ORDER BY t LIMIT 5$$);
SELECT plan($$SELECT * FROM a ORDER BY t FETCH FIRST 5 ROWS WITH TIES$$);
SELECT plan($$SELECT * FROM a ORDER BY t OFFSET 5$$);
SELECT plan($$SELECT * FROM a ORDER BY t LIMIT ALL$$);
SELECT plan($$SELECT DISTINCT t FROM a LIMIT 5$$);
SELECT plan($$SELECT * FROM (SELECT t FROM a ORDER BY t OFFSET 0) s LIMIT 5$$);

\echo Sorts that stay: those of the later grouping sets, which are no nodes
SELECT plan($$SELECT k, t, id, count(*) FROM (SELECT * FROM a) a
GROUP BY GROUPING SETS ((k, t), (id), ())$$);

\echo Input in order of the first key
SET enable_indexscan = on;
SET enable_sort = off;
SELECT plan($$SELECT * FROM a ORDER BY k, t$$);
RESET enable_sort;
SET enable_incremental_sort = off;

\echo Small sorts stay, beside others of the same statement
CREATE TABLE few AS SELECT i AS k FROM generate_series(1, 40) i;
ANALYZE few;
SET fmsort.min_rows = 50;
SELECT plan($$SELECT * FROM a ORDER BY t$$);
SELECT plan($$SELECT * FROM few ORDER BY k$$);
SELECT plan($$SELECT *, ARRAY(SELECT k FROM few ORDER BY k) FROM a ORDER BY t$$);
SET fmsort.min_rows = 40;
SELECT plan($$SELECT * FROM few ORDER BY k$$);
\echo Few rows are expected of expensive input
SELECT plan($$SELECT i FROM generate_series(1, 100000) i
WHERE i + 1 = 6 AND i + 2 = 7 AND i + 3 = 8 ORDER BY i$$);
SET fmsort.min_rows = 1000000;
SELECT plan($$SELECT * FROM a ORDER BY t$$);
SET fmsort.min_rows = 0;

DROP MATERIALIZED VIEW m;
DROP TABLE a, b, c, p, few;
DROP FUNCTION plan(text), as_planned(text);
