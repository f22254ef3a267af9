/*-------------------------------------------------------------------------
 *
 * last_sort.c
 *	  What this session's last statement sorted: fmsort_last_sort().
 *
 * A session keeps the counters of the sorts of one statement: the latest one
 * that sorted.  The first sort of a later statement replaces them, so the
 * statement that asks for them does not.  Of a statement that sorts often
 * (a loop in a function) the last sorts are kept.
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

#include "base/sql_version.h"
#include "observe/reports.h"

/* Sorts kept of one statement. */
#define KEPT_SORTS	64

static FmsCounters *kept = NULL;	/* ring of KEPT_SORTS */
static uint64 kept_total = 0;	/* sorts of that statement, kept or not */
static uint64 kept_statement = 0;	/* the statement they belong to */
static uint64 statement = 0;	/* the statement that is running */

PG_FUNCTION_INFO_V1(fmsort_last_sort);
PG_FUNCTION_INFO_V1(fmsort_last_sort_clear);
PG_FUNCTION_INFO_V1(fmsort_compare);

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

Datum
fmsort_last_sort(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	int			i;

	InitMaterializedSRF(fcinfo, 0);
	for (i = 0; i < kept_count(); i++)
	{
		const FmsCounters *counters = &kept[(first_kept() + i) % KEPT_SORTS];
		FmsRow		row = fms_row_begin(result, counters);
		char	   *why = fms_why(counters);

		fms_row_set(&row, "sort", Int32GetDatum(first_kept() + i + 1));
		if (why)
			fms_row_set(&row, "why", CStringGetTextDatum(why));
		fms_row_end(&row);
	}
	return (Datum) 0;
}

/* fmsort_compare_merges() tells its runs apart, which are one statement. */
Datum
fmsort_last_sort_clear(PG_FUNCTION_ARGS)
{
	kept_total = 0;
	PG_RETURN_VOID();
}

/* Only the SQL objects of version 0.1.0 call this. */
Datum
fmsort_compare(PG_FUNCTION_ARGS)
{
	fms_refuse_version();
	return (Datum) 0;
}
