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

#include "compat.h"
#include "counters.h"
#include "keys.h"

/* Sort Key: deparsed from the node's target list. */
extern void fms_explain_keys(PlanState *planstate, const FmsKeySpec *spec,
							 List *ancestors, ExplainState *es);

/* What the sort did; times only if they were asked for. */
extern void fms_explain_counters(const FmsCounters *counters,
								 ExplainState *es);

#endif							/* FMS_EXPLAIN_H */
