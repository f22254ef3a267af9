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
 * The counters of a sort that begins, valid as long as the current memory
 * context: in shared memory if a slot is free, else in that context.
 */
extern FmsCounters *fms_progress_begin(void);

#endif							/* FMS_PROGRESS_H */
