-- Parallel sorts at the server's default costs: which statements get one, and
-- which stay as they are.
--
-- Seen to fail with: no path offered; parallel_tuple_cost charged; costs of the
-- nodes above the Sort left as they were; fmsort.parallel not looked at.
\ir begin.psql

SELECT no_plan();

RESET max_parallel_workers_per_gather;
SET work_mem = '4MB';
CREATE TABLE big AS
SELECT i AS a, i % 1000 AS b, repeat('x', 100) AS c
FROM generate_series(1, 200000) i;
VACUUM ANALYZE big;

-- Nodes from the top down.
CREATE FUNCTION nodes(query text) RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  plan json;
  result text;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  plan := plan->0->'Plan';
  LOOP
    result := concat_ws(', ', result, coalesce(plan->>'Custom Plan Provider', plan->>'Node Type'));
    plan := plan->'Plans'->0;
    EXIT WHEN plan IS NULL;
  END LOOP;
  RETURN result;
END
$$;

CREATE TABLE cases (above text, query text);
INSERT INTO cases VALUES
  ('', 'SELECT * FROM big ORDER BY a'),
  ('Result, ', 'SELECT a, random() FROM big ORDER BY a'),
  ('Unique, ', 'SELECT DISTINCT ON (b) * FROM big ORDER BY b, a'),
  ('WindowAgg, ', 'SELECT b, a, row_number() OVER (PARTITION BY b ORDER BY a) FROM big'),
  ('Limit, ', 'SELECT * FROM big ORDER BY c, a LIMIT 100000');

SELECT is(nodes(query), above || 'FMSort, Gather, FMSort Runs, Seq Scan', query) FROM cases;

SET enable_hashagg = off;
SELECT is(nodes('SELECT a, count(*) FROM big GROUP BY a'),
  'Aggregate, FMSort, Gather, FMSort Runs, Seq Scan', 'GROUP BY by sorting');
SELECT is(nodes('SELECT DISTINCT a FROM big'),
  'Unique, FMSort, Gather, FMSort Runs, Seq Scan', 'DISTINCT by sorting');
RESET enable_hashagg;

-- ---- the same costs above the sort ----------------------------------------------

CREATE FUNCTION cost_above(query text) RETURNS numeric LANGUAGE plpgsql AS
$$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  plan := plan->0->'Plan';
  RETURN (plan->>'Total Cost')::numeric - (plan->'Plans'->0->>'Total Cost')::numeric;
END
$$;
CREATE TABLE above AS
SELECT query, cost_above(query) AS cost FROM cases WHERE above IN ('Unique, ', 'WindowAgg, ');
SET fmsort.parallel = off;
SELECT ok(abs(cost - cost_above(query)) < 0.1, 'the cost above the sort stays: ' || query)
FROM above;

-- ---- who does not want it --------------------------------------------------------

SELECT is(nodes('SELECT * FROM big ORDER BY a'), 'FMSort, Seq Scan', 'fmsort.parallel = off');
RESET fmsort.parallel;
SET fmsort.mode = off;
SELECT is(nodes('SELECT * FROM big ORDER BY a'), 'Sort, Seq Scan', 'fmsort.mode = off');
RESET fmsort.mode;
SET enable_gathermerge = off;
SELECT is(nodes('SELECT * FROM big ORDER BY a'), 'FMSort, Seq Scan', 'enable_gathermerge = off');
RESET enable_gathermerge;
SET max_parallel_workers_per_gather = 0;
SELECT is(nodes('SELECT * FROM big ORDER BY a'), 'FMSort, Seq Scan', 'no workers');
RESET max_parallel_workers_per_gather;
CREATE FUNCTION unsafe() RETURNS int LANGUAGE plpgsql PARALLEL UNSAFE AS 'BEGIN RETURN 1; END';
SELECT is(nodes('SELECT a, unsafe() FROM big ORDER BY a'), 'Result, FMSort, Seq Scan',
  'a function that is not parallel safe');

-- ---- a plan kept by the session, run without fmsort -------------------------------

SET plan_cache_mode = force_generic_plan;
PREPARE kept AS SELECT a FROM big ORDER BY a DESC;
SELECT is(nodes('EXECUTE kept'), 'FMSort, Gather, FMSort Runs, Seq Scan', 'a prepared statement');
SET fmsort.mode = off;
SELECT is(nodes('EXECUTE kept'), 'Gather Merge, Sort, Seq Scan', 'the same without fmsort');
CREATE TABLE result AS EXECUTE kept;
SELECT is((SELECT count(*) FROM result), 200000::bigint, 'and it returns all rows');
RESET fmsort.mode;

SELECT * FROM finish();
