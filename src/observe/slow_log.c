/*-------------------------------------------------------------------------
 *
 * slow_log.c
 *	  A line in the server log for each slow sort: fmsort.log_min_duration.
 *
 * One line, as log_temp_files has, so that it can be searched and counted; the
 * server adds the statement.  It has what is needed to tune the sort: how long
 * each part took, what it did on disk, the work_mem with which it would have
 * taken one pass or stayed in memory, and why it did what it did (why.c).
 *
 * What counts is the sort's own time: neither its input's, which may be a slow
 * query, nor its parent's, which may be a slow client.
 *
 * Memory: some kB in the caller's context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "observe/slow_log.h"
#include "observe/why.h"

static void
append_external(StringInfo line, const FmsCounters *counters)
{
	appendStringInfo(line, ", block order %.3f ms, merge %.3f ms"
					 ", blocked %.3f ms, runs "
					 UINT64_FORMAT ", passes %u, blocks " UINT64_FORMAT
					 ", disk " UINT64_FORMAT " kB; work_mem for one pass "
					 UINT64_FORMAT " kB, in memory " UINT64_FORMAT " kB",
					 counters->order_us / 1000.0,
					 counters->merge_us / 1000.0,
					 counters->blocked_us / 1000.0, counters->runs,
					 counters->merge_passes, counters->blocks,
					 fms_counters_space_kb(counters),
					 counters->one_pass_bytes / 1024,
					 counters->in_memory_bytes / 1024);
}

void
fms_slow_log(const FmsCounters *counters, int limit_ms)
{
	double		own_ms = fms_counters_own_us(counters) / 1000.0;
	StringInfoData line;

	if (limit_ms < 0 || own_ms < limit_ms)
		return;
	initStringInfo(&line);
	appendStringInfo(&line, "sort: %.3f ms, rows " UINT64_FORMAT
					 ", run formation %.3f ms, input %.3f ms",
					 own_ms, counters->tuples,
					 counters->formation_us / 1000.0,
					 counters->input_us / 1000.0);
	if (fms_counters_external(counters))
		append_external(&line, counters);
	ereport(LOG,
			(errmsg("%s; %s", line.data, fms_why(counters))));
	pfree(line.data);
}
