/*-------------------------------------------------------------------------
 *
 * shards.h
 *	  The FMSort Merge node: merges what other servers have sorted.
 *
 * PostgreSQL's Merge Append asks a foreign server for rows when it needs
 * them, and waits.  So the servers below it sort one after the other.  This
 * node first asks all of them, then merges:
 *
 *	  Merge Append						CustomScan "FMSort Merge"
 *	    Foreign Scan on orders_1	==>	  Async Foreign Scan on orders_1
 *	    Foreign Scan on orders_2		  Async Foreign Scan on orders_2
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SHARDS_H
#define FMS_SHARDS_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* The node's name, in EXPLAIN and to the server. */
#define FMS_SHARDS_NAME "FMSort Merge"

/* Makes the node known to the server, once a process. */
extern void fms_shards_register(void);

/*
 * A node that does what a Merge Append of `statement` would do above these
 * children, or NULL if the Merge Append stays (plan.c).  The node shares lists
 * of the Merge Append.  eflags: the executor's, of the statement.
 */
extern Plan *fms_shards_plan(const MergeAppend *merge, List *children,
							 const PlannedStmt *statement, int eflags);

extern bool fms_shards_is_ours(const Plan *plan);

/* The Merge Append in whose place the node is, without its children. */
extern const MergeAppend *fms_shards_merge_append(const CustomScan *node);

/* ---- merge.c: the node at run time ---- */

/* Makes the state of a node that is about to begin. */
extern Node *fms_shards_create_state(CustomScan *plan);

/* The node's children; sets *count to their number. */
extern PlanState **fms_shards_children(PlanState *planstate, int *count);

#endif							/* FMS_SHARDS_H */
