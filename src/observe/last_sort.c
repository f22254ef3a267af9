/*-------------------------------------------------------------------------
 *
 * last_sort.c
 *	  What this session's last statement sorted: fmsort_last_sort().
 *
 * A session keeps the counters of the sorts of one statement: the latest one
 * that sorted.  The first sort of a later statement discards them.  A
 * statement that only calls fmsort_last_sort() sorts nothing and discards
 * nothing.  If a statement sorts often (a loop in a function), its last sorts
 * are kept.
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

#include "observe/reports.h"

/* Sorts kept of one statement. */
#define KEPT_SORTS	64

static FmsCounters *kept = NULL;	/* ring of KEPT_SORTS */
static uint64 kept_total = 0;	/* sorts of their statement, kept or not */
static bool is_new_statement = false;	/* a later one is running */

PG_FUNCTION_INFO_V1(fmsort_last_sort);
PG_FUNCTION_INFO_V1(fmsort_last_sort_clear);
PG_FUNCTION_INFO_V1(fmsort_compare);

void
fms_last_sort_new_statement(void)
{
	is_new_statement = true;
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
	if (is_new_statement)
		kept_total = 0;
	is_new_statement = false;
	kept[kept_total++ % KEPT_SORTS] = *counters;
}

Datum
fmsort_last_sort(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	uint64		first = kept_total - Min(kept_total, KEPT_SORTS);

	InitMaterializedSRF(fcinfo, 0);
	for (uint64 n = first; n < kept_total; n++)
	{
		const FmsCounters *counters = &kept[n % KEPT_SORTS];
		FmsRow		row = fms_row_begin(result, counters,
										fms_counters_external(counters));
		char	   *decision = fms_decision(counters);

		fms_row_set(&row, "sort_number", Int32GetDatum(n + 1));
		if (decision)
			fms_row_set(&row, "decision", CStringGetTextDatum(decision));
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
