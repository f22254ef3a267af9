/*-------------------------------------------------------------------------
 *
 * mode.h
 *	  A merge mode: which block to read, when, and into which frame.
 *
 * All modes share the merge, its leaves and its input buffer.  A mode is a
 * table of answers about blocks and knows nothing about tuples: a comparison
 * of two modes compares only their reading.  src/README.md lists what a new
 * mode needs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_MODE_H
#define FMS_MODE_H

#include "postgres.h"

#include "order/read_order.h"

typedef struct FmsInput FmsInput;
typedef struct FmsFrame FmsFrame;

typedef struct FmsMode
{
	/*
	 * Block read order of the mode.  With FMS_ORDER_BY_FIRST_KEYS, the first
	 * key of a run's next block stands in the tree, and the merge calls
	 * next() when that key wins.  Otherwise the merge calls next() as soon as
	 * the run's block is exhausted.
	 *
	 * The merge asks for blocks in exactly this order, unless comparisons
	 * contradict each other.  Then next() must return a block that the mode
	 * may not have read yet.
	 */
	FmsOrderBy	order;

	/* The mode uses l assist blocks; otherwise l is 0. */
	bool		assists;

	/*
	 * An automatic l fills the memory, as in Flash mergesort; otherwise it is
	 * the number of reads that the device can use.
	 */
	bool		fills_memory;

	/* Number of frames for n runs and l assist blocks. */
	uint32		(*blocks) (int nruns, uint32 assist_blocks);

	/* Starts the reads that precede the merge.  NULL: there are none. */
	void		(*begin) (FmsInput *input);

	/*
	 * Waits for the run's next block and returns it as a sort block.  Called
	 * only while the run has blocks left.
	 */
	FmsFrame   *(*next) (FmsInput *input, int run);

	/* Takes back a sort block whose records have all left. */
	void		(*exhausted) (FmsInput *input, FmsFrame *frame);
} FmsMode;

extern const FmsMode fms_mode_fmsort;
extern const FmsMode fms_mode_double_buffering;
extern const FmsMode fms_mode_traditional;
extern const FmsMode fms_mode_multi_block;
extern const FmsMode fms_mode_flash;

/* FmsMode.blocks of modes with a sort block a run and l assist blocks. */
static inline uint32
fms_mode_blocks_with_assist(int nruns, uint32 assist_blocks)
{
	return nruns + assist_blocks;
}

#endif							/* FMS_MODE_H */
