/*-------------------------------------------------------------------------
 *
 * recommend.c
 *	  fmsort_recommend(): what the automatic settings do with an input.
 *
 * Arithmetic over the code that sizes sorts (sizing.c), with the settings of
 * this session, but for work_mem, block size and assist blocks, and with the
 * profile of the device that temporary files go to.  The number of steps grows
 * with the logarithm of the number of runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/htup_details.h"
#include <math.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "keys/entry.h"
#include "device/profile.h"
#include "keys/record.h"
#include "executor/settings.h"
#include "sort/sizing.h"
#include "base/sql_version.h"

#define RESULT_COLUMNS	6

/* See sort.c: the first runs are parts of memory, and a small rest is none. */
#define FIRST_RUNS		4
#define REST_FRACTION	4

/* As many bytes as none of the limits of sizing.c is near. */
#define INPUT_MAX_BYTES	((double) ((uint64) 1 << 62))

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

/*
 * The runs that sort.c writes of so many bytes; *kept_bytes of them are merged
 * from memory.
 */
static int64
count_runs(const FmsSizing *sizing, double input_bytes, double *kept_bytes)
{
	double		memory = fms_sizing_formation_bytes(sizing);
	double		left = input_bytes - memory;
	double		part = 0;
	double		kept;
	double		rest = 0;
	int64		runs = 0;

	/* each time that memory is full, the next run makes room */
	for (; left > 0 && runs < FIRST_RUNS; runs++)
	{
		part = ldexp(memory, Max(runs, 1) - FIRST_RUNS);
		left -= part;
	}
	if (left > 0)
	{
		double		whole = ceil(left / memory);

		runs += (int64) whole;
		left -= whole * memory;
		part = memory;
	}
	/* what came after the last of these filled a part of its room */
	kept = memory + Max(left, -part);

	if (runs < fms_sizing_fan_in(sizing, 0, false))
		rest = fms_sizing_rest(sizing, (int) runs, 0);
	if (kept > rest)
	{
		if (rest < kept / REST_FRACTION)
			rest = 0;
		runs++;
		kept = rest;
	}
	*kept_bytes = kept;
	return runs;
}

/*
 * Merge passes over so many runs, if at most `most` are merged into a run and
 * at most `last` at the end.  fms_spill_reduce() merges the smallest runs
 * first: those that have been through fewer passes.  Leaves the number of runs
 * that the last merge takes.
 */
static int
count_passes(int64 *runs, int most, int last)
{
	int64		fresh = *runs;	/* through one pass less than */
	int64		merged = 0;
	int			passes = 0;		/* that `fresh` has been through */
	int			deepest = 0;

	while (fresh + merged > last)
	{
		int64		surplus = fresh + merged - last;
		int64		full = Min(fresh / most, surplus / (most - 1));

		/* as many full merges as `fresh` has runs for, else one merge */
		if (full > 0)
		{
			fresh -= full * most;
			merged += full;
			deepest = Max(deepest, passes + 1);
		}
		else
		{
			int64		n = Min(most, surplus + 1);
			int64		small = Min(n, fresh);

			deepest = Max(deepest, passes + 1 + (n > small ? 1 : 0));
			fresh -= small;
			merged -= n - small;
			merged++;
		}
		if (fresh == 0)
		{
			fresh = merged;
			merged = 0;
			passes++;
		}
	}
	*runs = fresh + merged;
	return deepest + 1;
}

/* In kB; null where no work_mem is as large. */
static Datum
kilobytes(Size bytes, bool *isnull)
{
	*isnull = bytes / 1024 > MAX_KILOBYTES;
	return Int64GetDatum(bytes / 1024);
}

/* The columns in order; see the SQL definition. */
static HeapTuple
make_row(TupleDesc desc, const FmsOptions *options, double input_bytes)
{
	Datum		values[RESULT_COLUMNS];
	bool		nulls[RESULT_COLUMNS] = {false};
	FmsSizing	sizing;
	double		kept = 0;
	int64		runs = 0;
	int64		left;
	int			passes = 0;
	uint32		assist = 0;
	uint64		bytes = (uint64) Min(input_bytes, INPUT_MAX_BYTES);
	int			i = 0;

	fms_sizing_init(&sizing, &fms_mode_fmsort, options);
	if (input_bytes > fms_sizing_formation_bytes(&sizing))
	{
		runs = left = count_runs(&sizing, input_bytes, &kept);
		sizing.rest_bytes = (Size) kept;
		passes = count_passes(&left, fms_sizing_fan_in(&sizing, 0, true),
							  fms_sizing_fan_in(&sizing, 0, false));
		assist = fms_sizing_assist(&sizing, (int) left, 0, false);
	}
	values[i++] = Int64GetDatum(runs);
	values[i++] = Int32GetDatum(passes);
	values[i++] = Int32GetDatum(sizing.block_bytes);
	nulls[i] = runs == 0;
	values[i++] = Int32GetDatum(assist);
	sizing.rest_bytes = 0;
	values[i] = kilobytes(fms_sizing_for_one_pass(&sizing, options, bytes, 0),
						  &nulls[i]);
	i++;
	values[i] = kilobytes(fms_sizing_for_memory(&sizing, options, bytes),
						  &nulls[i]);
	i++;
	Assert(i == RESULT_COLUMNS);
	return heap_form_tuple(desc, values, nulls);
}

/* work_mem, input_bytes, tuple_bytes */
Datum
fmsort_recommend(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	FmsOptions	options;
	double		tuple_bytes;
	double		tuples;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	fms_require_columns(desc, RESULT_COLUMNS);
	tuple_bytes = positive(PG_GETARG_INT32(2), "tuple_bytes");
	tuples = ceil(positive(PG_GETARG_INT64(1), "input_bytes") / tuple_bytes);

	memset(&options, 0, sizeof(options));
	fms_settings_snapshot(&options, tuples *
						  fms_record_expected_bytes(tuple_bytes));
	options.memory_bytes = memory_from(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	options.block_bytes = 0;
	options.assist_blocks = 0;
	fms_profile_device(&options.device);
	/* in memory each record has an entry besides */
	return HeapTupleGetDatum(make_row(BlessTupleDesc(desc), &options, tuples *
									  (fms_record_expected_bytes(tuple_bytes) +
									   sizeof(FmsEntry))));
}
