-- Who may set and call what.
--
-- Seen to fail with: fmsort_last_sort() as SECURITY DEFINER; a function
-- fmsort_calibrate() that is not revoked from PUBLIC; one in SQL that uses its
-- caller's search_path.
\ir begin.psql

SELECT no_plan();

CREATE ROLE fmsort_plain;
CREATE TABLE s AS SELECT (i * 7919) % 10007 AS k, md5(i::text) AS pay
FROM generate_series(1, 20000) i;
GRANT SELECT ON s TO fmsort_plain;
CREATE SEQUENCE fmsort_q;
GRANT ALL ON SEQUENCE fmsort_q TO fmsort_plain;

CREATE TEMP VIEW ours AS
SELECT p.* FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
  AND d.refclassid = 'pg_extension'::regclass
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fmsort');

-- ---- the extension's own objects ---------------------------------------------

SELECT ok(NOT superuser_only IS NULL AND superuser_only,
  'only a superuser may create the extension')
FROM (SELECT superuser AND NOT trusted AS superuser_only
  FROM pg_available_extension_versions WHERE name = 'fmsort' AND installed) v;
SELECT is((SELECT count(*) FROM ours WHERE prosecdef), 0::bigint,
  'no function runs with other rights than its caller''s');
SELECT is((SELECT string_agg(proname, ', ' ORDER BY proname) FROM ours
  WHERE prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
    AND prosqlbody IS NULL
    AND NOT coalesce(array_to_string(proconfig, ' ') ~
      'search_path=(pg_catalog, pg_temp|"?"?$)', false)), NULL,
  'functions not in C have a search_path of their own');

-- Those that read, write or change what is not the caller's own.
SELECT is((SELECT string_agg(proname, ', ' ORDER BY proname) FROM ours
  WHERE proname ~ 'calibrate|reset|inject|debug'
    AND has_function_privilege('fmsort_plain', oid, 'EXECUTE')), NULL,
  'what does device I/O or resets counters is revoked from PUBLIC');
SELECT ok(has_function_privilege('fmsort_plain', 'fmsort_last_sort()',
  'EXECUTE'), 'fmsort_last_sort() is for everybody');
SELECT is((SELECT string_agg(name, ', ' ORDER BY name) FROM pg_settings
  WHERE name LIKE 'fmsort.%' AND name !~ '\.debug_' AND context <> 'user'),
  'fmsort.log_min_duration', 'the settings are for everybody, but what is logged');
SELECT is((SELECT count(*) FROM pg_settings
  WHERE name LIKE 'fmsort.debug%' AND context = 'user'), 0::bigint,
  'those for developers are not');

-- ---- as a role without any rights ----------------------------------------------

SET ROLE fmsort_plain;

SELECT lives_ok($$
  SET fmsort.mode = traditional; SET fmsort.block_size = 4096;
  SET fmsort.assist_blocks = 3; SET fmsort.io_method = sync;
  SET fmsort.direct_io = off; SET fmsort.checksums = on;
  RESET fmsort.mode; RESET fmsort.block_size; RESET fmsort.assist_blocks;
  RESET fmsort.io_method; RESET fmsort.direct_io; RESET fmsort.checksums $$,
  'a plain role sets every setting');
SET work_mem = '64kB';
SELECT is((SELECT count(pay) FROM (SELECT * FROM s ORDER BY k OFFSET 0) x),
  20000::bigint, 'a plain role sorts on disk');
SELECT is((SELECT tuples FROM fmsort_last_sort()), 20000::bigint,
  'and asks what its session did');
SELECT throws_ok('SET temp_file_limit = -1', '42501', NULL,
  'but not what the administrator limits');
SELECT throws_ok('SET fmsort.log_min_duration = 0', '42501', NULL,
  'or logs');
SELECT throws_ok('SELECT fmsort_stat_reset()', '42501', NULL,
  'or counts for all');
SELECT throws_ok(
  $$ SELECT * FROM fmsort_compare('SELECT setval(''fmsort_q'', 1)') $$,
  '25006', NULL, 'fmsort_compare() runs nothing that writes');
SELECT throws_ok('DROP EXTENSION fmsort', '42501', NULL,
  'and does not drop the extension');
SELECT throws_ok($$ LOAD 'fmsort' $$, '42501', NULL, 'or load a library');
SELECT throws_ok('SELECT k FROM s ORDER BY pay FOR UPDATE', '42501', NULL,
  'the node checks rights as the stock sort does');

RESET ROLE;
SELECT * FROM finish();
