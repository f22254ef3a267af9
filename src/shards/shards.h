/*-------------------------------------------------------------------------
 *
 * shards.h
 *	  The FMSort Merge node: merges what other servers have sorted.
 *
 * Below PostgreSQL's Merge Append, one server sorts after the other.  This
 * node first asks all of them, then merges.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SHARDS_H
#define FMS_SHARDS_H

#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

/* The node's name, in EXPLAIN and to the server. */
#define FMS_MERGE_NAME "FMSort Merge"

/* ---- async.c: which Merge Appends become FMSort Merge nodes ---- */

/*
 * Makes children in a copy of a Merge Append's list asynchronous.  Returns
 * whether there is any; else the Merge Append stays.
 */
extern bool fms_async_mark(List *children, const MergeAppend *merge,
						   const PlannedStmt *statement, int eflags);

/* ---- merge.c: the node at run time ---- */

extern Node *fms_merge_create_state(CustomScan *plan);

/* The children; sets *count to their number.  NULL for another node. */
extern PlanState **fms_merge_children(PlanState *planstate, int *count);

/* ---- shard.c: the rows of one child after the other ---- */

typedef struct FmsShard
{
	PlanState  *scan;
	TupleTableSlot *head;		/* its first row; NULL: unknown, or the end */

	/* The rest is an asynchronous shard's. */
	AsyncRequest *request;		/* for a row; NULL: not asynchronous */
	bool		asked;			/* the request's row has not been taken */
	int			batches;		/* begun since the scan began, at most 2 */
	MemoryContext context;		/* of the rows that were copied */
	List	   *rows;			/* their MinimalTuples */
	int			next;			/* number of the next one */
	TupleTableSlot *slot;		/* of one of them */
	Size		peak_bytes;		/* of their memory */
	double		wait_us;		/* how long the merge has waited for rows */
} FmsShard;

typedef struct FmsShards
{
	int			count;
	PlanState **scans;			/* [count] */
	FmsShard   *shards;			/* [count] */
	AppendState *requestor;		/* in whose name we ask */
	Size		share_bytes;	/* of memory, for one shard's rows */
} FmsShards;

/* Makes shards of `count` nodes, which have begun, for the node `parent`. */
extern FmsShards *fms_shards_create(PlanState *parent, PlanState **scans,
									int count);

/* Asks an asynchronous shard for rows, unless it has been asked. */
extern void fms_shard_ask(FmsShards *all, FmsShard *shard);

/* Moves the shard to its next row, which is valid until the next call. */
extern void fms_shard_next(FmsShards *all, FmsShard *shard);

/* Waits until no request is under way. */
extern void fms_shards_settle(FmsShards *all);

/* Forgets all rows, before a rescan. */
extern void fms_shards_reset(FmsShards *all);

#endif							/* FMS_SHARDS_H */
