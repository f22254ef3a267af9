/*-------------------------------------------------------------------------
 *
 * recommend.c
 *	  fmsort_recommend(): what the automatic settings would do, and why.
 *
 * Puts together what a sort's options would be in this session, but for
 * work_mem, with the profile of a tablespace (profile.c), asks predict.c, and
 * makes a row of it.  Nothing is measured and nothing is kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "predict.h"
#include "profile.h"
#include "settings.h"

#define RESULT_COLUMNS	15

PG_FUNCTION_INFO_V1(fmsort_recommend);

/* As SET work_mem would take it. */
static Size
memory_from(const char *text)
{
	const char *hint = NULL;
	int			kb;

	if (!parse_int(text, &kb, GUC_UNIT_KB, &hint) || kb < 64 ||
		kb > MAX_KILOBYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid work_mem: \"%s\"", text),
				 hint ? errhint("%s", _(hint)) :
				 errhint("It is what SET work_mem takes: kilobytes, or a number with a unit, from 64kB.")));
	return (Size) kb * 1024;
}

static double
positive(int64 value, const char *name)
{
	if (value <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be above 0", name)));
	return value;
}

static int
bounded(int value, int most, const char *name)
{
	if (value < 0 || value > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be between 0 and %d", name, most)));
	return value;
}

static Datum
milliseconds(double us)
{
	return Float8GetDatum(us / 1000.0);
}

/* The columns in order; see the SQL definition. */
static HeapTuple
make_row(TupleDesc desc, const FmsPrediction *prediction,
		 const FmsDevice *device, const FmsTupleCost *cost,
		 TimestampTz measured_at)
{
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};
	bool		external = prediction->external;
	bool		timed = cost->formation_ns > 0 || cost->formation_byte_ns > 0;
	bool		io_timed = timed && (!external || prediction->cached ||
									 (prediction->read_mb > 0 &&
									  device->write_mb > 0));
	int			i = 0;

	nulls[i] = measured_at == 0;
	values[i++] = TimestampTzGetDatum(measured_at);
	values[i++] = CStringGetTextDatum(external ? "external merge" :
									  "in-memory");
	values[i++] = Int64GetDatum(prediction->runs);
	values[i++] = Int32GetDatum(prediction->merge_passes);
	values[i++] = Int32GetDatum(prediction->block_bytes);
	values[i++] = Int32GetDatum(prediction->assist_blocks);
	nulls[i] = !external;
	values[i++] = BoolGetDatum(!prediction->cached);
	nulls[i] = !external;
	values[i++] = BoolGetDatum(prediction->compressed);
	values[i++] = Int64GetDatum((int64) prediction->spilled_bytes);
	values[i++] = Int64GetDatum((int64) prediction->kept_bytes);
	nulls[i] = !external || prediction->read_mb <= 0;
	values[i++] = Float8GetDatum(prediction->read_mb);
	nulls[i] = !external || device->write_mb <= 0;
	values[i++] = Float8GetDatum(device->write_mb);
	nulls[i] = !io_timed;
	values[i++] = milliseconds(prediction->formation_us);
	nulls[i] = !io_timed;
	values[i++] = milliseconds(prediction->merge_us);
	nulls[i] = !io_timed;
	values[i++] = milliseconds(prediction->blocked_us);
	Assert(i == RESULT_COLUMNS);
	return heap_form_tuple(desc, values, nulls);
}

/*
 * work_mem, input_bytes, tuple_bytes, tablespace, block_size, assist_blocks,
 * distinct_keys
 */
Datum
fmsort_recommend(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	FmsOptions	options;
	FmsPrediction prediction;
	FmsTupleCost cost;
	TimestampTz measured_at;
	FmsExpectedInput input;
	double		input_bytes;
	Oid			tablespace;
	int			i;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (i = 0; i < 7; i++)
	{
		if (PG_ARGISNULL(i) && i != 3)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("only \"tablespace\" may be null")));
	}
	input_bytes = positive(PG_GETARG_INT64(1), "input_bytes");
	input.tuple_bytes = positive(PG_GETARG_INT32(2), "tuple_bytes");
	input.tuples = input_bytes / input.tuple_bytes;
	input.keys = PG_GETARG_INT64(6) == 0 ? 0 :
		positive(PG_GETARG_INT64(6), "distinct_keys");
	tablespace = fms_profile_tablespace(PG_ARGISNULL(3) ? NULL :
										NameStr(*PG_GETARG_NAME(3)));

	memset(&options, 0, sizeof(options));
	fms_settings_snapshot(&options, input_bytes);
	options.memory_bytes = memory_from(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	options.block_bytes = bounded(PG_GETARG_INT32(4), FMS_BLOCK_MAX_BYTES,
								  "block_size");
	if (options.block_bytes % FMS_BLOCK_QUANTUM_BYTES != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"block_size\" must be a multiple of %d",
						FMS_BLOCK_QUANTUM_BYTES)));
	options.assist_blocks = bounded(PG_GETARG_INT32(5), FMS_ASSIST_MAX_BLOCKS,
									"assist_blocks");
	fms_profile_look_up(tablespace, &options.device, &cost, &measured_at);
	fms_predict(&options, &cost, &input, &prediction);
	return HeapTupleGetDatum(make_row(BlessTupleDesc(desc), &prediction,
									  &options.device, &cost, measured_at));
}
