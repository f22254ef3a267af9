-- Sorts in every position that executes them in a way of its own: rescans,
-- partial reads, nested plans, rows of any size.  Each query must give, row by
-- row, what it gives with PostgreSQL's own sort; queries whose order has ties
-- name a last key for that.
--
-- Seen to fail with: rescan_node() of node.c not rewinding, or rewinding when a
-- parameter has changed; append_chain() of run.c calling a piece too short; a
-- record in memory that stays open (record.h) when a merge ends.
\ir begin.psql

BEGIN;
SELECT no_plan();

CREATE TABLE a AS SELECT i AS id, i % 5 AS k FROM generate_series(1, 12) i;
CREATE TABLE b AS
SELECT i AS id, (i * 7919) % 101 AS k, i % 5 AS g, repeat('.', 40) AS pay
FROM generate_series(1, 2000) i;
CREATE TABLE empty (LIKE b);
ANALYZE a, b, empty;

-- Sends every row through one digest, in the order in which it comes.
CREATE FUNCTION digest(query text, mode text, memory text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  result text;
BEGIN
  PERFORM set_config('fmsort.mode', mode, true),
    set_config('work_mem', memory, true);
  EXECUTE 'SELECT count(*) || '' rows '' || md5(coalesce(string_agg(md5(s::text),
    ''''), '''')) FROM (' || query || ') s' INTO result;
  RETURN result;
END
$$;

CREATE FUNCTION plan_of(query text, mode text) RETURNS text
LANGUAGE plpgsql AS
$$
DECLARE
  line text;
  result text := '';
BEGIN
  PERFORM set_config('fmsort.mode', mode, true);
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT count(s::text) FROM ('
    || query || ') s' LOOP
    result := result || line || E'\n';
  END LOOP;
  RETURN result;
END
$$;

-- The query with our sort and one that is meant to show up as FMSort.
CREATE FUNCTION same(query text, name text) RETURNS SETOF text
LANGUAGE plpgsql AS
$$
DECLARE
  mode text;
  memory text;
BEGIN
  RETURN NEXT ok(plan_of(query, 'fmsort') LIKE '%Custom Scan (FMSort)%',
    name || ': runs FMSort');
  FOREACH memory IN ARRAY ARRAY['64kB', '4MB'] LOOP
    FOREACH mode IN ARRAY
      ARRAY['fmsort', 'double_buffering', 'traditional', 'multi_block',
        'flash'] LOOP
      RETURN NEXT is(digest(query, mode, memory),
        digest(query, 'off', memory), name || ': ' || mode || ', ' || memory);
    END LOOP;
  END LOOP;
END
$$;

-- ---- how many rows ----------------------------------------------------------

SELECT same('SELECT * FROM empty ORDER BY k', 'no row');
SELECT same('SELECT * FROM b WHERE id = 7 ORDER BY k', 'one row');
SELECT same('SELECT * FROM b WHERE id IN (7, 8) ORDER BY k DESC', 'two rows');
SELECT same('SELECT * FROM b ORDER BY k, id', 'some rows');
SELECT same('SELECT g > 100 AS same FROM b ORDER BY same', 'rows that are all the same');
SELECT same('SELECT FROM b ORDER BY k', 'rows without a column');

-- ---- rescans ----------------------------------------------------------------

SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_material = off;
SET LOCAL enable_memoize = off;

SELECT same('SELECT a.id AS x, s.* FROM a, (SELECT * FROM b ORDER BY k, id
  OFFSET 3) s WHERE s.id > a.id', 'the inner side of a nested loop');
SELECT same('SELECT a.id AS x, l.* FROM a, LATERAL (SELECT * FROM b
  WHERE b.g = a.k ORDER BY b.k, b.id OFFSET 2) l',
  'LATERAL, another parameter each time');
SELECT same('SELECT a.id AS x, l.* FROM a, LATERAL (SELECT * FROM
    (SELECT * FROM b ORDER BY k DESC, id OFFSET 2) i WHERE i.g = a.k
    ORDER BY i.k, i.id OFFSET 1) l',
  'LATERAL, a sort with a parameter above one without');
SELECT same('SELECT a.id AS a, l.* FROM a, LATERAL (SELECT x.id AS x, s.id
    FROM a x LEFT JOIN (SELECT * FROM b WHERE b.g = a.k ORDER BY b.k, b.id
      OFFSET 370) s ON s.id > x.id
    WHERE x.id < 4 OFFSET 0) l',
  'LATERAL, rewound several times for each parameter');

-- Rewound at a row that stayed in memory: about half of them do, those that came
-- last, which are the first ones of each k.
SET LOCAL fmsort.debug_group_filter = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_material = off;
SELECT is(digest(query, 'fmsort', '160kB'), digest(query, 'off', '160kB'),
  'rewound while a row from memory is out')
FROM (VALUES ('SELECT a.id AS a, s.* FROM a LEFT JOIN
  (SELECT DISTINCT ON (k) * FROM b ORDER BY k, id DESC) s ON s.k = a.id'))
  v(query);
SELECT ok(sort_method = 'external merge' AND
    bytes_written BETWEEN 50000 AND 150000, '... some of them do')
FROM fmsort_last_sort();
RESET fmsort.debug_group_filter;
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

SELECT same('SELECT a.id, ARRAY(SELECT b.id FROM b WHERE b.g = a.k
  ORDER BY b.k DESC, b.id OFFSET 1) FROM a', 'a correlated subplan');
SELECT same('SELECT a.id, (SELECT s.id FROM (SELECT * FROM b ORDER BY k, id
  OFFSET 2) s WHERE s.g = a.k LIMIT 1) FROM a',
  'a subplan that reads a part, and starts again');
SELECT same('SELECT * FROM a WHERE EXISTS (SELECT FROM (SELECT * FROM b
  ORDER BY k, id OFFSET 5) s WHERE s.id = a.id * 100)',
  'EXISTS over a sort');
SELECT same('SELECT * FROM a WHERE a.id NOT IN (SELECT s.k FROM
  (SELECT * FROM b ORDER BY k, id OFFSET 500) s WHERE s.g = a.k)',
  'NOT IN over a sort');
SELECT same('SELECT a.id AS x, s.* FROM a LEFT JOIN (SELECT * FROM empty
  ORDER BY k OFFSET 0) s ON s.id > a.id', 'no row, again and again');
SELECT same('WITH RECURSIVE r AS (SELECT 1 AS n, 0 AS k UNION ALL
  SELECT * FROM (SELECT n + 1, b.k FROM r, b WHERE b.id = n * 7 % 2000
    AND n < 300 ORDER BY b.k, n OFFSET 0) s) SELECT * FROM r',
  'below a recursion');

RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;
RESET enable_memoize;

SELECT same('WITH c AS MATERIALIZED (SELECT * FROM b ORDER BY k, id)
  SELECT c.id AS x, d.id FROM c, c AS d WHERE c.id % 97 = 0 AND d.id < 50',
  'a CTE that is read twice');
SELECT same('SELECT x.id AS i, y.* FROM a x, (SELECT * FROM b
  WHERE id < 300 ORDER BY k DESC, id) y', 'a sort below Materialize');

-- ---- other parents ----------------------------------------------------------

SET LOCAL enable_hashagg = off;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SET LOCAL enable_incremental_sort = off;

SELECT same('SELECT DISTINCT g, k FROM b', 'DISTINCT');
SELECT same('SELECT DISTINCT ON (k) k, id FROM b ORDER BY k, id DESC',
  'DISTINCT ON');
SELECT same('SELECT k, count(*), sum(id) FROM b GROUP BY k', 'GROUP BY');
SELECT same('SELECT k, g, count(*), grouping(k, g) FROM b
  GROUP BY CUBE (k, g)', 'grouping sets');
SELECT same('SELECT id, rank() OVER w, sum(id) OVER w, lag(id, 3) OVER w
  FROM b WINDOW w AS (PARTITION BY g ORDER BY k DESC, id)',
  'window functions');
SELECT same('SELECT id, ntile(7) OVER (ORDER BY k, id),
  first_value(id) OVER (PARTITION BY k ORDER BY id DESC
    ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) FROM b', 'two windows');
SELECT same('SELECT count(*), sum(x.id * y.id) FROM b x JOIN b y
  ON x.id = y.k', 'a merge join');
SELECT same('SELECT count(*), sum(x.id * y.id) FROM b x LEFT JOIN a y
  ON x.k = y.id', 'a merge left join');
SELECT same('SELECT count(*), sum(x.id), sum(y.id) FROM b x FULL JOIN a y
  ON x.k = y.id', 'a merge full join');
SELECT same('SELECT * FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.id)',
  'a semi join');
SELECT same('SELECT count(*), sum(id) FROM b WHERE NOT EXISTS
  (SELECT FROM a WHERE b.k = a.id)', 'an anti join');
SELECT same('SELECT k FROM b UNION SELECT id FROM a', 'UNION');
SELECT same('SELECT k FROM b INTERSECT ALL SELECT id FROM a', 'INTERSECT');
SELECT same('SELECT k FROM b EXCEPT SELECT id FROM a', 'EXCEPT');
SELECT same('(SELECT id, k FROM b ORDER BY k, id) UNION ALL
  (SELECT id, k FROM b ORDER BY k DESC, id DESC)', 'below Append');

RESET enable_hashagg;
RESET enable_hashjoin;
RESET enable_nestloop;

-- ---- what a row may hold ----------------------------------------------------

CREATE TABLE odd (gone1 int, id int, gone2 text, k int,
  twice int GENERATED ALWAYS AS (k * 2) STORED);
INSERT INTO odd SELECT i, i, 'x', (i * 7919) % 101
FROM generate_series(1, 1500) i;
ALTER TABLE odd DROP gone1, DROP gone2, ADD later text DEFAULT 'later';
ANALYZE odd;
SELECT same('SELECT * FROM odd ORDER BY k, id', 'dropped and added columns');
SELECT same('SELECT odd FROM odd ORDER BY k, id', 'whole rows');
SELECT same('SELECT ctid, tableoid, xmin, id FROM odd ORDER BY k, id',
  'system columns');
SELECT same('SELECT odd.*, b.* FROM odd LEFT JOIN b ON odd.id = b.id
  AND b.id < 9 ORDER BY b.k, odd.k, odd.id', 'rows with many nulls');
SELECT same('SELECT id, generate_series(1, k % 3) FROM odd
  ORDER BY k DESC, 2, id', 'functions that return sets');
SELECT same('SELECT ROW(id, k), ARRAY[k, id], id::numeric / 7, k::text
  FROM odd ORDER BY k, id', 'values by reference');
SELECT same('SELECT ' || (SELECT string_agg(format('id + %s AS c%s', g, g), ', ')
    FROM generate_series(1, 1000) g) || ' FROM odd WHERE id < 200
  ORDER BY k, id', 'a thousand columns');

CREATE VIEW seen AS SELECT id, k, pay FROM b ORDER BY k DESC, id;
SELECT same('SELECT * FROM seen', 'a view');
CREATE FUNCTION listed(lowest int) RETURNS SETOF b LANGUAGE plpgsql AS
$$
BEGIN
  RETURN QUERY SELECT * FROM b WHERE id >= lowest ORDER BY k, id;
END
$$;
SELECT is(digest('SELECT * FROM listed(20)', 'fmsort', '64kB'),
  digest('SELECT * FROM listed(20)', 'off', '64kB'),
  'a function that returns a query');

-- ---- long rows and long keys --------------------------------------------------

-- incompressible, of any length
CREATE FUNCTION noise(n int, salt int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$
  SELECT left(string_agg(encode(sha512((salt || '/' || i)::bytea), 'hex'), ''),
    n)
  FROM generate_series(0, n / 128) i
$$;
CREATE TABLE long AS
SELECT i AS id, (i * 7919) % 23 AS k,
  CASE i % 6 WHEN 0 THEN noise(i * i, i) WHEN 1 THEN repeat('y', i * 100)
    WHEN 2 THEN noise(2000, i) WHEN 3 THEN NULL ELSE 'short' END AS pay
FROM generate_series(1, 150) i;
INSERT INTO long
SELECT 1000 + i, i, noise(300000 + i, i) FROM generate_series(1, 6) i;
CREATE TABLE external (LIKE long);
ALTER TABLE external ALTER pay SET STORAGE EXTERNAL;
INSERT INTO external SELECT * FROM long ORDER BY id;
ANALYZE long, external;

SELECT same('SELECT * FROM long ORDER BY k, id', 'toasted rows');
SELECT same('SELECT * FROM external ORDER BY k, id',
  'toasted rows, not compressed');
SELECT same('SELECT id, pay || id FROM external ORDER BY k, id',
  'rows from 1 byte to 300 kB in line');
SELECT same('SELECT id, repeat(''z'', id * 300) FROM long ORDER BY k, id',
  'long rows that could be compressed');
SELECT same('SELECT id, pay FROM external ORDER BY pay COLLATE "C", id',
  'toasted keys, C');
SELECT same('SELECT id, pay FROM long ORDER BY pay COLLATE "C" DESC, id',
  'compressed keys, C');
SELECT same('SELECT id, pay || ''!'' AS p FROM long
  ORDER BY pay || ''!'', id', 'keys from 1 byte to 300 kB');
SELECT same('SELECT * FROM (SELECT id, noise(40000, 1) || id % 7 AS p
  FROM long OFFSET 0) s ORDER BY p COLLATE "C", id',
  'keys of 40 kB that differ in the last byte');
SELECT same('SELECT id, (noise(40000, 1) || id % 7)::bytea AS p FROM long
  ORDER BY p DESC, id', 'keys of 40 kB that differ in the last byte, bytea');

-- With small blocks, records of that kind go over hundreds of them.
SET LOCAL fmsort.block_size = 512;
SELECT same('SELECT id, pay || id FROM external ORDER BY k, id',
  'rows up to 300 kB in blocks of 512 bytes');
SELECT same('SELECT * FROM (SELECT id, noise(40000, 1) || id % 7 AS p
  FROM long OFFSET 0) s ORDER BY p COLLATE "C", id', 'keys of 40 kB in blocks of 512 bytes');
SET LOCAL fmsort.block_size = '256kB';
SELECT same('SELECT id, pay || id FROM external ORDER BY k, id',
  'rows up to 300 kB in blocks as large as may be');
RESET fmsort.block_size;

-- ---- statements that write ----------------------------------------------------

CREATE TABLE written (n serial, id int, k int);
SELECT set_config('fmsort.mode', 'fmsort', true),
  set_config('work_mem', '64kB', true) \g /dev/null
WITH w AS (INSERT INTO written (id, k) SELECT id, k FROM b ORDER BY k, id
  RETURNING n, id, k)
SELECT is((SELECT md5(string_agg(w.n || ':' || w.id, ' ')) FROM w),
  (SELECT md5(string_agg(n || ':' || id, ' ')) FROM
    (SELECT row_number() OVER (ORDER BY k, id) AS n, id FROM b) s),
  'INSERT .. SELECT .. ORDER BY .. RETURNING numbers the rows in order');
SELECT is((SELECT tuples FROM fmsort_last_sort() LIMIT 1), 2000::bigint,
  '... and sorted them all');
WITH u AS (UPDATE written SET k = s.r FROM (SELECT DISTINCT ON (k) k, id AS r
  FROM b ORDER BY k, id) s WHERE written.k = s.k RETURNING written.*)
SELECT is((SELECT count(*) FROM u), 2000::bigint, 'UPDATE .. FROM a sort');
WITH d AS (DELETE FROM written USING (SELECT DISTINCT k FROM written) s
  WHERE s.k = written.k RETURNING *)
SELECT is((SELECT count(*) FROM d), 2000::bigint, 'DELETE .. USING a sort');
SELECT is((SELECT string_agg(id::text, ' ') FROM
    (SELECT id FROM a ORDER BY k, id FOR UPDATE) s),
  '5 10 1 6 11 2 7 12 3 8 4 9', 'FOR UPDATE');

-- a volatile function below the sort is called in order of arrival, one above
-- it in order of the rows
CREATE SEQUENCE calls;
SELECT is((SELECT string_agg(c || ':' || id, ' ') FROM
    (SELECT id, nextval('calls') AS c FROM a WHERE k < 2 ORDER BY k, id) s),
  '1:5 2:10 3:1 4:6 5:11', 'volatile functions are called in the order asked');

-- a subquery that the planner has removed leaves its column's name
CREATE TABLE named AS SELECT id AS number, k AS kind
  FROM (SELECT id, k FROM a ORDER BY k, id) s;
SELECT columns_are('named', ARRAY['number', 'kind'], 'names of columns');

-- a LIMIT's bound goes through Append and MergeAppend
SELECT count(*) FROM ((SELECT k, id FROM b ORDER BY k, id) UNION ALL
  (SELECT k, id FROM b ORDER BY k, id) LIMIT 5) s \g /dev/null
SELECT is(string_agg(sort_method, ' '), 'top-N', 'LIMIT above Append')
FROM fmsort_last_sort();
SELECT is((SELECT string_agg(id::text, ' ') FROM
    ((SELECT k, id FROM b ORDER BY k, id) UNION ALL
     (SELECT k, id FROM b ORDER BY k, id) ORDER BY k, id LIMIT 6) s),
  (SELECT string_agg(id || ' ' || id, ' ') FROM
    (SELECT id FROM b ORDER BY k, id LIMIT 3) s),
  'LIMIT above MergeAppend');

-- a plan that has the node goes on when the mode is off
DECLARE begun CURSOR FOR SELECT id FROM b ORDER BY k, id;
SET LOCAL fmsort.mode = off;
FETCH 1 FROM begun \gset begun_
SELECT is((SELECT id FROM b ORDER BY k, id LIMIT 1), :begun_id,
  'a cursor from before the mode was off');
CLOSE begun;
RESET fmsort.mode;

SELECT is((SELECT count(*) FROM pg_ls_tmpdir()), 0::bigint,
  'no temporary file is left');

SELECT * FROM finish();
ROLLBACK;
