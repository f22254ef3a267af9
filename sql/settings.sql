-- What the settings take, what they refuse, and how they say so.
\x on
SELECT name, setting, unit, vartype, context, min_val, max_val, enumvals,
  boot_val
FROM pg_settings WHERE name LIKE 'fmsort.%' AND name !~ '\.debug_'
ORDER BY name COLLATE "C";
\x off

SET fmsort.mode = 'fmsort';
SET fmsort.mode = 'double_buffering';
SET fmsort.mode = 'Traditional';
SHOW fmsort.mode;
SET fmsort.mode = 'quick';
SET fmsort.mode = off;
SHOW fmsort.mode;
RESET fmsort.mode;

SET fmsort.block_size = 512;
SET fmsort.block_size = '4MB';
SHOW fmsort.block_size;
SET fmsort.block_size = '64kB';
SHOW fmsort.block_size;
SET fmsort.block_size = 1000;
SET fmsort.block_size = 511;
SET fmsort.block_size = 1;
SET fmsort.block_size = 4194303;
SET fmsort.block_size = 'large';
RESET fmsort.block_size;

-- out of range: newer servers give the range with units
CREATE FUNCTION refused(size text) RETURNS text LANGUAGE plpgsql AS
$$
BEGIN
  PERFORM set_config('fmsort.block_size', size, false);
  RETURN 'taken';
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN regexp_replace(sqlerrm, '\((\d+) B \.\. (\d+) B\)$', '(\1 .. \2)');
END
$$;
SELECT refused('-512');
SELECT refused('4097kB');
SELECT refused('8MB');
DROP FUNCTION refused(text);

SET fmsort.assist_blocks = 1;
SET fmsort.assist_blocks = 1024;
SET fmsort.assist_blocks = 1025;
SET fmsort.assist_blocks = -1;
SET fmsort.assist_blocks = 'many';
SHOW fmsort.assist_blocks;
RESET fmsort.assist_blocks;

SET fmsort.io_method = 'sync';
SET fmsort.io_method = 'posix_aio';
RESET fmsort.io_method;

SET fmsort.compression = on;
SHOW fmsort.compression;
SET fmsort.compression = 'lz4';
RESET fmsort.compression;

SET fmsort.direct_io = on;
SET fmsort.direct_io = no;
SHOW fmsort.direct_io;
SET fmsort.direct_io = 'sometimes';
RESET fmsort.direct_io;

-- a misspelt name is an error, not a placeholder
SET fmsort.blocksize = 4096;
SET fmsort.xyz = 1;
SHOW fmsort.xyz;

-- who may set them: anybody
CREATE ROLE regress_fmsort_user;
SET ROLE regress_fmsort_user;
SET fmsort.mode = 'traditional';
SET fmsort.block_size = 4096;
SHOW fmsort.mode;
SET fmsort.mode = 'flash';
-- what is for developers is a superuser's
SET fmsort.debug_materialize = on;
SHOW fmsort.debug_materialize;
RESET ROLE;
DROP ROLE regress_fmsort_user;
RESET ALL;

-- A transaction that aborts, SET LOCAL and functions put them back.
BEGIN;
SET fmsort.mode = 'traditional';
ROLLBACK;
SHOW fmsort.mode;
CREATE FUNCTION mode_inside() RETURNS text LANGUAGE sql
SET fmsort.mode = 'double_buffering' AS
$$ SELECT current_setting('fmsort.mode') $$;
SELECT mode_inside(), current_setting('fmsort.mode');
DROP FUNCTION mode_inside();

-- Cached plans follow fmsort.mode.
CREATE TABLE s AS SELECT i AS id, i % 3 AS k FROM generate_series(1, 12) i;
ANALYZE s;
CREATE TABLE w AS SELECT i % 3 AS k, repeat('x', 100) AS pay
FROM generate_series(1, 3000) i;
ANALYZE w;
SET plan_cache_mode = force_generic_plan;
SET work_mem = '64kB';
PREPARE q AS
SELECT count(pay) FROM (SELECT pay FROM w WHERE k > $1 ORDER BY k OFFSET 0) o;
EXPLAIN (COSTS OFF) EXECUTE q(0);
EXECUTE q(0);
SELECT sort_number, merge_mode, tuples FROM fmsort_last_sort();
SET fmsort.mode = off;
EXPLAIN (COSTS OFF) EXECUTE q(0);
SET fmsort.mode = 'traditional';
EXPLAIN (COSTS OFF) EXECUTE q(0);
EXECUTE q(0);
SELECT sort_number, merge_mode, tuples FROM fmsort_last_sort();
RESET fmsort.mode;
EXPLAIN (COSTS OFF) EXECUTE q(0);
DEALLOCATE q;
DROP TABLE w;
RESET plan_cache_mode;
RESET work_mem;

-- A cursor goes on as it began.
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT k, id FROM s ORDER BY k;
FETCH 2 FROM c;
SET LOCAL fmsort.mode = off;
SET LOCAL fmsort.block_size = 512;
FETCH 3 FROM c;
COMMIT;

DROP TABLE s;
