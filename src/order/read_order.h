/*-------------------------------------------------------------------------
 *
 * read_order.h
 *	  The block read order: in which order the merge will need the blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_READ_ORDER_H
#define FMS_READ_ORDER_H

#include "keys/keys.h"
#include "order/first_key_store.h"

/* The key of a block that decides its position; run formation notes it. */
typedef enum FmsOrderBy
{
	FMS_ORDER_BY_FIRST_KEYS,	/* a block is due when its first tuple is */
	FMS_ORDER_BY_LAST_KEYS,		/* when the block before it has been used up */
	FMS_ORDER_NONE				/* the merge follows no read order */
} FmsOrderBy;

/* Names run after run, meaning the run's next block (Algorithm 1, line 13). */
typedef struct FmsReadOrder FmsReadOrder;

/* Where a merge goes on in a run, or in the in-memory run. */
typedef union FmsPosition
{
	struct
	{
		uint32		block;		/* the run's blocks, if at its end */
		int32		record;		/* number of the next one that begins there;
								 * -1: the block has not been asked for */
	};
	uint64		in_memory_record;	/* number of the next record in memory */
} FmsPosition;

/*
 * Begins the order at the runs' first blocks, or at from[nruns] if not NULL.
 * first_keys[nruns] are in the order of the runs that breaks ties, and must
 * stay unchanged.  Memory comes from the current context.  Blocks in whose
 * middle a merge goes on come first, and have no first key.
 */
extern FmsReadOrder *
fms_read_order_begin(FmsFirstKeyStore *store, FmsOrderBy by, int nruns,
					 const FmsFirstKeys *const *first_keys,
					 const FmsPosition *from);

extern void fms_read_order_end(FmsReadOrder *order);

/* Memory of an order of nruns runs, in bytes. */
extern Size fms_read_order_bytes(const FmsFirstKeyMemory *memory,
								 FmsOrderBy by, int nruns);

/* The run whose next block is to be read next, or -1 after the last block. */
extern int	fms_read_order_next(FmsReadOrder *order);

/* The run's next first key, valid until its next call; NULL after the last. */
extern const FmsRecord *fms_read_order_first_key(FmsReadOrder *order, int run);

/*
 * Sets from[nruns] to where a merge can begin if its first `rows` records are
 * not wanted.  Each record before these positions is one of these; returns
 * their number.  last_rows[nruns]: records from each run's last first key on.
 * Takes the memory of fms_read_order_begin() meanwhile.
 */
extern uint64 fms_read_order_skip(FmsFirstKeyStore *store, FmsOrderBy by,
								  int nruns,
								  const FmsFirstKeys *const *first_keys,
								  const uint32 *last_rows, uint64 rows,
								  FmsPosition *from);

#endif							/* FMS_READ_ORDER_H */
