/* fmsort--0.2.0.sql */

\echo Use "CREATE EXTENSION fmsort" to load this file. \quit

CREATE FUNCTION fmsort_last_sort(
	OUT sort int,
	OUT sort_method text,
	OUT sort_space_used_kb bigint,
	OUT sort_space_type text,
	OUT merge_mode text,
	OUT runs bigint,
	OUT merge_passes int,
	OUT blocks bigint,
	OUT block_size int,
	OUT assist_blocks int,
	OUT io_method text,
	OUT direct_io boolean,
	OUT run_formation_ms double precision,
	OUT input_ms double precision,
	OUT block_order_ms double precision,
	OUT merge_ms double precision,
	OUT blocked_ms double precision,
	OUT tuples bigint,
	OUT bytes_spilled bigint,
	OUT reads bigint,
	OUT read_batches bigint,
	OUT writes bigint,
	OUT bytes_read bigint,
	OUT bytes_written bigint,
	OUT compression double precision,
	OUT work_mem_kb bigint,
	OUT one_pass_work_mem_kb bigint,
	OUT in_memory_work_mem_kb bigint,
	OUT why text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_last_sort'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_last_sort() IS
'One row for each sort that fmsort ran in the last statement of this session that sorted (its last 64 sorts): method, space (kB), merge mode, runs formed, merge passes, blocks written by run formation and their size (bytes), assist blocks, I/O, times (milliseconds; input and merge times are estimated from samples), tuples, bytes and I/O requests, how many times smaller compression made what was written (1: nothing was compressed); work_mem (kB), the least work_mem with which it would have taken one pass or stayed in memory, and why it did what it did. No row if nothing was sorted. Raises no errors.';

CREATE FUNCTION fmsort_compare(
	query text,
	modes text[] DEFAULT
		'{stock,automatic,traditional,double_buffering,fmsort}',
	repeat int DEFAULT 1,
	OUT mode text,
	OUT total_ms double precision,
	OUT run_formation_ms double precision,
	OUT merge_ms double precision,
	OUT blocked_ms double precision,
	OUT runs bigint,
	OUT merge_passes int,
	OUT blocks bigint,
	OUT block_size int,
	OUT assist_blocks int,
	OUT input_buffer_kb bigint,
	OUT mb_read double precision,
	OUT mb_written double precision,
	OUT speedup double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_compare'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION fmsort_compare(text, text[], int) IS
'Runs a SELECT under several ways of sorting and returns a row for each: times in milliseconds (medians of the repetitions), runs, merge passes, blocks and their size (bytes), the input buffer (kB), MB read from and written to temporary files, and how many times as fast as the first mode. The modes traditional, double_buffering, fmsort, single_block, multi_block and flash get the same input buffer; stock is PostgreSQL''s sort, automatic is fmsort with nothing set. Errors: the query is not a single SELECT, or changes something; an unknown mode.';

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
	OUT run_formation_ms double precision,
	OUT input_ms double precision,
	OUT block_order_ms double precision,
	OUT merge_ms double precision,
	OUT blocked_ms double precision,
	OUT spills_avoided bigint,
	OUT bytes_kept bigint,
	OUT io_uring_refused bigint,
	OUT direct_io_refused bigint,
	OUT block_size_lowered bigint,
	OUT left_to_server bigint,
	OUT left_to_extensions bigint,
	OUT fallbacks bigint,
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_stat'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_stat() IS
'The function behind the view fmsort_stat.';

CREATE VIEW fmsort_stat AS
SELECT s.datid, d.datname, s.sorts, s.sorts_in_memory, s.sorts_top_n,
	s.sorts_external, s.tuples, s.bytes_spilled, s.bytes_read,
	s.bytes_written, s.runs, s.merge_passes, s.sorts_multi_pass, s.blocks,
	s.reads, s.read_batches, s.writes, s.run_formation_ms, s.input_ms,
	s.block_order_ms, s.merge_ms, s.blocked_ms, s.spills_avoided,
	s.bytes_kept, s.io_uring_refused, s.direct_io_refused,
	s.block_size_lowered, s.left_to_server, s.left_to_extensions,
	s.fallbacks, s.stats_since
FROM @extschema@.fmsort_stat() s
	LEFT JOIN pg_catalog.pg_database d
		ON d.oid OPERATOR(pg_catalog.=) s.datid;

COMMENT ON VIEW fmsort_stat IS
'What fmsort has done since the server started or fmsort_stat_reset(): one row a database. Needs fmsort in shared_preload_libraries; an error says so otherwise.';

GRANT SELECT ON fmsort_stat TO PUBLIC;

CREATE FUNCTION fmsort_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'fmsort_stat_reset'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_stat_reset() IS
'Sets the counters of fmsort_stat to zero, in all databases. Needs fmsort in shared_preload_libraries; an error says so otherwise.';

REVOKE ALL ON FUNCTION fmsort_stat_reset() FROM PUBLIC;

CREATE FUNCTION fmsort_progress(
	OUT pid int,
	OUT leader_pid int,
	OUT datid oid,
	OUT usesysid oid,
	OUT phase text,
	OUT percent double precision,
	OUT started timestamptz,
	OUT estimated_end timestamptz,
	OUT tuples bigint,
	OUT tuples_expected bigint,
	OUT runs bigint,
	OUT runs_left int,
	OUT blocks_done bigint,
	OUT blocks_total bigint,
	OUT bytes_read bigint,
	OUT bytes_written bigint,
	OUT blocked_ms double precision,
	OUT work_mem_kb bigint,
	OUT merge_mode text,
	OUT block_size int,
	OUT assist_blocks int,
	OUT io_method text,
	OUT direct_io boolean,
	OUT bound bigint,
	OUT presorted boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_progress'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_progress() IS
'The function behind the view fmsort_progress.';

CREATE VIEW fmsort_progress AS
SELECT p.pid, p.leader_pid, p.datid, d.datname,
	pg_catalog.pg_get_userbyid(p.usesysid) AS usename, p.phase, p.percent,
	p.started, p.estimated_end, p.tuples, p.tuples_expected, p.runs,
	p.runs_left, p.blocks_done, p.blocks_total, p.bytes_read,
	p.bytes_written, p.blocked_ms, p.work_mem_kb, p.merge_mode,
	p.block_size, p.assist_blocks, p.io_method, p.direct_io, p.bound,
	p.presorted
FROM @extschema@.fmsort_progress() p
	LEFT JOIN pg_catalog.pg_database d
		ON d.oid OPERATOR(pg_catalog.=) p.datid;

COMMENT ON VIEW fmsort_progress IS
'One row for each sort that fmsort is running: phase, percentage and estimated end, tuples, runs, blocks, bytes, time blocked (milliseconds) and the settings in force. Rows of other users need pg_read_all_stats. Needs fmsort in shared_preload_libraries; an error says so otherwise.';

GRANT SELECT ON fmsort_progress TO PUBLIC;

/* What is measured of the devices; dumped with the database. */

CREATE TABLE fmsort_device_profile (
	tablespace oid PRIMARY KEY,
	location text,
	device text,
	host text,
	measured_at timestamptz NOT NULL,
	kernel text NOT NULL,
	server_version text NOT NULL,
	io_method text NOT NULL,
	seconds double precision NOT NULL,
	file_bytes bigint NOT NULL);

COMMENT ON TABLE fmsort_device_profile IS
'One row for each tablespace that fmsort_calibrate() measured: its location, the file system (device) and the host, without which the profile is ignored (null: any); when it was measured, on which kernel and server, with which I/O, for how many seconds, with how large a file.';

CREATE TABLE fmsort_device_rate (
	tablespace oid NOT NULL REFERENCES fmsort_device_profile
		ON DELETE CASCADE ON UPDATE CASCADE,
	pattern text NOT NULL,
	block_bytes int NOT NULL,
	queue_depth int NOT NULL,
	mb_per_s double precision NOT NULL,
	PRIMARY KEY (tablespace, pattern, block_bytes, queue_depth));

COMMENT ON TABLE fmsort_device_rate IS
'What fmsort_calibrate() measured of a tablespace: MB (10^6 bytes) a second.';

SELECT pg_catalog.pg_extension_config_dump('fmsort_device_profile', '');
SELECT pg_catalog.pg_extension_config_dump('fmsort_device_rate', '');

GRANT SELECT ON fmsort_device_profile, fmsort_device_rate TO PUBLIC;

CREATE FUNCTION fmsort_profile_changed()
RETURNS trigger
AS 'MODULE_PATHNAME', 'fmsort_profile_changed'
LANGUAGE C;

COMMENT ON FUNCTION fmsort_profile_changed() IS
'Trigger of fmsort''s own tables: tells all sessions to read the profile again.';

CREATE TRIGGER fmsort_profile_changed
AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON fmsort_device_profile
FOR EACH STATEMENT EXECUTE FUNCTION fmsort_profile_changed();

CREATE TRIGGER fmsort_profile_changed
AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON fmsort_device_rate
FOR EACH STATEMENT EXECUTE FUNCTION fmsort_profile_changed();

CREATE FUNCTION fmsort_calibrate(
	tablespace name DEFAULT NULL,
	seconds double precision DEFAULT 30,
	size_mb int DEFAULT 512,
	keep boolean DEFAULT true,
	direct_io boolean DEFAULT true,
	patterns text[] DEFAULT NULL,
	block_sizes int[] DEFAULT NULL,
	queue_depths int[] DEFAULT NULL,
	OUT pattern text,
	OUT block_bytes int,
	OUT queue_depth int,
	OUT mb_per_s double precision,
	OUT iops double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_calibrate'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION fmsort_calibrate(name, double precision, int, boolean, boolean, text[], int[], int[]) IS
'Measures the device under a tablespace (null: the one that temporary files go to) with a temporary file of size_mb MB (2^20 bytes) in that many seconds, and keeps a complete direct measurement as its profile. One row for each pattern, block size (bytes) and queue depth: MB (10^6 bytes) and requests a second. Loads the device. Errors: no such tablespace, no right to create files in it, no direct I/O there, too few seconds, disk full, temp_file_limit exceeded.';

/*
 * It writes to a device as fast as it can.  Who may write the server's files
 * anyhow can do worse.
 */
REVOKE ALL ON FUNCTION fmsort_calibrate(name, double precision, int, boolean, boolean, text[], int[], int[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fmsort_calibrate(name, double precision, int, boolean, boolean, text[], int[], int[]) TO pg_write_server_files;

CREATE FUNCTION fmsort_recommend(
	work_mem text,
	input_bytes bigint,
	tuple_bytes int DEFAULT 100,
	OUT runs bigint,
	OUT merge_passes int,
	OUT chosen_block_size int,
	OUT chosen_assist_blocks int,
	OUT one_pass_work_mem_kb bigint,
	OUT in_memory_work_mem_kb bigint)
AS 'MODULE_PATHNAME', 'fmsort_recommend'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_recommend(text, bigint, int) IS
'What the automatic settings do under that work_mem with an input of that many bytes in rows of that size: runs and merge passes (0: it is sorted in memory), block size (bytes), assist blocks (null: none are needed), and the least work_mem (kB) for one pass and for a sort in memory (null: no work_mem is as large). Errors: an argument that is out of range.';

/*
 * The library is loaded in this session now, and in no other one unless a
 * preload setting says so.
 *
 * Every name is qualified: this runs as a superuser, in a schema in which
 * others may have made functions and operators that fit better.
 */
DO $do$
DECLARE
	everywhere pg_catalog.text := pg_catalog.concat_ws(',',
		pg_catalog.current_setting('shared_preload_libraries'),
		pg_catalog.current_setting('session_preload_libraries'),
		pg_catalog.current_setting('local_preload_libraries'));
	before pg_catalog.text :=
		pg_catalog.current_setting('session_preload_libraries');
	messages pg_catalog.text :=
		pg_catalog.current_setting('client_min_messages');
	name pg_catalog.text;
	list pg_catalog.text;
BEGIN
	IF NOT everywhere OPERATOR(pg_catalog.~)
		'(^|[,"/[:space:]])fmsort([",.[:space:]]|$)' THEN
		-- CREATE EXTENSION silences the notices of its scripts
		IF messages OPERATOR(pg_catalog.=) 'warning' THEN
			PERFORM pg_catalog.set_config('client_min_messages', 'notice',
				true);
		END IF;
		FOREACH name IN ARRAY pg_catalog.string_to_array(
			before OPERATOR(pg_catalog.||) ',fmsort', ',') LOOP
			name := pg_catalog.btrim(name, ' "');
			IF name OPERATOR(pg_catalog.<>) '' THEN
				list := pg_catalog.concat_ws(', ', list,
					pg_catalog.quote_literal(name));
			END IF;
		END LOOP;
		RAISE NOTICE 'fmsort runs the sorts of this session only'
			USING HINT = pg_catalog.format(
				'To have it in every session of this database: ALTER DATABASE %I SET session_preload_libraries = %s;',
				pg_catalog.current_database(), list);
		PERFORM pg_catalog.set_config('client_min_messages', messages, true);
	END IF;
END
$do$;
