-- Where a Sort may stand, an FMSort stands; only below grouping sets does it
-- have to stay.
SET work_mem = '4MB';
SET max_parallel_workers_per_gather = 0;
SET enable_incremental_sort = on;
SET jit = off;

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
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY t;
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY k, t DESC;
EXPLAIN (COSTS OFF) SELECT k + 1 FROM a ORDER BY k + 1;
EXPLAIN (COSTS OFF) VALUES (2), (1) ORDER BY 1;

\echo DISTINCT and GROUP BY
EXPLAIN (COSTS OFF) SELECT DISTINCT t FROM a;
EXPLAIN (COSTS OFF) SELECT DISTINCT ON (k) k, t FROM a ORDER BY k, t;
EXPLAIN (COSTS OFF) SELECT t, count(*) FROM a GROUP BY t;
EXPLAIN (COSTS OFF) SELECT t, count(*) FROM a GROUP BY t ORDER BY count(*);

\echo window functions
EXPLAIN (COSTS OFF) SELECT rank() OVER (PARTITION BY k ORDER BY t) FROM a;
EXPLAIN (COSTS OFF)
SELECT rank() OVER (ORDER BY t), rank() OVER (ORDER BY id) FROM a;

\echo merge joins: the inner side is marked and restored unless it is unique
EXPLAIN (COSTS OFF) SELECT * FROM a JOIN b ON a.k = b.k;
EXPLAIN (COSTS OFF) SELECT * FROM a JOIN b ON a.id = b.id;
EXPLAIN (COSTS OFF) SELECT * FROM a LEFT JOIN b ON a.id = b.id AND a.k = b.k;
EXPLAIN (COSTS OFF) SELECT * FROM a FULL JOIN b ON a.k = b.k;
EXPLAIN (COSTS OFF)
SELECT * FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k);
EXPLAIN (COSTS OFF)
SELECT * FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.k = a.k);

\echo set operations
EXPLAIN (COSTS OFF) SELECT k FROM a UNION SELECT k FROM b;
EXPLAIN (COSTS OFF) SELECT k FROM a INTERSECT SELECT k FROM b;
EXPLAIN (COSTS OFF) SELECT k FROM a EXCEPT ALL SELECT k FROM b;

\echo children of Append and MergeAppend
EXPLAIN (COSTS OFF)
(SELECT t FROM a ORDER BY t) UNION ALL (SELECT t FROM b ORDER BY t DESC);
CREATE TABLE p (id int, k int, t text COLLATE "C") PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (500);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (500) TO (1001);
CREATE INDEX ON p1 (k);
INSERT INTO p SELECT * FROM a;
ANALYZE p;
SET enable_indexscan = on;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM p ORDER BY k;
RESET enable_seqscan;
SET enable_indexscan = off;

\echo subqueries, CTEs, InitPlans, SubPlans
EXPLAIN (COSTS OFF) SELECT count(*) FROM (SELECT k FROM a ORDER BY t) s;
EXPLAIN (COSTS OFF)
WITH c AS MATERIALIZED (SELECT * FROM a ORDER BY t) SELECT * FROM c, c AS d;
EXPLAIN (COSTS OFF)
SELECT ARRAY(SELECT t FROM a ORDER BY id), (SELECT max(x.t) FROM
  (SELECT t FROM b WHERE b.k = a.k ORDER BY id OFFSET 1) x) FROM a;
EXPLAIN (COSTS OFF)
SELECT * FROM a, LATERAL (SELECT b.t FROM b WHERE b.k = a.k ORDER BY b.id
  OFFSET 2) l;
EXPLAIN (COSTS OFF)
WITH RECURSIVE r AS (
  SELECT 1 AS n UNION ALL
  SELECT n + 1 FROM (SELECT n FROM r WHERE n < 3 ORDER BY -n OFFSET 0) s)
SELECT * FROM r;

\echo statements that are not SELECT
CREATE TABLE c (id int, t text);
EXPLAIN (COSTS OFF) INSERT INTO c SELECT id, t FROM a ORDER BY t;
EXPLAIN (COSTS OFF) CREATE TABLE d AS SELECT * FROM a ORDER BY t;
EXPLAIN (COSTS OFF) CREATE MATERIALIZED VIEW m AS SELECT * FROM a ORDER BY t;
EXPLAIN (COSTS OFF) DECLARE x CURSOR FOR SELECT * FROM a ORDER BY t;
EXPLAIN (COSTS OFF)
UPDATE c SET t = s.t FROM (SELECT DISTINCT id, t FROM a) s WHERE s.id = c.id;
EXPLAIN (COSTS OFF)
DELETE FROM c USING (SELECT DISTINCT id FROM a) s WHERE s.id = c.id;
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY t FOR UPDATE;

\echo COPY and REFRESH run such plans too: their sorts are remembered
COPY (SELECT id FROM a WHERE id < 4 ORDER BY t, id) TO STDOUT;
SELECT sort, sort_method, tuples FROM fmsort_last_sort();
CREATE MATERIALIZED VIEW m AS SELECT * FROM a WHERE id < 50 ORDER BY t;
SELECT sort, sort_method, tuples FROM fmsort_last_sort();
INSERT INTO a SELECT 40, 1, 'x';
REFRESH MATERIALIZED VIEW m;
SELECT sort, sort_method, tuples FROM fmsort_last_sort();
DELETE FROM a WHERE t = 'x';

\echo Below a LIMIT
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY t LIMIT 5;
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY t FETCH FIRST 5 ROWS WITH TIES;
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY t OFFSET 5;
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY t LIMIT ALL;
EXPLAIN (COSTS OFF) SELECT DISTINCT t FROM a LIMIT 5;
EXPLAIN (COSTS OFF)
SELECT * FROM (SELECT t FROM a ORDER BY t OFFSET 0) s LIMIT 5;

\echo Sorts that stay: those of the later grouping sets, which are no nodes
EXPLAIN (COSTS OFF)
SELECT k, t, id, count(*) FROM a
GROUP BY GROUPING SETS ((k, t), (id), ());

\echo Input in order of the first key
SET enable_indexscan = on;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT * FROM a ORDER BY k, t;
RESET enable_sort;
SET enable_incremental_sort = off;

DROP MATERIALIZED VIEW m;
DROP TABLE a, b, c, p;
