/*-------------------------------------------------------------------------
 *
 * recommend.c
 *	  fmsort_recommend(): what the automatic settings do with an input.
 *
 * Arithmetic over sizing.c, under the session's settings except work_mem,
 * block size and assist blocks, and with the profile of the device under
 * temporary files.  The number of steps grows with the logarithm of the number
 * of runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>
#include <math.h>

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "device/profile.h"
#include "executor/sort_node.h"
#include "keys/entry.h"
#include "keys/record.h"
#include "observe/reports.h"
#include "sort/sizing.h"

#define RESULT_COLUMNS	6

/* Bytes of input from where on no work_mem is enough: see sizing.c. */
#define INPUT_MAX_BYTES	((double) ((uint64) 1 << 62))

PG_FUNCTION_INFO_V1(fmsort_recommend);

/* Bytes of work_mem in the text, as SET work_mem takes it. */
static Size
memory_from(const char *text)
{
	const char *hint = NULL;
	int			kb;

	if (!parse_int(text, &kb, GUC_UNIT_KB, &hint) || kb < 64 ||
		kb > MAX_KILOBYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"%s\": \"%s\"",
						"work_mem", text),
				 hint ? errhint("%s", _(hint)) :
				 errhint("The value must be at least 64kB.")));
	return (Size) kb * 1024;
}

static double
positive(int64 value, const char *name)
{
	if (value <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be greater than zero", name)));
	return value;
}

/* Bytes of work_mem; null if no work_mem is as large. */
static Datum
bytes_or_null(Size bytes, bool *isnull)
{
	*isnull = bytes / 1024 > MAX_KILOBYTES;
	return Int64GetDatum(bytes);
}

/* The columns in order; see the SQL definition. */
static HeapTuple
make_row(TupleDesc desc, const FmsOptions *options, double input_bytes)
{
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};
	FmsMergeInput input = {
		.compressed = options->compression == FMS_COMPRESS_ON
	};
	FmsSizing	sizing = fms_sizing_choose(&fms_mode_fmsort, options);
	FmsForecast forecast = fms_sizing_forecast(&sizing, &input, input_bytes);
	FmsAdvice	advice =
		fms_sizing_advise(&fms_mode_fmsort, options, &input,
						  (uint64) Min(input_bytes, INPUT_MAX_BYTES));
	int			passes = 0;
	uint32		assist = 0;

	if (forecast.runs > 0)
	{
		int			last;

		input.in_memory_run_bytes = forecast.in_memory_run_bytes;
		last = fms_sizing_fan_in(&sizing, &input, false);
		assist = fms_sizing_merge(&sizing, &input, Min(forecast.runs, last),
								  false).assist_blocks;
		/* `runs`: the most runs that `passes` passes can merge */
		passes = 1;
		for (double runs = last; runs < forecast.runs; passes++)
			runs *= fms_sizing_fan_in(&sizing, &input, true);
	}
	values[0] = Int64GetDatum(forecast.runs);
	values[1] = Int32GetDatum(passes);
	values[2] = Int32GetDatum(sizing.block_bytes);
	values[3] = Int32GetDatum(assist);
	/* a sort in memory has nothing of these */
	for (int i = 0; i < 4; i++)
		nulls[i] = forecast.runs == 0;
	values[4] = bytes_or_null(advice.one_pass_bytes, &nulls[4]);
	values[5] = bytes_or_null(advice.in_memory_bytes, &nulls[5]);
	return heap_form_tuple(desc, values, nulls);
}

/* work_mem, input_bytes, tuple_bytes */
Datum
fmsort_recommend(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	FmsOptions	options;
	FmsDevice	device;
	double		tuple_bytes;
	double		tuples;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (desc->natts != RESULT_COLUMNS)
		fms_refuse_version();
	tuple_bytes = positive(PG_GETARG_INT32(2), "tuple_bytes");
	tuples = ceil(positive(PG_GETARG_INT64(1), "input_bytes") / tuple_bytes);

	memset(&options, 0, sizeof(options));
	fms_settings_snapshot(&options, tuples *
						  fms_record_expected_bytes(tuple_bytes));
	options.memory_bytes = memory_from(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	options.block_bytes = 0;
	options.assist_blocks = 0;
	fms_profile_device(&device);
	options.device = &device;
	/* in memory each record has an entry besides */
	return HeapTupleGetDatum(make_row(BlessTupleDesc(desc), &options, tuples *
									  (fms_record_expected_bytes(tuple_bytes) +
									   sizeof(FmsEntry))));
}
