/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  What EXPLAIN says about an FMSort node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_EXPLAIN_H
#define FMS_EXPLAIN_H

#include "postgres.h"

#include "base/compat.h"
#include "base/counters.h"
#include "keys/keys.h"

/*
 * Sort Key: deparsed from the node's target list; and Presorted Key, if the
 * input is in order of the first so many keys.
 */
extern void fms_explain_keys(PlanState *planstate, const FmsKeySpec *spec,
							 int presorted, List *ancestors,
							 ExplainState *es);

/* What the sort did; times only if they were asked for. */
extern void fms_explain_counters(const FmsCounters *counters,
								 ExplainState *es);

/*
 * The same for each parallel worker that sorted.  Not in the server's own
 * group "Workers", which no extension can add to.
 */
extern void fms_explain_workers(const FmsCounters *workers, int nworkers,
								ExplainState *es);

#endif							/* FMS_EXPLAIN_H */
