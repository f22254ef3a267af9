/*-------------------------------------------------------------------------
 *
 * read_order.h
 *	  The block read order: in which order the merge will need the blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_READ_ORDER_H
#define FMS_READ_ORDER_H

#include "postgres.h"

#include "base/counters.h"
#include "order/first_key_store.h"
#include "keys/keys.h"

/*
 * By which key of a block runs are put in order; run formation notes that
 * one.  See read_order.c.
 */
typedef enum FmsOrderBy
{
	FMS_ORDER_BY_FIRST_KEYS,	/* a block is due when its first tuple is */
	FMS_ORDER_BY_LAST_KEYS,		/* when the last tuple of the block before it
								 * has left */
	FMS_ORDER_NONE				/* nobody asks for an order */
} FmsOrderBy;

/*
 * The block read order of some runs (Algorithm 1, line 13): a cursor that
 * names run after run, each time meaning that run's next block.
 */
typedef struct FmsReadOrder FmsReadOrder;

/* Position in a run or in the in-memory run from which a merge can go on. */
typedef union FmsPosition
{
	struct
	{
		uint32		block;			/* the run's blocks, if at its end */
		int32		record;			/* the next one of those that begin in the
								 * block; -1: the block has not been asked
								 * for, and starts with the next record */
	};
	uint64		in_memory_record;	/* number of the next record in memory */
} FmsPosition;

/*
 * Begins at the first block, or at `from`.  first keys: one list per run, in
 * the order of the runs that breaks ties, of the keys that `by` says; the
 * lists must stay as they are.  Memory comes from the current context, time
 * goes to FMS_COUNT_ORDER_NS.
 *
 * By first keys, a merge that goes on in the middle of blocks needs these
 * again.  They come first, in the order of the runs, and have no first key.
 * By last keys, every run's next block comes first.
 */
extern FmsReadOrder *
			fms_read_order_begin(FmsKeys *keys, FmsFirstKeyStore *store,
								 FmsOrderBy by, FmsCounters *counters,
								 int nruns,
								 const FmsFirstKeys *const *first_keys,
								 const FmsPosition *from);
extern void fms_read_order_end(FmsReadOrder *order);

/* Bytes that takes; more if keys are long. */
extern Size fms_read_order_bytes(const FmsFirstKeyMemory *memory,
								 FmsOrderBy by, int nruns);

/*
 * The run whose next block comes next, or -1 after the last block.  This
 * side runs ahead, with the reads.
 */
extern int	fms_read_order_next(FmsReadOrder *order);

/*
 * Takes the next first key of the run: that of the block, or chain of blocks,
 * for which it stands in the tree of losers from now on.  Valid until the
 * run's next one is taken.  NULL after the last one.  This side runs behind,
 * with the merge; an order by last keys does not have it.
 */
extern const FmsRecord *fms_read_order_first_key(FmsReadOrder *order, int run);

#endif							/* FMS_READ_ORDER_H */
