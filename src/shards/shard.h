/*-------------------------------------------------------------------------
 *
 * shard.h
 *	  The sorted rows of one child of the merge, one after the other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SHARD_H
#define FMS_SHARD_H

#include "postgres.h"

#include "nodes/execnodes.h"

typedef struct FmsShard
{
	PlanState  *scan;
	TupleTableSlot *head;		/* its first row; NULL: unknown, or the end */

	/* The rest is an asynchronous shard's. */
	AsyncRequest *request;		/* for a row; NULL: not asynchronous */
	bool		asked;			/* the request's row has not been taken */
	int			batches;		/* begun since the scan began, at most 2 */

	char	   *buffer;			/* copies of rows; NULL: not yet needed */
	Size		buffer_bytes;	/* its size */
	Size		used_bytes;		/* rows end here */
	Size		next_byte;		/* the next row begins here */
	TupleTableSlot *slot;		/* of a row in the buffer */

	uint64		waits;			/* how often the merge waited for it */
	double		wait_us;		/* how long */
} FmsShard;

typedef struct FmsShards
{
	int			count;
	FmsShard   *shards;
	AppendState *requestor;		/* in whose name we ask */
	Bitmapset  *everyone;		/* the numbers of all shards */
	Size		share_bytes;	/* the most that one buffer may have */
} FmsShards;

/*
 * Makes shards of `count` nodes, which have begun, in the current memory
 * context.  parent: the node that merges them.
 */
extern FmsShards *fms_shards_create(PlanState *parent, PlanState **scans,
									int count);

/* Asks an asynchronous shard for rows, unless it has been asked. */
extern void fms_shard_ask(FmsShards *all, FmsShard *shard);

/*
 * Moves the shard to its next row, and waits for it if need be.  The row
 * stays valid until the next call for this shard.
 */
extern void fms_shard_next(FmsShards *all, FmsShard *shard);

/* Waits until no request is under way. */
extern void fms_shards_settle(FmsShards *all);

/* Does so, and forgets all rows: before a rescan of the scans. */
extern void fms_shards_reset(FmsShards *all);

#endif							/* FMS_SHARD_H */
