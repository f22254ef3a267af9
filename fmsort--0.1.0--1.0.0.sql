/* fmsort--0.1.0--1.0.0.sql */

\echo Use "ALTER EXTENSION fmsort UPDATE" to load this file. \quit

/*
 * A profile of 0.1.0 does not say which device it is of, so it goes.  The
 * extension forgets the tables first, or its list of tables to dump would keep
 * them.
 */
ALTER EXTENSION fmsort DROP TABLE fmsort_device_rate;
ALTER EXTENSION fmsort DROP TABLE fmsort_device_profile;
DROP TABLE fmsort_device_rate, fmsort_device_profile;
DROP VIEW fmsort_stat, fmsort_progress;
DROP FUNCTION fmsort_stat();
DROP FUNCTION fmsort_progress();
DROP FUNCTION fmsort_last_sort();
DROP FUNCTION fmsort_compare(text, text[], int);
DROP FUNCTION fmsort_calibrate(name, double precision, int, boolean, boolean, text[], int[], int[]);
DROP FUNCTION fmsort_recommend(text, bigint, int, name, int, int, bigint);

/* ---- the last statement's sorts ---- */

CREATE FUNCTION fmsort_last_sort(
	OUT sort_number int,
	OUT sort_method text,
	OUT sort_space_bytes bigint,
	OUT sort_space_type text,
	OUT merge_mode text,
	OUT runs bigint,
	OUT merge_passes int,
	OUT blocks bigint,
	OUT block_size int,
	OUT assist_blocks int,
	OUT io_method text,
	OUT direct_io boolean,
	OUT compression double precision,
	OUT run_formation_time double precision,
	OUT input_time double precision,
	OUT block_order_time double precision,
	OUT merge_time double precision,
	OUT blocked_time double precision,
	OUT tuples bigint,
	OUT rows_refused bigint,
	OUT rows_skipped bigint,
	OUT blocks_skipped bigint,
	OUT duplicates_dropped bigint,
	OUT bytes_spilled bigint,
	OUT reads bigint,
	OUT read_batches bigint,
	OUT writes bigint,
	OUT bytes_read bigint,
	OUT bytes_written bigint,
	OUT work_mem_bytes bigint,
	OUT one_pass_work_mem_bytes bigint,
	OUT in_memory_work_mem_bytes bigint,
	OUT decision text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_last_sort'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;

COMMENT ON FUNCTION fmsort_last_sort() IS
'sorts of the last statement of this session that sorted';

CREATE FUNCTION fmsort_last_sort_clear()
RETURNS void
AS 'MODULE_PATHNAME', 'fmsort_last_sort_clear'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_last_sort_clear() IS
'forget the sorts that fmsort_last_sort() shows';

/* ---- comparisons ---- */

/*
 * Runs the query in each mode, "repeat" times, and returns a row for each run.
 * "path" is the query's search_path; the function has its own.
 *
 * With same_buffer, all modes get the same input buffer (Table 5 of Lee, Roh,
 * Park): the n blocks of s bytes with which the traditional mode merges n runs,
 * l assist blocks included.  Round 0 finds n; its buffer is one block.
 *
 *	traditional, single_block	n	  blocks of s
 *	double_buffering			2n	  blocks of s / 2
 *	fmsort, multi_block, flash	n + l blocks of n s / (n + l)
 */
CREATE FUNCTION fmsort_measure(
	query text,
	path text,
	modes text[],
	repeat int,
	same_buffer boolean,
	OUT place int,
	OUT mode text,
	OUT total_time double precision,
	OUT run_formation_time double precision,
	OUT merge_time double precision,
	OUT blocked_time double precision,
	OUT sort_method text,
	OUT runs bigint,
	OUT merge_passes int,
	OUT blocks bigint,
	OUT block_size int,
	OUT assist_blocks int,
	OUT input_buffer_bytes bigint,
	OUT temp_bytes_read bigint,
	OUT temp_bytes_written bigint)
RETURNS SETOF record
LANGUAGE plpgsql STRICT VOLATILE PARALLEL UNSAFE ROWS 10
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
	command CONSTANT text := 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) '
		|| query;
	known CONSTANT text[] := CASE WHEN same_buffer
		THEN '{traditional,single_block,double_buffering,fmsort,multi_block,flash}'
		ELSE '{postgres,fmsort}' END;
	count CONSTANT int := cardinality(modes);
	workers CONSTANT text := CASE WHEN same_buffer THEN '0'
		ELSE current_setting('max_parallel_workers_per_gather') END;
	base bigint;		-- fmsort.block_size, or 0
	share bigint;		-- of each run, in the merge's memory
	n bigint := 1;
	s bigint := 0;		-- 0: block size and assist blocks are automatic
	l int := 0;
	plan jsonb;
BEGIN
	IF count NOT BETWEEN 1 AND 16 THEN
		RAISE EXCEPTION 'number of modes must be from 1 to 16, not %', count
			USING ERRCODE = 'invalid_parameter_value';
	ELSIF repeat NOT BETWEEN 1 AND 1000 THEN
		RAISE EXCEPTION 'repeat must be from 1 to 1000, not %', repeat
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	FOREACH mode IN ARRAY modes LOOP
		IF mode IS NULL THEN
			RAISE EXCEPTION 'mode must not be null'
				USING ERRCODE = 'null_value_not_allowed';
		ELSIF mode <> ALL (known) THEN
			RAISE EXCEPTION 'unrecognized mode "%"', mode
				USING ERRCODE = 'invalid_parameter_value',
				HINT = format('Modes are %s.', array_to_string(known, ', '));
		END IF;
	END LOOP;
	modes := ARRAY(SELECT unnest(modes));

	-- this call loads the library, which defines the settings
	PERFORM @extschema@.fmsort_last_sort_clear();
	IF same_buffer THEN
		base := setting FROM pg_settings WHERE name = 'fmsort.block_size';
		s := CASE base WHEN 0 THEN 8192 ELSE base END;
		l := setting FROM pg_settings WHERE name = 'fmsort.assist_blocks';
		l := CASE l WHEN 0 THEN 32 ELSE l END;
	END IF;

	FOR round IN CASE WHEN same_buffer THEN 0 ELSE 1 END .. repeat LOOP
		FOR i IN 1 .. CASE round WHEN 0 THEN 1 ELSE count END LOOP
			-- each round begins with another mode
			place := (round + i - 2 + count) % count + 1;
			mode := CASE round WHEN 0 THEN 'traditional' ELSE modes[place] END;
			block_size := CASE
				WHEN s = 0 THEN 0
				ELSE greatest(512, n * s / CASE
					WHEN mode IN ('traditional', 'single_block') THEN n
					WHEN mode = 'double_buffering' THEN 2 * n
					ELSE n + l END / 512 * 512) END;

			-- run the query and undo all that a rollback undoes
			BEGIN
				PERFORM @extschema@.fmsort_last_sort_clear(),
					set_config('transaction_read_only', 'on', true),
					set_config('max_parallel_workers_per_gather', workers, true),
					set_config('fmsort.mode', CASE mode
						WHEN 'postgres' THEN 'off' ELSE mode END, true),
					set_config('fmsort.min_rows', '0', true),
					set_config('fmsort.block_size', block_size::text, true),
					set_config('fmsort.assist_blocks', l::text, true),
					set_config('search_path', path, true);
				-- a loop, since its cursor refuses several statements
				FOR plan IN EXECUTE command LOOP
				END LOOP;
				RAISE EXCEPTION 'roll back' USING ERRCODE = 'FMS00';
			EXCEPTION
				WHEN SQLSTATE 'FMS00' THEN NULL;
			END;

			total_time := (plan #> '{0,Planning Time}')::float8 +
				(plan #> '{0,Execution Time}')::float8;
			temp_bytes_read := (plan #> '{0,Plan,Temp Read Blocks}')::bigint *
				current_setting('block_size')::bigint;
			temp_bytes_written :=
				(plan #> '{0,Plan,Temp Written Blocks}')::bigint *
				current_setting('block_size')::bigint;
			SELECT sum(a.run_formation_time - a.input_time), sum(m.merge_time),
				sum(m.blocked_time), sum(m.runs), max(m.merge_passes),
				sum(m.blocks), max(m.block_size), max(m.assist_blocks),
				max(m.block_size * CASE mode
					WHEN 'double_buffering' THEN 2 * m.runs
					ELSE m.runs + m.assist_blocks END)
			INTO run_formation_time, merge_time, blocked_time, runs,
				merge_passes, blocks, block_size, assist_blocks,
				input_buffer_bytes
			FROM @extschema@.fmsort_last_sort() a LEFT JOIN LATERAL
				(SELECT a.* WHERE a.sort_method = 'external merge') m ON true;

			IF round > 0 THEN
				-- each sort estimates its times: the sum may be too large
				IF run_formation_time > total_time THEN
					run_formation_time := total_time;
				END IF;
				IF merge_time > total_time - run_formation_time THEN
					merge_time := total_time - run_formation_time;
				END IF;
				IF blocked_time > merge_time THEN
					blocked_time := merge_time;
				END IF;
				-- last, since it may sort
				sort_method := string_agg(DISTINCT method #>> '{}', ', ')
					FROM jsonb_path_query(plan, 'strict $.**."Sort Method"') method;
				RETURN NEXT;
			ELSIF runs IS NULL THEN
				RAISE NOTICE 'no sort of the query spills: the modes make no difference';
				s := 0;
				l := 0;
			ELSE
				n := max(a.runs) FROM @extschema@.fmsort_last_sort() a;
				IF base = 0 THEN
					-- a merge uses a quarter of work_mem for other things
					share := setting::bigint * 1024 / 4 * 3 / n
						FROM pg_settings WHERE name = 'work_mem';
					s := 262144;
					WHILE s > 1024 AND s > share LOOP
						s := s / 2;
					END LOOP;
				END IF;
			END IF;
		END LOOP;
	END LOOP;
END
$function$;

COMMENT ON FUNCTION fmsort_measure(text, text, text[], int, boolean) IS
'run a query repeatedly in several modes';

CREATE FUNCTION fmsort_compare(
	query text,
	repeat int DEFAULT 3,
	OUT mode text,
	OUT total_time double precision,
	OUT sort_method text,
	OUT temp_bytes_read bigint,
	OUT temp_bytes_written bigint,
	OUT speedup double precision)
RETURNS SETOF record
LANGUAGE sql STRICT VOLATILE PARALLEL UNSAFE ROWS 2
BEGIN ATOMIC
	SELECT m.mode,
		pg_catalog.round(m.total_time::numeric, 1),
		m.sort_method, m.temp_bytes_read, m.temp_bytes_written,
		pg_catalog.round((pg_catalog.first_value(m.total_time)
			OVER (ORDER BY m.place) OPERATOR(pg_catalog./) m.total_time)::numeric, 2)
	FROM (SELECT r.*, pg_catalog.row_number()
			OVER (PARTITION BY r.place ORDER BY r.total_time) AS rank
		FROM @extschema@.fmsort_measure(query,
			pg_catalog.current_setting('search_path'), '{postgres,fmsort}',
			repeat, false) r) m
	WHERE m.rank OPERATOR(pg_catalog.=)
		((repeat OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog./) 2)
	ORDER BY m.place;
END;

COMMENT ON FUNCTION fmsort_compare(text, int) IS
'run a SELECT with PostgreSQL''s sort and with fmsort, and show the medians';

CREATE FUNCTION fmsort_compare_merges(
	query text,
	modes text[] DEFAULT '{traditional,double_buffering,fmsort}',
	repeat int DEFAULT 1,
	OUT mode text,
	OUT total_time double precision,
	OUT run_formation_time double precision,
	OUT merge_time double precision,
	OUT blocked_time double precision,
	OUT runs bigint,
	OUT merge_passes int,
	OUT blocks bigint,
	OUT block_size int,
	OUT assist_blocks int,
	OUT input_buffer_bytes bigint,
	OUT speedup double precision)
RETURNS SETOF record
LANGUAGE sql STRICT VOLATILE PARALLEL UNSAFE ROWS 3
BEGIN ATOMIC
	SELECT m.mode,
		pg_catalog.round(m.total_time::numeric, 1),
		pg_catalog.round(m.run_formation_time::numeric, 1),
		pg_catalog.round(m.merge_time::numeric, 1),
		pg_catalog.round(m.blocked_time::numeric, 1),
		m.runs, m.merge_passes, m.blocks, m.block_size, m.assist_blocks,
		m.input_buffer_bytes,
		pg_catalog.round((pg_catalog.first_value(m.total_time)
			OVER (ORDER BY m.place) OPERATOR(pg_catalog./) m.total_time)::numeric, 2)
	FROM (SELECT r.*, pg_catalog.row_number()
			OVER (PARTITION BY r.place ORDER BY r.total_time) AS rank
		FROM @extschema@.fmsort_measure(query,
			pg_catalog.current_setting('search_path'), modes, repeat, true) r) m
	WHERE m.rank OPERATOR(pg_catalog.=)
		((repeat OPERATOR(pg_catalog.+) 1) OPERATOR(pg_catalog./) 2)
	ORDER BY m.place;
END;

COMMENT ON FUNCTION fmsort_compare_merges(text, text[], int) IS
'run a SELECT in merge modes with the same input buffer, and show the medians';

/* ---- statistics and progress ---- */

CREATE FUNCTION fmsort_stat(
	OUT datid oid,
	OUT sorts bigint,
	OUT sorts_in_memory bigint,
	OUT sorts_top_n bigint,
	OUT sorts_external bigint,
	OUT tuples bigint,
	OUT bytes_spilled bigint,
	OUT bytes_read bigint,
	OUT bytes_written bigint,
	OUT runs bigint,
	OUT merge_passes bigint,
	OUT sorts_multi_pass bigint,
	OUT blocks bigint,
	OUT reads bigint,
	OUT read_batches bigint,
	OUT writes bigint,
	OUT run_formation_time double precision,
	OUT input_time double precision,
	OUT block_order_time double precision,
	OUT merge_time double precision,
	OUT blocked_time double precision,
	OUT spills_avoided bigint,
	OUT bytes_kept bigint,
	OUT rows_refused bigint,
	OUT rows_skipped bigint,
	OUT blocks_skipped bigint,
	OUT duplicates_dropped bigint,
	OUT io_uring_refused bigint,
	OUT direct_io_refused bigint,
	OUT block_size_lowered bigint,
	OUT left_to_server bigint,
	OUT left_to_extensions bigint,
	OUT fallbacks bigint,
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_stat'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION fmsort_stat() IS
'the function behind the view fmsort_stat';

CREATE VIEW fmsort_stat AS
SELECT s.datid, d.datname, s.sorts, s.sorts_in_memory, s.sorts_top_n,
	s.sorts_external, s.tuples, s.bytes_spilled, s.bytes_read,
	s.bytes_written, s.runs, s.merge_passes, s.sorts_multi_pass, s.blocks,
	s.reads, s.read_batches, s.writes, s.run_formation_time, s.input_time,
	s.block_order_time, s.merge_time, s.blocked_time, s.spills_avoided,
	s.bytes_kept, s.rows_refused, s.rows_skipped, s.blocks_skipped,
	s.duplicates_dropped, s.io_uring_refused, s.direct_io_refused,
	s.block_size_lowered, s.left_to_server, s.left_to_extensions,
	s.fallbacks, s.stats_since
FROM @extschema@.fmsort_stat() s
	LEFT JOIN pg_catalog.pg_database d
		ON d.oid OPERATOR(pg_catalog.=) s.datid;

COMMENT ON VIEW fmsort_stat IS
'counters of the sorts in each database';

GRANT SELECT ON fmsort_stat TO PUBLIC;

COMMENT ON FUNCTION fmsort_stat_reset() IS
'set the counters of fmsort_stat to zero in all databases';

CREATE FUNCTION fmsort_progress(
	OUT pid int,
	OUT leader_pid int,
	OUT datid oid,
	OUT usesysid oid,
	OUT phase text,
	OUT percent double precision,
	OUT start_time timestamptz,
	OUT estimated_end_time timestamptz,
	OUT tuples_done bigint,
	OUT tuples_total bigint,
	OUT runs bigint,
	OUT runs_left int,
	OUT blocks_done bigint,
	OUT blocks_total bigint,
	OUT bytes_read bigint,
	OUT bytes_written bigint,
	OUT blocked_time double precision,
	OUT work_mem_bytes bigint,
	OUT merge_mode text,
	OUT block_size int,
	OUT assist_blocks int,
	OUT io_method text,
	OUT direct_io boolean,
	OUT bound bigint,
	OUT presorted boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_progress'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 10;

COMMENT ON FUNCTION fmsort_progress() IS
'the function behind the view fmsort_progress';

CREATE VIEW fmsort_progress AS
SELECT p.pid, p.leader_pid, p.datid, d.datname,
	pg_catalog.pg_get_userbyid(p.usesysid) AS usename, p.phase, p.percent,
	p.start_time, p.estimated_end_time, p.tuples_done, p.tuples_total, p.runs,
	p.runs_left, p.blocks_done, p.blocks_total, p.bytes_read,
	p.bytes_written, p.blocked_time, p.work_mem_bytes, p.merge_mode,
	p.block_size, p.assist_blocks, p.io_method, p.direct_io, p.bound,
	p.presorted
FROM @extschema@.fmsort_progress() p
	LEFT JOIN pg_catalog.pg_database d
		ON d.oid OPERATOR(pg_catalog.=) p.datid;

COMMENT ON VIEW fmsort_progress IS
'sorts that are running, with their progress';

GRANT SELECT ON fmsort_progress TO PUBLIC;

/* ---- devices; what is measured is dumped with the database ---- */

CREATE TABLE fmsort_device_profile (
	tablespace oid PRIMARY KEY,
	device text,
	host text,
	measured_at timestamptz NOT NULL,
	kernel text NOT NULL,
	server_version text NOT NULL,
	io_method text NOT NULL,
	seconds double precision NOT NULL,
	file_bytes bigint NOT NULL);

COMMENT ON TABLE fmsort_device_profile IS
'tablespaces that fmsort_calibrate() measured';

CREATE TABLE fmsort_device_rate (
	tablespace oid NOT NULL REFERENCES fmsort_device_profile
		ON DELETE CASCADE ON UPDATE CASCADE,
	measurement text NOT NULL,
	block_size int NOT NULL,
	queue_depth int NOT NULL,
	bytes_per_second bigint NOT NULL,
	PRIMARY KEY (tablespace, measurement, block_size, queue_depth));

COMMENT ON TABLE fmsort_device_rate IS
'rates that fmsort_calibrate() measured';

SELECT pg_catalog.pg_extension_config_dump('fmsort_device_profile', '');
SELECT pg_catalog.pg_extension_config_dump('fmsort_device_rate', '');

GRANT SELECT ON fmsort_device_profile, fmsort_device_rate TO PUBLIC;

COMMENT ON FUNCTION fmsort_profile_changed() IS
'trigger function that tells sessions to read profiles again';

CREATE TRIGGER fmsort_profile_changed
AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON fmsort_device_profile
FOR EACH STATEMENT EXECUTE FUNCTION fmsort_profile_changed();

CREATE TRIGGER fmsort_profile_changed
AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON fmsort_device_rate
FOR EACH STATEMENT EXECUTE FUNCTION fmsort_profile_changed();

CREATE FUNCTION fmsort_calibrate(
	tablespace name DEFAULT NULL,
	seconds double precision DEFAULT NULL,
	file_bytes bigint DEFAULT NULL,
	keep boolean DEFAULT true,
	direct_io boolean DEFAULT true,
	OUT measurement text,
	OUT block_size int,
	OUT queue_depth int,
	OUT bytes_per_second bigint,
	OUT verdict text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_calibrate'
LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 10;

COMMENT ON FUNCTION fmsort_calibrate(name, double precision, bigint, boolean, boolean) IS
'measure the device under a tablespace and keep its profile';

CREATE FUNCTION fmsort_calibrate_reset(tablespace name DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME', 'fmsort_calibrate_reset'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION fmsort_calibrate_reset(name) IS
'forget the profile of a tablespace, or all profiles';

/*
 * Measuring writes to a device as fast as it can.  Who may write the server's
 * files anyhow can do worse.
 */
REVOKE ALL ON FUNCTION fmsort_calibrate(name, double precision, bigint, boolean, boolean),
	fmsort_calibrate_reset(name) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fmsort_calibrate(name, double precision, bigint, boolean, boolean),
	fmsort_calibrate_reset(name) TO pg_write_server_files;

CREATE FUNCTION fmsort_recommend(
	work_mem text,
	input_bytes bigint,
	tuple_bytes int DEFAULT 100,
	OUT runs bigint,
	OUT merge_passes int,
	OUT block_size int,
	OUT assist_blocks int,
	OUT one_pass_work_mem_bytes bigint,
	OUT in_memory_work_mem_bytes bigint)
AS 'MODULE_PATHNAME', 'fmsort_recommend'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_recommend(text, bigint, int) IS
'what the automatic settings choose for an input of that size';
