/*-------------------------------------------------------------------------
 *
 * slow_log.c
 *	  A line in the server log for each slow sort: fmsort.log_min_duration.
 *
 * The line has the fields of EXPLAIN, and the work_mem that the sort would
 * have needed.  The server adds the statement.
 *
 * A sort is slow by its own time: without its input, which may be a slow
 * query, and without its parent, which may be a slow client.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "observe/reports.h"

void
fms_slow_log(const FmsCounters *counters, int limit_ms)
{
	double		own_ms = (fms_counter(counters, FMS_COUNT_FORMATION_NS) -
						  fms_counter(counters, FMS_COUNT_INPUT_NS) +
						  fms_counter(counters, FMS_COUNT_ORDER_NS) +
						  fms_counter(counters, FMS_COUNT_MERGE_NS)) / 1e6;
	StringInfoData line;
	char	   *why;

	if (limit_ms < 0 || own_ms < limit_ms)
		return;
	initStringInfo(&line);
	fms_counters_append(&line, counters, FMS_LINE_METHOD, FMS_LINE_IO);
	why = fms_why(counters);
	if (why)
		appendStringInfo(&line, "  Why: %s", why);
	ereport(LOG,
			(errmsg("sort: %.3f ms  %s", own_ms, line.data)));
	pfree(line.data);
}
