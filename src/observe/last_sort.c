/*-------------------------------------------------------------------------
 *
 * last_sort.c
 *	  What this session's last statement sorted: fmsort_last_sort().
 *
 * A session remembers the counters of the sorts of one statement: the last
 * one that sorted anything.  They are replaced when a later statement's
 * first sort ends, so the statement that asks does not wipe out what it asks
 * for.  A statement that sorts without end (a loop in a function) would fill
 * the memory, so only its last sorts are kept.
 *
 * Memory: a fixed array in TopMemoryContext, made at the first sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "observe/last_sort.h"
#include "observe/why.h"

/* Sorts kept of one statement. */
#define KEPT_SORTS	64

#define RESULT_COLUMNS	29

static FmsCounters *kept = NULL;	/* ring of KEPT_SORTS */
static uint64 kept_total = 0;	/* sorts of that statement, kept or not */
static uint64 kept_statement = 0;	/* the statement they belong to */
static uint64 statement = 0;	/* the statement that is running */

PG_FUNCTION_INFO_V1(fmsort_last_sort);

void
fms_last_sort_new_statement(void)
{
	statement++;
}

void
fms_last_sort_remember(const FmsCounters *counters)
{
	if (kept == NULL)
		kept = MemoryContextAllocExtended(TopMemoryContext,
										  KEPT_SORTS * sizeof(FmsCounters),
										  MCXT_ALLOC_NO_OOM);
	if (kept == NULL)
		return;
	if (kept_statement != statement)
	{
		kept_statement = statement;
		kept_total = 0;
	}
	kept[kept_total++ % KEPT_SORTS] = *counters;
}

/* Kept sorts, of whichever statement. */
static int
kept_count(void)
{
	return (int) Min(kept_total, KEPT_SORTS);
}

static uint64
first_kept(void)
{
	return kept_total - kept_count();
}

int
fms_last_sort_kept(void)
{
	return kept_statement == statement ? kept_count() : 0;
}

const FmsCounters *
fms_last_sort_get(int number)
{
	Assert(number < kept_count());
	return &kept[(first_kept() + number) % KEPT_SORTS];
}

static Datum
milliseconds(double us)
{
	return Float8GetDatum(us / 1000.0);
}

/* The columns of fmsort_last_sort() in order; see the SQL definition. */
static void
fill_row(const FmsCounters *counters, int number, Datum *values, bool *nulls)
{
	bool		external = fms_counters_external(counters);
	int			i = 0;

	memset(nulls, 0, RESULT_COLUMNS * sizeof(bool));
	values[i++] = Int32GetDatum(number);
	values[i++] = CStringGetTextDatum(fms_counters_method_name(counters));
	values[i++] = Int64GetDatum(fms_counters_space_kb(counters));
	values[i++] = CStringGetTextDatum(external ? "Disk" : "Memory");
	values[i++] = CStringGetTextDatum(fms_mode_name(counters->mode));
	values[i++] = Int64GetDatum(counters->runs);
	values[i++] = Int32GetDatum(counters->merge_passes);
	values[i++] = Int64GetDatum(counters->blocks);
	values[i++] = Int32GetDatum(counters->block_bytes);
	values[i++] = Int32GetDatum(counters->assist_blocks);
	nulls[i] = !external;
	values[i++] = CStringGetTextDatum(fms_counters_io_method(counters));
	nulls[i] = !external;
	values[i++] = BoolGetDatum(counters->uses_direct_io);
	values[i++] = milliseconds(counters->formation_us);
	values[i++] = milliseconds(counters->input_us);
	values[i++] = milliseconds(counters->order_us);
	values[i++] = milliseconds(counters->merge_us);
	values[i++] = milliseconds(counters->blocked_us);
	values[i++] = Int64GetDatum(counters->tuples);
	values[i++] = Int64GetDatum(counters->spilled_bytes);
	values[i++] = Int64GetDatum(counters->reads);
	values[i++] = Int64GetDatum(counters->read_batches);
	values[i++] = Int64GetDatum(counters->writes);
	values[i++] = Int64GetDatum(counters->read_bytes);
	values[i++] = Int64GetDatum(counters->written_bytes);
	values[i++] = Float8GetDatum(fms_counters_compression(counters));
	values[i++] = Int64GetDatum(counters->options.memory_bytes / 1024);
	nulls[i] = nulls[i + 1] = !external;
	values[i++] = Int64GetDatum(counters->one_pass_bytes / 1024);
	values[i++] = Int64GetDatum(counters->in_memory_bytes / 1024);
	values[i++] = CStringGetTextDatum(fms_why(counters));
	Assert(i == RESULT_COLUMNS);
}

Datum
fmsort_last_sort(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			i;

	InitMaterializedSRF(fcinfo, 0);
	for (i = 0; i < kept_count(); i++)
	{
		Datum		values[RESULT_COLUMNS];
		bool		nulls[RESULT_COLUMNS];

		fill_row(fms_last_sort_get(i), (int) first_kept() + i + 1, values,
				 nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}
