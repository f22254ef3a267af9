-- Every kind of key, in both directions, nulls first and last, in memory and
-- external: the same sequence, ties included, as PostgreSQL's own sort with
-- the arrival number as last key.
--
-- Seen to fail with: encode.h leaving -0 alone; keys.c encoding text whatever
-- its collation; null_byte of keys.c not depending on nulls_first; keys.c
-- calling every key exact; node.c losing the collations.
\set QUIET 1
\set ON_ERROR_STOP 1
\pset format unaligned
\pset tuples_only 1
\pset pager off

-- a value added later has to be committed before it is used
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'mad');
ALTER TYPE mood ADD VALUE 'meek' BEFORE 'ok';

BEGIN;
SET LOCAL max_parallel_workers_per_gather = 0;
SET LOCAL jit = off;
SET LOCAL client_min_messages = warning;
SELECT no_plan();

CREATE DOMAIN small AS int CHECK (VALUE < 1000000);
CREATE DOMAIN word AS text COLLATE "C";
CREATE TYPE pair AS (a int, b text);

-- int, sorted backwards by an operator class of the user's own
CREATE FUNCTION back_lt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT $1 > $2';
CREATE FUNCTION back_le(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT $1 >= $2';
CREATE FUNCTION back_gt(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT $1 < $2';
CREATE FUNCTION back_ge(int, int) RETURNS bool LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT $1 <= $2';
CREATE FUNCTION back_cmp(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT
  AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR #< (leftarg = int, rightarg = int, function = back_lt,
  commutator = #>, negator = #>=);
CREATE OPERATOR #<= (leftarg = int, rightarg = int, function = back_le);
CREATE OPERATOR #>= (leftarg = int, rightarg = int, function = back_ge);
CREATE OPERATOR #> (leftarg = int, rightarg = int, function = back_gt);
CREATE OPERATOR CLASS back_ops FOR TYPE int USING btree AS
  OPERATOR 1 #<, OPERATOR 2 #<=, OPERATOR 3 =, OPERATOR 4 #>=, OPERATOR 5 #>,
  FUNCTION 1 back_cmp(int, int);

-- n: how the key is made of a number i; what: how it is asked for
CREATE TABLE kinds (kind text, made text, asked text DEFAULT 'v');
INSERT INTO kinds (kind, made) VALUES
  ('int', '(i * 7919) % 101 - 50'),
  ('int, extremes', 'CASE i % 5 WHEN 0 THEN 2147483647 WHEN 1 THEN -2147483648
    ELSE i % 7 - 3 END'),
  ('bigint', 'CASE i % 5 WHEN 0 THEN 9223372036854775807
    WHEN 1 THEN -9223372036854775808 ELSE (i * 4294967291) % 1009 END'),
  ('smallint', '(CASE i % 5 WHEN 0 THEN 32767 WHEN 1 THEN -32768
    ELSE i % 9 - 4 END)::smallint'),
  ('float8', '(ARRAY[''NaN'', ''-0'', ''0'', ''Infinity'', ''-Infinity'',
    ''4.9e-324'', ''-4.9e-324'', ''1e308'', ''-1e308'', ''1.5'', ''-1.5'']
    ::float8[])[1 + (i * 7) % 11]'),
  ('float4', '(ARRAY[''NaN'', ''-0'', ''0'', ''Infinity'', ''-Infinity'',
    ''1.4e-45'', ''-1.4e-45'', ''3e38'', ''-3e38'', ''1.5'', ''-1.5'']
    ::float4[])[1 + (i * 7) % 11]'),
  ('numeric', 'CASE i % 9 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-Infinity''
    WHEN 2 THEN ''Infinity'' WHEN 3 THEN 1.0 WHEN 4 THEN 1.000
    ELSE ((i * 7919) % 211) / 7.0 - 10 END::numeric'),
  ('money', '((i * 7919) % 211 - 100)::money'),
  ('text', 'repeat(''prefix '', i % 3 * 9) || (i * 7919) % 101'),
  ('text, C', '(repeat(''prefix '', i % 3 * 9) || (i * 7919) % 101)
    COLLATE "C"'),
  ('text, POSIX', '(repeat(''prefix '', i % 3 * 9) || (i * 7919) % 101)
    COLLATE "POSIX"'),
  ('text, case and accents', '(ARRAY[''a'', ''A'', ''ä'', ''Ä'', ''b'', ''B'',
    '''', ''z'', ''-a'', ''a-'', ''ß'', ''ss'', ''aa''])[1 + (i * 7) % 13]'),
  ('text, bytes above 127', '((ARRAY[''é'', ''e'', ''日本'', '''', ''z'',
    ''ｚ''])[1 + i % 6] || i % 3) COLLATE "C"'),
  ('varchar', '(chr(97 + (i * 7) % 26) || i % 4)::varchar(10)'),
  ('char(n)', '(repeat(chr(97 + i % 3), (i * 7) % 9))::char(10)'),
  ('char(n), C', '(repeat(chr(97 + i % 3), (i * 7) % 9))::char(10)
    COLLATE "C"'),
  ('"char"', '(33 + (i * 7) % 90)::"char"'),
  ('name', '(''n'' || (i * 7919) % 101)::name'),
  ('bytea', 'decode(repeat(''00'', i % 40) || lpad(to_hex((i * 7919) % 251),
    2, ''0''), ''hex'')'),
  ('bytea, long', 'decode(repeat(''ab'', 40 + i % 2) ||
    lpad(to_hex((i * 7919) % 251), 2, ''0''), ''hex'')'),
  ('date', 'CASE i % 9 WHEN 0 THEN ''infinity'' WHEN 1 THEN ''-infinity''
    ELSE date ''2000-01-01'' + (i * 7919) % 211 - 100 END::date'),
  ('timestamp', 'timestamp ''2000-01-01'' + (i * 7919) % 211 *
    interval ''1 microsecond'''),
  ('timestamptz', 'CASE i % 9 WHEN 0 THEN ''infinity''
    WHEN 1 THEN ''-infinity'' ELSE timestamptz ''1999-12-31'' +
    (i * 7919) % 211 * interval ''1 hour'' END::timestamptz'),
  ('time', '''00:00''::time + (i * 7919) % 211 * interval ''1 minute'''),
  ('timetz', '(''12:00+0'' || i % 4)::timetz + (i * 7919) % 11 *
    interval ''1 minute'''),
  ('interval', '((i * 7919) % 61)::text::interval * (i % 3 - 1)'),
  ('bool', 'i * 7919 % 13 > 5'),
  ('uuid', 'md5(((i * 7919) % 101)::text)::uuid'),
  ('oid', '(CASE i % 3 WHEN 0 THEN 4294967295 ELSE i % 11 END)::oid'),
  ('xid8', '(''18446744073709551'' || 100 + i % 500)::xid8'),
  ('pg_lsn', '(''F'' || to_hex(i % 17) || ''/'' || to_hex(i % 7))::pg_lsn'),
  ('tid', '(''('' || i % 17 || '','' || 1 + i % 3 || '')'')::tid'),
  ('inet', '(''10.'' || (i * 7919) % 101 || ''.0.0/'' || 8 + i % 3)::inet'),
  ('macaddr', '(''08:00:2b:01:02:'' || lpad(to_hex(i % 101), 2, ''0''))
    ::macaddr'),
  ('bit varying', '((i * 7919) % 101)::bit(8)::varbit || B''01'''),
  ('jsonb', 'jsonb_build_object(''k'', i % 5, ''v'',
    jsonb_build_array((i * 7919) % 101, i % 2 = 0, NULL))'),
  ('int[]', 'ARRAY[i % 3, (i * 7919) % 101] || array_fill(1, ARRAY[i % 2])'),
  ('text[]', 'ARRAY[chr(97 + i % 3), NULL, ((i * 7919) % 11)::text]'),
  ('record', 'ROW(i % 3, ''x'' || (i * 7919) % 11)'),
  ('composite', 'CASE WHEN i % 7 = 0 THEN ROW(1, NULL)::pair
    ELSE ROW(i % 3, ''x'' || (i * 7919) % 11)::pair END'),
  ('enum', '(ARRAY[''sad'', ''happy'', ''meek'', ''mad'', ''ok'']::mood[])
    [1 + (i * 7) % 5]'),
  ('domain over int', '((i * 7919) % 101)::small'),
  ('domain over text', '(''w'' || (i * 7919) % 101)::word'),
  ('range', 'int4range(i % 5, i % 5 + (i * 7919) % 11)'),
  ('tsvector', '(''word'' || (i * 7919) % 101)::tsvector'),
  ('all equal', '42'),
  ('all null', 'NULL::int');

INSERT INTO kinds VALUES
  ('text, ~<~', '''a'' || (i * 7919) % 101', 'v USING ~<~'),
  ('text, ~>~', '''a'' || (i * 7919) % 101', 'v USING ~>~'),
  ('char(n), ~<~', '(repeat(''a'', i % 9))::char(10)', 'v USING ~<~'),
  ('record, *<', 'ROW(i % 3, ''x'' || (i * 7919) % 11)', 'v USING *<'),
  ('int, an operator class of the user''s', '(i * 7919) % 101', 'v USING #<'),
  ('... and backwards', '(i * 7919) % 101', 'v USING #>'),
  ('int, USING >', '(i * 7919) % 101', 'v USING >');

-- Collations that only some servers have.
INSERT INTO kinds
SELECT 'text, ' || collname, '(ARRAY[''a'', ''A'', ''ä'', ''Ä'', ''b'', ''B'',
  '''', ''z'', ''-a'', ''a-'', ''ß'', ''ss'', ''aa''])[1 + (i * 7) % 13]
  COLLATE ' || quote_ident(collname)
FROM pg_collation
WHERE collname IN ('und-x-icu', 'de-x-icu', 'en_US.utf8');
INSERT INTO kinds
SELECT 'text, a collation that ignores case', '(ARRAY[''a'', ''A'', ''b'',
  ''B''])[1 + (i * 7) % 4] COLLATE caseless'
WHERE EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu');
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu') THEN
    CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2',
      deterministic = false);
  END IF;
END
$$;

-- The sequence of the rows, and by what method it was made.
CREATE FUNCTION sequence(made text, keys text, mode text, memory text)
RETURNS text LANGUAGE plpgsql AS
$$
DECLARE
  result text;
  method text := 'stock';
BEGIN
  PERFORM set_config('fmsort.mode', mode, true),
    set_config('work_mem', memory, true);
  EXECUTE format('SELECT md5(string_agg(id || coalesce(v::text, ''null''),
    '' '')) FROM (SELECT i AS id,
    CASE WHEN i %% 17 <> 3 THEN %s END AS v, repeat(''.'', 30) AS pay
    FROM generate_series(1, 1500) i ORDER BY %s) s WHERE pay IS NOT NULL',
    made, keys) INTO result;
  IF mode <> 'off' THEN
    SELECT sort_method INTO method FROM fmsort_last_sort() l
    WHERE l.sort = (SELECT max(sort) FROM fmsort_last_sort())
      AND l.tuples = 1500;
  ELSIF memory = '64kB' THEN
    method := 'external merge';
  ELSE
    method := 'in-memory';
  END IF;
  RETURN method || ' ' || result;
END
$$;

SELECT is(
  sequence(made, asked || ending, 'fmsort', memory),
  sequence(made, asked || ending || ', i', 'off', memory),
  kind || ':' || substr(asked, 2) || ending || ', ' || memory)
FROM kinds,
  (VALUES ('', 1), (' DESC', 2), (' NULLS FIRST', 3),
    (' DESC NULLS LAST', 4)) e (ending, e),
  (VALUES ('4MB'), ('64kB')) m (memory)
WHERE asked = 'v' OR ending NOT LIKE '%DESC%';

-- A second key after each kind, which only ties reach.
SELECT is(
  sequence(made, asked || ', i % 7 DESC', 'fmsort', '64kB'),
  sequence(made, asked || ', i % 7 DESC, i', 'off', '64kB'),
  kind || ', then an int')
FROM kinds WHERE asked = 'v';
SELECT is(
  sequence(made, 'i % 7 DESC, ' || asked || ' DESC, i % 2', 'fmsort', '64kB'),
  sequence(made, 'i % 7 DESC, ' || asked || ' DESC, i % 2, i', 'off', '64kB'),
  'an int, then ' || kind || ', then an int')
FROM kinds WHERE asked = 'v';

-- Many keys.
SELECT is(
  sequence('i', keys, 'fmsort', memory),
  sequence('i', keys || ', i', 'off', memory),
  n || ' keys, ' || memory)
FROM (VALUES (2), (3), (8), (40), (300)) c (n),
  (VALUES ('4MB'), ('64kB')) m (memory),
  LATERAL (SELECT string_agg(
      CASE g % 4 WHEN 0 THEN format('i * %s %% 3', g)
        WHEN 1 THEN format('nullif(i %% %s, 1) DESC NULLS LAST', g % 5 + 2)
        WHEN 2 THEN format('(i * %s %% 2)::text COLLATE "C" DESC', g)
        ELSE format('(i * %s %% 5)::numeric NULLS FIRST', g) END,
      ', ' ORDER BY g) AS keys
    FROM generate_series(1, n) g) k;

SELECT * FROM finish();
ROLLBACK;
DROP TYPE mood;
