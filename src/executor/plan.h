/*-------------------------------------------------------------------------
 *
 * plan.h
 *	  The FMSort node in a plan tree.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_PLAN_H
#define FMS_PLAN_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

#include "keys/keys.h"

/* The node's name, in EXPLAIN and to the server. */
#define FMS_NODE_NAME "FMSort"

/* Makes the node known to the server, once a process. */
extern void fms_plan_register(Node *(*create_state) (CustomScan *plan));

/*
 * A node that does what a Sort or Incremental Sort would do above `child`.
 * It shares the Sort's lists.  below_gather: parallel workers may run it, and
 * report what they did.
 */
extern Plan *fms_plan_from_sort(const Sort *sort, Plan *child,
								bool below_gather);

extern bool fms_plan_is_ours(const Plan *plan);

/*
 * Sets *spec to the node's sort keys, in the current context.  Returns the
 * number of leading columns that the input is in order of.  Raises an error if
 * another version of the library made the plan.
 */
extern int	fms_plan_read(const CustomScan *plan, FmsKeySpec *spec);

#endif							/* FMS_PLAN_H */
