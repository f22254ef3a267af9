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

#include "nodes/plannodes.h"

/* As EXPLAIN shows it, and as plans find it again in a parallel worker. */
#define FMS_NODE_NAME	"FMSort"

/* Makes the node known; called once, when the library is loaded. */
extern void fms_node_register(void);

/* The FMSort node that does what this Sort does, in its place. */
extern Plan *fms_node_from_sort(Sort *sort);

#endif							/* FMS_NODE_H */
