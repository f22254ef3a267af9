/*-------------------------------------------------------------------------
 *
 * node.h
 *	  The FMSort plan node: how it is built and run.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_NODE_H
#define FMS_NODE_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/* The node's name, in EXPLAIN and to the server. */
#define FMS_NODE_NAME "FMSort"

/* Makes the node known to the server, once a process. */
extern void fms_node_register(void);

/*
 * The node that does what this Sort, or Incremental Sort, would, above that
 * child.  It shares the Sort's lists, which must live as long.  below_gather:
 * parallel workers may run it, and report what they did.
 */
extern Plan *fms_node_from_sort(const Sort *sort, Plan *child,
								bool below_gather);

extern bool fms_node_is_plan(const Plan *plan);
extern bool fms_node_is_sort(const PlanState *planstate);

/* Nodes begun by this process so far: has a query any? */
extern uint64 fms_node_begun(void);

/*
 * Says that no more tuples are asked for than this LIMIT needs, which knows
 * how many when the first one is; or than so many.
 */
extern void fms_node_set_limit(PlanState *planstate, const LimitState *limit);
extern void fms_node_set_bound(PlanState *planstate, uint64 bound);

#endif							/* FMS_NODE_H */
