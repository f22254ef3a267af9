/* fmsort--0.1.0.sql */

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
	OUT bytes_written bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fmsort_last_sort'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION fmsort_last_sort() IS
'One row for each sort that fmsort ran in the last statement of this session that sorted (its last 64 sorts): method, space (kB), merge mode, runs formed, merge passes, blocks written by run formation and their size (bytes), assist blocks, I/O, times (milliseconds; input and merge times are estimated from samples), tuples, bytes and I/O requests. No row if nothing was sorted. Raises no errors.';

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
'Runs a SELECT under several ways of sorting and returns a row for each: times in milliseconds (medians of the repetitions), runs, merge passes, blocks and their size (bytes), the input buffer (kB), MB read from and written to temporary files, and how many times as fast as the first mode. The modes traditional, double_buffering and fmsort get the same input buffer; stock is PostgreSQL''s sort, automatic is fmsort with nothing set. Errors: the query is not a single SELECT, or changes something; an unknown mode.';

/*
 * The library is loaded in this session now, and in no other one unless a
 * preload setting says so.
 */
DO $do$
DECLARE
	everywhere text := concat_ws(',',
		current_setting('shared_preload_libraries'),
		current_setting('session_preload_libraries'),
		current_setting('local_preload_libraries'));
	before text := current_setting('session_preload_libraries');
	messages text := current_setting('client_min_messages');
BEGIN
	IF NOT everywhere ~ '(^|[,"/[:space:]])fmsort([",.[:space:]]|$)' THEN
		-- CREATE EXTENSION silences the notices of its scripts
		IF messages = 'warning' THEN
			PERFORM set_config('client_min_messages', 'notice', true);
		END IF;
		RAISE NOTICE 'fmsort runs the sorts of this session only'
			USING HINT = format(
				'To have it in every session of this database: ALTER DATABASE %I SET session_preload_libraries = %s;',
				current_database(),
				(SELECT string_agg(quote_literal(trim(both ' "' FROM name)), ', ')
				 FROM unnest(string_to_array(
					concat_ws(',', nullif(before, ''), 'fmsort'), ',')) name));
		PERFORM set_config('client_min_messages', messages, true);
	END IF;
END
$do$;
