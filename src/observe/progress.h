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

#include "base/counters.h"

/* What it needs of shared memory, and making it there. */
extern Size fms_progress_shared_bytes(void);
extern void fms_progress_share(void);

/*
 * Where a sort that begins counts what it does, until the current context
 * goes: shared memory if there is a place, else that context.  expected:
 * tuples, as the planner guesses.  grouped: the input comes in groups.
 */
extern FmsCounters *fms_progress_begin(double expected, bool grouped);

/*
 * The groups so far had so many tuples, and the next one begins; there is no
 * group after this one.
 */
extern void fms_progress_next_group(FmsCounters *counters, uint64 earlier);
extern void fms_progress_last_group(FmsCounters *counters);

#endif							/* FMS_PROGRESS_H */
