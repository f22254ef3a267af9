-- ICU collations whose sort keys contradict their comparison (collation.c):
-- rows are sorted by the comparison, and nothing is an error.  PostgreSQL's
-- sort goes by the sort keys, so it cannot be compared with.
--
-- Seen to fail with: collation.c using sort keys where the reorder codes name
-- the digits, where accents are compared backwards, or where a numeric
-- collation has rules of its own; order.c raising an error for a block that is
-- asked for out of order.
\ir begin.psql

SELECT getdatabaseencoding() = 'UTF8' AND EXISTS (SELECT FROM pg_collation
  WHERE collname = 'und-x-icu') AS has_icu \gset
\if :has_icu
\else
SELECT plan(1);
SELECT pass('no ICU, or no UTF-8: no such collation');
\quit
\endif

BEGIN;
SELECT no_plan();

CREATE TABLE collations (name text, locale text, contradicts text);
INSERT INTO collations VALUES
  ('digits last', 'en-u-kr-latn-digit', 'digits'),
  ('digits behind cyrillic', 'en-u-kr-latn-cyrl-digit', 'digits'),
  ('digits behind all', 'en-u-kr-zzzz-digit', 'digits'),
  ('digits before currency', 'en-u-kr-digit-currency', 'digits'),
  ('digits first', 'en-u-kr-digit-latn', 'no'),
  ('digits last, shifted', 'en-u-ka-shifted-kr-latn-digit', 'digits'),
  ('digits last, numeric', 'en-u-kn-kr-latn-digit', 'digits'),
  ('digits last, normalized', 'en-u-kk-kr-latn-digit', 'digits'),
  ('digits last, upper first', 'en-u-kf-upper-kr-latn-digit', 'digits'),
  ('digits last, primary', 'en-u-ks-level1-kr-latn-digit', 'digits'),
  ('digits last, secondary', 'en-u-ks-level2-kr-latn-digit', 'digits'),
  ('digits last, identical', 'en-u-ks-identic-kr-latn-digit', 'digits'),
  ('other scripts', 'en-u-kr-grek-cyrl-latn', 'no'),
  ('symbols moved', 'en-u-kr-currency-symbol-punct-space', 'no'),
  ('backwards', 'en-u-kb', 'marks'),
  ('canadian', 'fr-CA', 'marks'),
  ('numeric', 'en-u-kn', 'no'),
  ('numeric swedish', 'sv-u-kn', 'numbers'),
  ('numeric phone book', 'de-u-co-phonebk-kn', 'numbers'),
  ('phone book', 'de-u-co-phonebk', 'no'),
  ('shifted', 'en-u-ka-shifted', 'no'),
  ('normalized', 'en-u-kk', 'no'),
  ('vietnamese', 'vi', 'no'),
  ('thai', 'th', 'no'),
  ('japanese', 'ja', 'no');
SELECT format('CREATE COLLATION %I (provider = icu, locale = %L,
  deterministic = %s)', name || suffix, locale, (suffix = '')::text)
FROM collations, (VALUES (''), (', loose')) s (suffix) \gexec
INSERT INTO collations SELECT name || ', loose', locale, contradicts
FROM collations;

-- rules of a user's own
SELECT current_setting('server_version_num')::int >= 160000 AS has_rules \gset
\if :has_rules
CREATE COLLATION "rules, digits last" (provider = icu, locale = 'en',
  rules = '[reorder Latn digit]');
CREATE COLLATION "rules, backwards" (provider = icu, locale = 'en',
  rules = '[backwards 2]');
CREATE COLLATION "rules, numeric" (provider = icu, locale = 'en',
  rules = '[numericOrdering on] &a < z');
CREATE COLLATION "rules, a letter" (provider = icu, locale = 'en',
  rules = '&a < z');
INSERT INTO collations VALUES ('rules, digits last', 'en', 'digits'),
  ('rules, backwards', 'en', 'marks'), ('rules, numeric', 'en', 'numbers'),
  ('rules, a letter', 'en', 'no');
\endif

-- Texts that each kind of collation contradicts itself about, but compares
-- consistently; and texts of which it makes circles.
CREATE TABLE texts (kind text, id int, t text);
INSERT INTO texts
SELECT 'digits', i, (ARRAY['item ', '', 'a', 'é', '$'])[1 + i * 7 % 5] ||
  CASE i % 3 WHEN 0 THEN (i * 7919 % 997)::text
    WHEN 1 THEN chr(97 + i % 26) || left(md5(i::text), i % 11)
    ELSE '' END || (ARRAY['', '€', '1', 'z'])[1 + i % 4]
FROM generate_series(1, 3000) i
UNION ALL
SELECT 'marks', i, (ARRAY[U&'\01A1', U&'\01A1\0306', U&'\30AC',
  U&'\30AC\034F\0301', 'cote', 'côte', 'coté', 'côté'])[1 + i * 7 % 8]
FROM generate_series(1, 3000) i
UNION ALL
SELECT 'numbers', i, (ARRAY[U&'\+01D7D8\FF12\FF11', U&'\+01D7D8\0E41',
  U&'\+01D7D8ch', 'a', 'b', 'ä', 'a10', 'a9'])[1 + i * 7 % 8]
FROM generate_series(1, 3000) i
UNION ALL
SELECT 'circles', i, (ARRAY['a', 'é', U&'\FF11', '²', '1', '中', U&'\1E91', 'ж',
  '٣', 'z', '$', U&'\01A1\0306', '2'])[1 + (hashint4(i) & 65535) % 13] ||
  (ARRAY['', 'b', 'b', '1', U&'\1E91', 'ж', '中', '٣', U&'\0301', '0'])
    [1 + (hashint4(-i) & 65535) % 10] || left(md5(i::text), i % 5)
FROM generate_series(1, 6000) i;
ANALYZE texts;

-- How many neighbours are in the wrong order, how many rows there are, and
-- how they were sorted.
CREATE FUNCTION wrong(collation_name text, texts_kind text, mode text,
  memory text, OUT wrong bigint, OUT n bigint, OUT total numeric,
  OUT method text)
LANGUAGE plpgsql AS
$$
BEGIN
  PERFORM set_config('fmsort.mode', mode, true),
    set_config('work_mem', memory, true);
  EXECUTE format('CREATE TEMP TABLE sorted AS
    SELECT row_number() OVER () AS n, id, t FROM
      (SELECT id, t, repeat(''.'', 40) AS pay FROM texts WHERE kind = %L
        ORDER BY t COLLATE %I) s WHERE pay IS NOT NULL',
    texts_kind, collation_name);
  SELECT sort_method INTO method FROM fmsort_last_sort() l
    ORDER BY l.sort_number DESC LIMIT 1;
  PERFORM set_config('fmsort.mode', 'off', true),
    set_config('work_mem', '64MB', true);
  EXECUTE format('SELECT count(*) FILTER (WHERE t COLLATE %1$I < before),
      count(*), sum(hashint4(id)::numeric)
    FROM (SELECT id, t, lag(t) OVER (ORDER BY n) AS before FROM sorted) s',
    collation_name) INTO wrong, n, total;
  DROP TABLE sorted;
END
$$;

SELECT is(w.wrong || ' of ' || w.n || ' ' || w.method,
  '0 of 3000 ' || CASE memory WHEN '64kB' THEN 'external merge'
    ELSE 'in-memory' END,
  format('%s, %s, %s, %s: sorted by the comparison', name, kind, mode, memory))
FROM collations, (VALUES ('digits'), ('marks'), ('numbers')) k (kind),
  (VALUES ('64kB', 'fmsort'), ('64kB', 'flash'), ('64kB', 'traditional'),
    ('4MB', 'fmsort')) m (memory, mode),
  LATERAL wrong(name, kind, mode, memory) w
WHERE contradicts IN (kind, 'no') AND (mode = 'fmsort' OR contradicts = kind);

-- No order is right there.
SELECT is(ARRAY[w.n, w.total], ARRAY[count(*)::numeric,
    sum(hashint4(id)::numeric)],
  format('%s, circles, %s, %s: each row once', name, mode, memory))
FROM texts, collations, (VALUES ('64kB'), ('4MB')) m (memory),
  (VALUES ('fmsort'), ('flash'), ('double_buffering'), ('multi_block'))
    o (mode),
  LATERAL wrong(name, 'circles', mode, memory) w
WHERE kind = 'circles' AND contradicts <> 'no' AND name NOT LIKE '%loose'
GROUP BY name, mode, memory, w.n, w.total;

-- ---- what relies on the order ------------------------------------------------

SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
SET LOCAL enable_hashagg = off;
SET LOCAL work_mem = '64kB';
SET LOCAL fmsort.mode = fmsort;
SELECT is(count(*), (SELECT count(*) FROM texts a JOIN texts b
    ON a.t = b.t COLLATE "C"
  WHERE a.kind = 'digits' AND b.kind = 'digits' AND a.id % 2 = 0 AND
    b.id % 3 = 0), 'a merge join finds all matches')
FROM texts a JOIN texts b ON a.t = b.t COLLATE "digits last"
WHERE a.kind = 'digits' AND b.kind = 'digits' AND a.id % 2 = 0 AND b.id % 3 = 0;
SELECT is(min(before), max(before), 'a bound keeps the first rows')
FROM (SELECT count(*) AS before FROM texts l WHERE kind = 'digits' AND
  l.t < (SELECT t FROM texts WHERE kind = 'digits'
    ORDER BY t COLLATE "digits last", id LIMIT 1 OFFSET 1777) COLLATE "digits last"
  UNION ALL
  SELECT count(*) FROM texts l WHERE kind = 'digits' AND
  l.t < (SELECT max(t COLLATE "digits last") FROM (SELECT t FROM texts
    WHERE kind = 'digits' ORDER BY t COLLATE "digits last", id LIMIT 1778) s)
      COLLATE "digits last") c;

SELECT * FROM finish();
ROLLBACK;
