-- fmsort_recommend(): arguments; every bigint in no time; and what it says is
-- what sorts do.
--
-- Seen to fail with: one step a run, which for the largest inputs never ends;
-- count_passes() that forgets the runs of the level before.
\ir begin.psql

SELECT no_plan();

-- ---- arguments ------------------------------------------------------------------

SELECT throws_ok('SELECT fmsort_recommend(''none'', 1000)', '22023', NULL,
  'work_mem: what SET takes');
SELECT throws_ok('SELECT fmsort_recommend(''1kB'', 1000)', '22023', NULL,
  'work_mem: 64 kB at least');
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', ' || bytes || ')', '22023',
  '"input_bytes" must be greater than zero', 'input_bytes: above 0')
FROM unnest('{0,-1,-9223372036854775808}'::bigint[]) bytes;
SELECT throws_ok('SELECT fmsort_recommend(''4MB'', 1000, -1)', '22023', NULL,
  'tuple_bytes: above 0');
SELECT is(fmsort_recommend(NULL, 1000), NULL, 'null: null');

-- ---- every bigint ----------------------------------------------------------------

SET statement_timeout = '60s';
CREATE TEMPORARY TABLE far AS
SELECT memory, i, width, r.*
FROM unnest('{64kB,1MB,4MB,1GB,2047GB}'::text[]) memory,
  generate_series(0, 62) i, unnest('{1,100,2147483647}'::int[]) width,
  fmsort_recommend(memory, CASE i WHEN 62 THEN 9223372036854775807
    ELSE 1::bigint << i END, width) r;
RESET statement_timeout;
SELECT ok(bool_and(runs > 0 AND merge_passes > 0 AND assist_blocks > 0
    AND block_size >= 4096 OR num_nulls(runs, merge_passes, assist_blocks,
    block_size) = 4), 'null or an answer') FROM far;
SELECT ok(bool_or(runs IS NULL) AND bool_or(runs > 1e9),
  'the largest inputs have an answer') FROM far;
SELECT is((SELECT count(*) FROM (
    SELECT coalesce(runs, 0) < lag(runs) OVER w OR
      coalesce(merge_passes, 0) < lag(merge_passes) OVER w OR
      in_memory_work_mem_bytes < lag(in_memory_work_mem_bytes) OVER w AS less
    FROM far WINDOW w AS (PARTITION BY memory, width ORDER BY i)) s WHERE less),
  0::bigint, 'a larger input never takes less');
SELECT ok(one_pass_work_mem_bytes IS NULL AND in_memory_work_mem_bytes IS NULL,
  'no work_mem is enough for the largest')
FROM far WHERE memory = '64kB' AND width = 1 AND i = 62;

-- ---- sorts do what it says ----------------------------------------------------------

CREATE TABLE r AS SELECT (i * 7919) % 200003 AS k, repeat('x', 92) AS pay
FROM generate_series(1, 200000) i;
ANALYZE r;
CREATE TABLE seen (memory text, runs bigint, merge_passes int, block_size int);
SET fmsort.compression = off;
SELECT format('SET work_mem = %L', memory),
  'SELECT count(pay) FROM (SELECT * FROM r ORDER BY k OFFSET 0) s',
  format('INSERT INTO seen SELECT %L, runs, merge_passes, block_size FROM fmsort_last_sort()', memory)
FROM unnest('{64kB,128kB,1MB,8MB}'::text[]) memory \gexec
SELECT cmp_ok(abs(coalesce(s.runs, 0) - coalesce(r.runs, 0)), '<=', 1 + coalesce(r.runs, 0) / 20,
  memory || ': the runs, but for what rows take exactly')
FROM seen s, LATERAL (SELECT sum(avg_width)::int AS width FROM pg_stats
    WHERE tablename = 'r') w,
  fmsort_recommend(memory, 200000 * width::bigint, width) r;
-- a sort merges neighbours, so where memory is tiny some of them go through more
SELECT ok(r.block_size = s.block_size AND
    (r.merge_passes = 1) = (s.merge_passes = 1) AND
    s.merge_passes BETWEEN r.merge_passes AND 2 * r.merge_passes
    OR num_nulls(r.merge_passes, s.merge_passes) = 2,
  memory || ': passes and block size')
FROM seen s, LATERAL (SELECT sum(avg_width)::int AS width FROM pg_stats
    WHERE tablename = 'r') w,
  fmsort_recommend(memory, 200000 * width::bigint, width) r;

-- following its advice: one pass, and none on disk
SELECT is(o.merge_passes || ' ' || (m.runs IS NULL), '1 true', 'its advice is what it says itself')
FROM fmsort_recommend('64kB', 100000000) r,
  fmsort_recommend(r.one_pass_work_mem_bytes || 'B', 100000000) o,
  fmsort_recommend(r.in_memory_work_mem_bytes || 'B', 100000000) m;

-- anybody may ask
CREATE ROLE recommend_nobody;
SET ROLE recommend_nobody;
SELECT ok(runs > 0, 'anybody may ask') FROM fmsort_recommend('4MB', 100000000);
RESET ROLE;
DROP ROLE recommend_nobody;
DROP TABLE r, seen;
SELECT * FROM finish();
