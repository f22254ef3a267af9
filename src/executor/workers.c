/*-------------------------------------------------------------------------
 *
 * workers.c
 *	  What parallel workers report to their leader.
 *
 * Each worker sorts its own input and writes its counters into a slot of the
 * query's dynamic shared memory.  The server offers such memory only to nodes
 * that are parallel-aware.  So the node below a Gather is parallel-aware, and
 * EXPLAIN calls it "Parallel Custom Scan".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"

#include "executor/workers.h"

Size
fms_workers_bytes(int nworkers)
{
	return offsetof(FmsWorkers, counters) + nworkers * sizeof(FmsCounters);
}

void
fms_workers_create(FmsWorkers *workers, int nworkers)
{
	memset(workers, 0, fms_workers_bytes(nworkers));
	workers->layout = fms_layout(0, 0, 0);
	workers->nworkers = nworkers;
}

bool
fms_workers_can_join(const FmsWorkers *workers)
{
	FmsLayout	layout = fms_layout(0, 0, 0);

	return fms_layout_is(&workers->layout, &layout);
}

FmsCounters *
fms_workers_own(FmsWorkers *workers)
{
	if (!IsParallelWorker() || ParallelWorkerNumber >= workers->nworkers)
		return NULL;
	return &workers->counters[ParallelWorkerNumber];
}
