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

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "observe/counters.h"

#define INFO_OF(name, unit, combination, line, label, column) \
	{FMS_UNIT_##unit, FMS_LINE_##line, label, column},

const FmsCounterInfo fms_counter_info[FMS_NCOUNTERS] = {
	FMS_COUNTERS(INFO_OF)
};

typedef enum Combination
{
	COMBINE_SUM,
	COMBINE_MAX,
	COMBINE_LAST,
	COMBINE_DERIVED
} Combination;

#define COMBINATION_OF(name, unit, combination, line, label, column) \
	COMBINE_##combination,

static const Combination combinations[FMS_NCOUNTERS] = {
	FMS_COUNTERS(COMBINATION_OF)
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
			return value == 0 ? NULL : fms_io_method_name(value);
		case FMS_UNIT_SPACE_TYPE:
			return value ? "Disk" : "Memory";
		default:
			return NULL;
	}
}

void
fms_counters_add(FmsCounters *total, const FmsCounters *one)
{
	int			i;

	for (i = 0; i < FMS_NCOUNTERS; i++)
	{
		uint64	   *value = &total->values[i];

		switch (combinations[i])
		{
			case COMBINE_SUM:
				*value += one->values[i];
				break;
			case COMBINE_MAX:
				*value = Max(*value, one->values[i]);
				break;
			case COMBINE_LAST:
				if (one->values[i] != 0)
					*value = one->values[i];
				break;
			case COMBINE_DERIVED:
				break;
		}
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
		v[FMS_COUNT_IO_METHOD] != FMS_IO_URING;
	v[FMS_COUNT_DIRECT_REFUSED] = external &&
		v[FMS_COUNT_SET_DIRECT_IO] == FMS_DIRECT_AUTO &&
		v[FMS_COUNT_DIRECT_IO] != FMS_YES &&
		v[FMS_COUNT_DIRECT_REASON] != FMS_DIRECT_ROOM;
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

/* In a column of that type; false: null. */
static bool
to_datum(const FmsCounters *counters, FmsCounter counter, Oid type,
		 Datum *datum)
{
	uint64		value = fms_counter(counters, counter);
	FmsUnit		unit = fms_counter_info[counter].unit;
	const char *name;

	if (value == 0 && (unit == FMS_UNIT_IF_KNOWN ||
					   unit == FMS_UNIT_KB_IF_KNOWN ||
					   unit == FMS_UNIT_TIMESTAMP ||
					   unit == FMS_UNIT_YES_NO))
		return false;
	switch (unit)
	{
		case FMS_UNIT_NUMBER:
		case FMS_UNIT_IF_KNOWN:
			*datum = type == INT4OID ? Int32GetDatum(value) :
				Int64GetDatum(value);
			return true;
		case FMS_UNIT_KB:
		case FMS_UNIT_KB_IF_KNOWN:
			*datum = Int64GetDatum(fms_counter_kb(counters, counter));
			return true;
		case FMS_UNIT_NS:
			*datum = Float8GetDatum(fms_counter_ms(counters, counter));
			return true;
		case FMS_UNIT_RATIO:
			*datum = Float8GetDatum(value == 0 ? 1 :
									(double) value / FMS_RATIO_ONE);
			return true;
		case FMS_UNIT_TIMESTAMP:
			*datum = TimestampTzGetDatum(value);
			return true;
		case FMS_UNIT_YES_NO:
			*datum = BoolGetDatum(value == FMS_YES);
			return true;
		default:
			name = fms_counter_name(counters, counter);
			if (name)
				*datum = CStringGetTextDatum(name);
			return name != NULL;
	}
}

/* The counter of that column; FMS_NCOUNTERS: none. */
static FmsCounter
counter_of(const char *column)
{
	int			i;

	for (i = 0; i < FMS_NCOUNTERS; i++)
	{
		if (fms_counter_info[i].column &&
			strcmp(fms_counter_info[i].column, column) == 0)
			break;
	}
	return i;
}

void
fms_require_shared(const void *shared, const char *what)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s needs shared memory that fmsort has not got",
						what),
				 errdetail("The library was not loaded when the server started."),
				 errhint("Add \"fmsort\" to shared_preload_libraries in postgresql.conf and restart the server.")));
}

FmsRow
fms_row_begin(ReturnSetInfo *result, const FmsCounters *counters)
{
	TupleDesc	desc = result->setDesc;
	FmsRow		row = {
		.result = result,
		.values = palloc0(desc->natts * sizeof(Datum)),
		.nulls = palloc0(desc->natts * sizeof(bool))
	};
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, i);
		FmsCounter	counter = counter_of(NameStr(column->attname));

		row.nulls[i] = counter == FMS_NCOUNTERS ||
			!to_datum(counters, counter, column->atttypid, &row.values[i]);
	}
	return row;
}

/* The number of that column; -1: none. */
static int
column_number(const FmsRow *row, const char *column)
{
	TupleDesc	desc = row->result->setDesc;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), column) == 0)
			return i;
	}
	return -1;
}

void
fms_row_set(FmsRow *row, const char *column, Datum value)
{
	int			i = column_number(row, column);

	if (i < 0)
		return;
	row->values[i] = value;
	row->nulls[i] = false;
}

void
fms_row_set_null(FmsRow *row, const char *column)
{
	int			i = column_number(row, column);

	if (i >= 0)
		row->nulls[i] = true;
}

void
fms_row_end(FmsRow *row)
{
	tuplestore_putvalues(row->result->setResult, row->result->setDesc,
						 row->values, row->nulls);
	pfree(row->values);
	pfree(row->nulls);
}
