/*-------------------------------------------------------------------------
 *
 * node.h
 *	  The FMSort node at run time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_NODE_H
#define FMS_NODE_H

#include "postgres.h"

#include "nodes/execnodes.h"

/* Makes the node known to the server, once a process. */
extern void fms_node_register(void);

extern bool fms_node_is_sort(const PlanState *planstate);

/*
 * No more tuples will be asked for than this LIMIT needs when the first one
 * is, or, if limit is NULL, than `tuples` (0: all).
 */
extern void fms_node_set_bound(PlanState *planstate, const LimitState *limit,
							   uint64 tuples);

#endif							/* FMS_NODE_H */
