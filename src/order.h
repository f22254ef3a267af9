/*-------------------------------------------------------------------------
 *
 * order.h
 *	  The block read order: in which order the merge will need the blocks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_ORDER_H
#define FMS_ORDER_H

#include "postgres.h"

#include "counters.h"
#include "keys.h"

/*
 * The first keys of one run's blocks, in the run's order, hence sorted.
 * Opaque but for its size, so that a run can hold one.
 */
typedef struct FmsFences
{
	struct FmsFenceChunk *first;
	struct FmsFenceChunk *last;
	uint32		count;
} FmsFences;

typedef struct FmsOrder FmsOrder;

/*
 * Makes an empty block read order in the current context, which has to live
 * as long as it.
 */
extern FmsOrder *fms_order_create(FmsKeys *keys, FmsCounters *counters);

/*
 * Algorithm 1, lines 7 and 8: notes that the run's next block starts with
 * this record, and that the record extends over so many blocks (usually 1).
 */
extern void fms_order_note(FmsOrder *order, FmsFences *fences,
						   const FmsRecord *record, uint32 nblocks);

/* Frees a run's fences when the run has been merged into another one. */
extern void fms_order_forget(FmsOrder *order, FmsFences *fences);

/* Memory that all fences together take now. */
extern Size fms_order_memory_bytes(const FmsOrder *order);

/*
 * The block read order of some of the runs (Algorithm 1, line 13): a cursor
 * that names run after run, each time meaning that run's next block.
 */
typedef struct FmsOrderCursor FmsOrderCursor;

/* fences: one per run, in the order that breaks ties; must stay. */
extern FmsOrderCursor *fms_order_begin(FmsOrder *order, int nruns,
									   const FmsFences *const *fences);
extern void fms_order_end(FmsOrderCursor *cursor);

/* Bytes a cursor over so many runs takes. */
extern Size fms_order_cursor_bytes(int nruns);

/*
 * The run whose next block comes next, or -1 after the last block.  This
 * side of the cursor runs ahead, with the reads.
 */
extern int	fms_order_next(FmsOrderCursor *cursor);

/*
 * The fence of the run's first block (or chain of blocks) that the merge has
 * not asked for yet; it stands for that block in the tree of losers.  NULL
 * after the last one.  This side runs behind, with the merge.
 */
extern const FmsRecord *fms_order_fence(FmsOrderCursor *cursor, int run);

/* The merge has asked for that block, or all blocks of that chain. */
extern void fms_order_demanded(FmsOrderCursor *cursor, int run);

#endif							/* FMS_ORDER_H */
