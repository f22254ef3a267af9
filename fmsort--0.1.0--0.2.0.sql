/* fmsort--0.1.0--0.2.0.sql */

\echo Use "ALTER EXTENSION fmsort UPDATE" to load this file. \quit

/*
 * A profile of 0.1.0 does not say which device it is of, so it goes.  The
 * extension forgets the tables first, or its list of tables to dump would keep
 * them.
 */
ALTER EXTENSION fmsort DROP TABLE fmsort_device_rate;
ALTER EXTENSION fmsort DROP TABLE fmsort_device_profile;
DROP TABLE fmsort_device_rate, fmsort_device_profile;
DROP FUNCTION fmsort_calibrate(name, double precision, int, boolean, boolean, text[], int[], int[]);
DROP FUNCTION fmsort_recommend(text, bigint, int, name, int, int, bigint);

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

DROP VIEW fmsort_stat;
DROP FUNCTION fmsort_stat();

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
