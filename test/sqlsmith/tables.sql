-- Tables of every type that can be sorted, for script/suites/sqlsmith.sh.

CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy', 'elated');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN percentage AS int CHECK (VALUE BETWEEN 0 AND 100);

CREATE TABLE numbers AS SELECT i AS id, (i % 300 - 150)::int2 AS small,
  i::int8 * 4000000007 % 1000003 AS large,
  CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0'
    ELSE sin(i)::float4 END::float4 AS real4,
  CASE i % 60 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0'
    ELSE exp(i % 400 - 200) END::float8 AS real8,
  CASE i % 40 WHEN 0 THEN 'NaN' WHEN 1 THEN NULL WHEN 2 THEN '-Infinity'
    ELSE (i * 7919 % 10007)::numeric ^ (i % 9) / 1000 END AS exact,
  (i * 31 % 997)::text::money AS cash, nullif(i % 3, 0) = 1 AS flag,
  (i % 101)::percentage AS share
FROM generate_series(1, 2500) i;
ALTER TABLE numbers ADD PRIMARY KEY (id);

CREATE TABLE texts AS SELECT i AS id, i * 7 % 2500 + 1 AS number_id,
  md5(i::text) COLLATE "C" AS bytewise,
  repeat(chr(97 + i % 26), i % 40) || chr(192 + i % 60) || i % 13 AS long_prefix,
  nullif(md5((i % 77)::text), md5('5'))::varchar(20) AS few,
  (i % 1000)::text::char(12) AS padded, ('n' || i)::name AS named,
  decode(md5((i / 2)::text), 'hex') AS bytes, chr(65 + i % 26)::"char" AS letter
FROM generate_series(1, 3000) i;
ALTER TABLE texts ADD PRIMARY KEY (id),
  ADD FOREIGN KEY (number_id) REFERENCES numbers;
CREATE INDEX ON texts (few, id);

CREATE TABLE times AS SELECT i AS id, i * 11 % 3000 + 1 AS text_id,
  CASE i % 90 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' WHEN 2 THEN NULL
    ELSE date '0044-03-15 BC' + i * 317 END::date AS day,
  timestamp '2000-01-01' + i * 997 * interval '1 minute' AS stamp,
  timestamptz '1970-01-01 00:00 UTC' - i * 13 * interval '1 day' AS stamp_tz,
  time '00:00' + i * interval '17 s' AS clock,
  (time '00:00' + i * interval '17 s')::timetz AS clock_tz,
  make_interval(months => i % 7, days => i % 45, secs => i * 0.25) AS span
FROM generate_series(1, 3000) i;

CREATE TABLE oddities AS SELECT i AS id, md5((i % 900)::text)::uuid AS u,
  ('10.' || i % 4 || '.' || i % 250 || '.0/' || 8 + i % 17)::inet AS ip,
  ('10.' || i % 4 || '.' || i % 250 || '.0/24')::cidr AS net,
  ('08:00:2b:01:' || to_char(i % 90, 'FM00') || ':' ||
    to_char(i / 90, 'FM00'))::macaddr AS mac,
  (i * 37)::bit(12) AS bits, ((i % 200)::bit(9))::varbit AS some_bits,
  i::oid AS o, ('0/' || to_hex(i * 4096))::pg_lsn AS lsn,
  i::text::xid8 AS xid, (enum_range(NULL::mood))[1 + i % 4] AS feeling,
  jsonb_build_object('k', i % 10, 'v', repeat('x', i % 30)) AS j,
  to_tsvector('simple', 'w' || i % 50 || ' w' || i % 7) AS words,
  ('w' || i % 20)::tsquery AS sought
FROM generate_series(1, 2000) i;

CREATE TABLE composites AS SELECT i AS id,
  ARRAY[i % 10, nullif(i % 4, 0), i] AS ints, ARRAY[md5(i::text), 'x'] AS strings,
  ROW(i % 20, chr(97 + i % 26))::pair AS p,
  int4range(i % 50, i % 50 + i % 9) AS ints_between,
  tstzrange(timestamptz '2020-01-01' + i * interval '1 hour', NULL) AS since,
  int8multirange(int8range(i, i + 5), int8range(i + 10, i + 20)) AS many,
  point(i % 30, i) AS at_point, box(point(0, 0), point(i, i % 9)) AS b
FROM generate_series(1, 1500) i;

-- Records larger than blocks, some of them larger than work_mem.
CREATE TABLE wide AS SELECT i AS id, i % 17 AS k,
  (SELECT string_agg(md5((i * j)::text), '') FROM
    generate_series(1, CASE WHEN i % 100 = 0 THEN 3000 ELSE 20 + i % 200 END) j)
    AS body,
  repeat('compressible ', 500 + i) AS dull
FROM generate_series(1, 250) i;

CREATE TABLE few_values AS SELECT i AS id, i % 3 AS three, NULL::int AS nothing,
  i % 2 = 0 AS even FROM generate_series(1, 5000) i;
CREATE TABLE no_rows (id int, t text);

CREATE TABLE parts (id int, k int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (1500) TO (3000);
CREATE TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT i, i * 7919 % 1009, md5(i::text)
FROM generate_series(1, 4000) i;
CREATE INDEX ON parts_1 (k);

CREATE TABLE heirs (extra numeric) INHERITS (texts);
INSERT INTO heirs SELECT t.*, id / 7.0 FROM ONLY texts t WHERE id % 3 = 0;
