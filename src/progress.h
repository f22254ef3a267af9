/*-------------------------------------------------------------------------
 *
 * progress.h
 *	  Running sorts, for other sessions to look at: fmsort_progress.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PROGRESS_H
#define FMS_PROGRESS_H

#include "postgres.h"

#include "counters.h"

/* What it needs of shared memory, and making it there. */
extern Size fms_progress_shared_bytes(void);
extern void fms_progress_share(void);

/*
 * Where a sort that begins counts what it does, until the current context
 * goes: shared memory if there is a place, else that context.  expected:
 * tuples, as the planner guesses.  grouped: the input comes in groups.  The
 * query's text, which may be NULL, and the sort's place in the plan say which
 * sort it is when it comes again.
 */
extern FmsCounters *fms_progress_begin(double expected, bool grouped,
									   const char *query, int plan_node_id);

/*
 * The groups so far had so many tuples, and the next one begins; there is no
 * group after this one.
 */
extern void fms_progress_next_group(FmsCounters *counters, uint64 earlier);
extern void fms_progress_last_group(FmsCounters *counters);

/* The last tuple has been asked for; the first time, that is remembered. */
extern void fms_progress_read_to_end(FmsCounters *counters);

#endif							/* FMS_PROGRESS_H */
