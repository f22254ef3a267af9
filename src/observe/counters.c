/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  Reading counters: what the reports have in common.
 *
 * A SQL function's row is filled by the names of its columns: a column that
 * is named like a counter shows that counter, in the unit of the table.  So
 * the order of columns is the SQL definition's business only, and a library
 * that is newer than the definition fills what the definition has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "observe/reports.h"

#define INFO_OF(name, unit, combination, line, label, column) \
	{FMS_UNIT_##unit, FMS_COMBINE_##combination, FMS_LINE_##line, label, \
	column},

const FmsCounterInfo fms_counter_info[FMS_NCOUNTERS] = {
	FMS_COUNTERS(INFO_OF)
};

const char *
fms_counter_name(const FmsCounters *counters, FmsCounter counter)
{
	static const char *const phases[] = {
		[FMS_PHASE_LOADING] = "run formation",
		[FMS_PHASE_PASSES] = "intermediate merge",
		[FMS_PHASE_MERGING] = "last merge",
		[FMS_PHASE_IN_MEMORY] = "reading from memory"
	};
	static const char *const methods[] = {
		[FMS_METHOD_STILL_LOADING] = "still in progress",
		[FMS_METHOD_IN_MEMORY] = "in-memory",
		[FMS_METHOD_TOP_N] = "top-N",
		[FMS_METHOD_EXTERNAL_MERGE] = "external merge"
	};
	uint64		value = fms_counter(counters, counter);

	switch (fms_counter_info[counter].unit)
	{
		case FMS_UNIT_MODE:
			return fms_mode_name(value);
		case FMS_UNIT_PHASE:
			return phases[value];
		case FMS_UNIT_METHOD:
			return methods[value];
		case FMS_UNIT_IO_METHOD:
			return fms_io_method_name(value);
		case FMS_UNIT_SPACE_TYPE:
			return value ? "Disk" : "Memory";
		case FMS_UNIT_YES_NO:
			return value == FMS_YES ? "true" : "false";
		default:
			return NULL;
	}
}

FmsNumber
fms_counter_number(const FmsCounters *counters, FmsCounter counter)
{
	uint64		value = fms_counter(counters, counter);

	switch (fms_counter_info[counter].unit)
	{
		case FMS_UNIT_NS:
			return (FmsNumber) {value / 1e6, 3, "ms"};
		case FMS_UNIT_RATIO:
			return (FmsNumber) {(double) value / FMS_RATIO_ONE, 2, NULL};
		case FMS_UNIT_KB:
		case FMS_UNIT_KB_IF_KNOWN:
			return (FmsNumber) {(value + 1023) / 1024, 0, "kB"};
		default:
			return (FmsNumber) {value, 0, NULL};
	}
}

bool
fms_counter_known(const FmsCounters *counters, FmsCounter counter)
{
	return fms_counter(counters, counter) != 0 ||
		fms_counter_info[counter].unit < FMS_UNIT_IF_KNOWN;
}

void
fms_counters_add(FmsCounters *total, const FmsCounters *one, bool is_part)
{
	for (int i = 0; i < FMS_NCOUNTERS; i++)
	{
		const FmsCounterInfo *info = &fms_counter_info[i];
		uint64	   *value = &total->values[i];

		if (info->combination == FMS_COMBINE_MAX)
			*value = Max(*value, one->values[i]);
		else if (info->combination == FMS_COMBINE_SUM &&
				 !(is_part && info->unit == FMS_UNIT_NS))
			*value += one->values[i];
		else if (info->combination == FMS_COMBINE_LAST &&
				 !is_part && one->values[i] != 0)
			*value = one->values[i];
	}
}

/* Of all merges, without the block order's part. */
static uint64
merge_ns(const uint64 *values)
{
	return values[FMS_COUNT_MERGING_NS] -
		Min(values[FMS_COUNT_MERGING_NS], values[FMS_COUNT_ORDER_NS]);
}

/* How many times smaller compression has made what was written. */
static uint64
compression(const uint64 *values)
{
	double		written = values[FMS_COUNT_WRITTEN_BYTES];

	if (values[FMS_COUNT_COMPRESSIBLE_BYTES] == 0 || written == 0)
		return 0;
	return FMS_RATIO_ONE *
		(written + values[FMS_COUNT_COMPRESSIBLE_BYTES] -
		 values[FMS_COUNT_COMPRESSED_BYTES]) / written;
}

void
fms_counters_complete(FmsCounters *counters)
{
	uint64	   *v = counters->values;
	uint64		method = v[FMS_COUNT_METHOD];
	bool		external = method == FMS_METHOD_EXTERNAL_MERGE;

	v[FMS_COUNT_MERGE_NS] = merge_ns(v);
	v[FMS_COUNT_COMPRESSION] = compression(v);
	v[FMS_COUNT_SPACE_TYPE] = external;
	v[FMS_COUNT_SPACE_BYTES] = v[external ? FMS_COUNT_SPILLED_BYTES :
								 FMS_COUNT_MEMORY_BYTES];
	v[FMS_COUNT_SORTS] = 1;
	v[FMS_COUNT_SORTS_IN_MEMORY] = method == FMS_METHOD_IN_MEMORY;
	v[FMS_COUNT_SORTS_TOP_N] = method == FMS_METHOD_TOP_N;
	v[FMS_COUNT_SORTS_EXTERNAL] = external;
	v[FMS_COUNT_SORTS_MULTI_PASS] = v[FMS_COUNT_MERGE_PASSES] > 1;
	/* a bound kept in memory what otherwise would not have fitted */
	v[FMS_COUNT_SPILLS_AVOIDED] = method == FMS_METHOD_TOP_N &&
		v[FMS_COUNT_INPUT_BYTES] > v[FMS_COUNT_WORK_MEM_BYTES];
	v[FMS_COUNT_URING_REFUSED] = external &&
		v[FMS_COUNT_SET_IO_METHOD] == FMS_IO_AUTO &&
		v[FMS_COUNT_DIRECT_REASON] != FMS_DIRECT_SMALL &&
		v[FMS_COUNT_IO_METHOD] != FMS_IO_URING;
	v[FMS_COUNT_DIRECT_REFUSED] = external &&
		v[FMS_COUNT_SET_DIRECT_IO] == FMS_DIRECT_AUTO &&
		v[FMS_COUNT_DIRECT_IO] != FMS_YES &&
		!FMS_DIRECT_REASON_CACHES(v[FMS_COUNT_DIRECT_REASON]);
	v[FMS_COUNT_BLOCK_LOWERED] = external &&
		v[FMS_COUNT_SET_BLOCK_BYTES] > v[FMS_COUNT_BLOCK_BYTES];
	v[FMS_COUNT_FALLBACKS] = v[FMS_COUNT_URING_REFUSED] +
		v[FMS_COUNT_DIRECT_REFUSED] + v[FMS_COUNT_BLOCK_LOWERED];
}

void
fms_counters_limit(FmsCounters *counters, double elapsed_us)
{
	uint64	   *v = counters->values;
	double		left_ns = elapsed_us * 1000 - v[FMS_COUNT_FORMATION_NS];

	v[FMS_COUNT_MERGING_NS] = Max(0, Min(v[FMS_COUNT_MERGING_NS], left_ns));
	v[FMS_COUNT_BLOCKED_NS] = Min(v[FMS_COUNT_BLOCKED_NS], merge_ns(v));
}

/* ---- rows ---- */

static Datum
to_datum(const FmsCounters *counters, FmsCounter counter, Oid type)
{
	uint64		value = fms_counter(counters, counter);
	FmsNumber	number = fms_counter_number(counters, counter);

	switch (type)
	{
		case TEXTOID:
			return CStringGetTextDatum(fms_counter_name(counters, counter));
		case BOOLOID:
			return BoolGetDatum(value == FMS_YES);
		case FLOAT8OID:
			return Float8GetDatum(rint(number.value * pow(10, number.digits)) /
								  pow(10, number.digits));
		case INT4OID:
			return Int32GetDatum(value);
		default:				/* bigint or timestamptz */
			return Int64GetDatum(value);
	}
}

void
fms_require_shared(const void *shared)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fmsort must be loaded via \"shared_preload_libraries\"")));
}

FmsRow
fms_row_begin(ReturnSetInfo *result, const FmsCounters *counters,
			  bool spills)
{
	TupleDesc	desc = result->setDesc;
	FmsRow		row = {
		.result = result,
		.values = palloc0(desc->natts * sizeof(Datum)),
		.nulls = palloc(desc->natts * sizeof(bool))
	};

	/* every such function has this column since version 1.0.0 */
	if (SPI_fnumber(desc, "blocked_time") <= 0)
		fms_refuse_version();
	memset(row.nulls, true, desc->natts * sizeof(bool));
	for (int i = 0; i < FMS_NCOUNTERS; i++)
	{
		const char *column = fms_counter_info[i].column;
		int			number = column ? SPI_fnumber(desc, column) : 0;

		if (number > 0 && fms_counter_known(counters, i) &&
			(spills || fms_counter_info[i].line < FMS_LINE_MERGE_TIMES))
			fms_row_set(&row, column,
						to_datum(counters, i, SPI_gettypeid(desc, number)));
	}
	return row;
}

void
fms_row_set(FmsRow *row, const char *column, Datum value)
{
	int			number = SPI_fnumber(row->result->setDesc, column);

	if (number > 0)
	{
		row->values[number - 1] = value;
		row->nulls[number - 1] = false;
	}
}

void
fms_row_end(FmsRow *row)
{
	tuplestore_putvalues(row->result->setResult, row->result->setDesc,
						 row->values, row->nulls);
	pfree(row->values);
	pfree(row->nulls);
}
