/*-------------------------------------------------------------------------
 *
 * slow_log.c
 *	  A line in the server log for each slow sort: fmsort.log_min_duration.
 *
 * The line has what tuning needs: the time of each part, what the sort did on
 * disk, the work_mem for one pass and for a sort in memory, and the reasons of
 * its choices (why.c).  The server adds the statement.
 *
 * A sort is slow by its own time: without its input, which may be a slow
 * query, and without its parent, which may be a slow client.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "observe/reports.h"

static void
append_external(StringInfo line, const FmsCounters *counters)
{
	appendStringInfo(line, ", block order %.3f ms, merge %.3f ms"
					 ", blocked %.3f ms, runs "
					 UINT64_FORMAT ", passes " UINT64_FORMAT ", blocks "
					 UINT64_FORMAT ", disk " UINT64_FORMAT
					 " kB; work_mem for one pass " UINT64_FORMAT
					 " kB, in memory " UINT64_FORMAT " kB",
					 fms_counter_ms(counters, FMS_COUNT_ORDER_NS),
					 fms_counter_ms(counters, FMS_COUNT_MERGE_NS),
					 fms_counter_ms(counters, FMS_COUNT_BLOCKED_NS),
					 fms_counter(counters, FMS_COUNT_RUNS),
					 fms_counter(counters, FMS_COUNT_MERGE_PASSES),
					 fms_counter(counters, FMS_COUNT_BLOCKS),
					 fms_counter_kb(counters, FMS_COUNT_SPACE_BYTES),
					 fms_counter_kb(counters, FMS_COUNT_ONE_PASS_BYTES),
					 fms_counter_kb(counters, FMS_COUNT_IN_MEMORY_BYTES));
}

void
fms_slow_log(const FmsCounters *counters, int limit_ms)
{
	double		formation_ms = fms_counter_ms(counters,
											  FMS_COUNT_FORMATION_NS);
	double		input_ms = fms_counter_ms(counters, FMS_COUNT_INPUT_NS);
	double		own_ms = formation_ms - input_ms +
		fms_counter_ms(counters, FMS_COUNT_ORDER_NS) +
		fms_counter_ms(counters, FMS_COUNT_MERGE_NS);
	StringInfoData line;

	if (limit_ms < 0 || own_ms < limit_ms)
		return;
	initStringInfo(&line);
	appendStringInfo(&line, "sort: %.3f ms, rows " UINT64_FORMAT
					 ", run formation %.3f ms, input %.3f ms", own_ms,
					 fms_counter(counters, FMS_COUNT_TUPLES), formation_ms,
					 input_ms);
	if (fms_counters_external(counters))
		append_external(&line, counters);
	ereport(LOG,
			(errmsg("%s; %s", line.data, fms_why(counters))));
	pfree(line.data);
}
