/*-------------------------------------------------------------------------
 *
 * workers.h
 *	  What parallel workers report to their leader.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_WORKERS_H
#define FMS_WORKERS_H

#include "postgres.h"

#include "base/layout.h"
#include "observe/counters.h"

/* Lies in the query's dynamic shared memory. */
typedef struct FmsWorkers
{
	FmsLayout	layout;			/* the leader's */
	int			nworkers;
	FmsCounters counters[FLEXIBLE_ARRAY_MEMBER];	/* by worker number */
} FmsWorkers;

/* Bytes of reports of `nworkers` workers. */
extern Size fms_workers_bytes(int nworkers);

/* The leader: makes empty reports in fms_workers_bytes() of memory. */
extern void fms_workers_create(FmsWorkers *workers, int nworkers);

/* A worker: true if its library has the same layout as the leader's. */
extern bool fms_workers_can_join(const FmsWorkers *workers);

/* This worker's own report; NULL if there is none for it. */
extern FmsCounters *fms_workers_own(FmsWorkers *workers);

#endif							/* FMS_WORKERS_H */
