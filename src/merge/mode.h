/*-------------------------------------------------------------------------
 *
 * mode.h
 *	  What a merge mode decides: which block to read, when, and into what.
 *
 * All modes share the engine (merge.c), the tuples and the way they leave.
 * A mode is only the answer to these questions, so comparing two modes
 * compares exactly that.
 *
 *	  how many blocks the input buffer has for n runs
 *	  what to read before the merge starts
 *	  what to do when a run wants its next block
 *	  what to do with a block whose tuples are used up
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_MODE_H
#define FMS_MODE_H

#include "postgres.h"

#include "order/read_order.h"
#include "merge/pool.h"

/* What the mode sees of a merge. */
typedef struct FmsInput
{
	int			nruns;			/* n */
	FmsRun	  **runs;			/* [nruns], earlier arrivals first */
	uint32	   *next_block;		/* [nruns] first block not yet requested */
	uint32		assist_blocks;	/* l, where the mode has them */
	uint32		assist_first;	/* of them to begin with: the others are used
								 * once the merge has had to wait */
	uint32		assist_used;	/* of them by now; the mode's to say */
	FmsPool    *pool;
	FmsReadOrder *order;		/* NULL if the mode does not follow it */
	void	   *private;		/* the mode's own */
} FmsInput;

typedef struct FmsMode
{
	/*
	 * The block read order it reads in.  By first keys, a run without a block
	 * stands in the tree with the first key of its next one, and next() is
	 * called when that first key wins.  Otherwise next() is called as soon as
	 * a run's block is used up.  Either way the demand follows the order
	 * exactly if comparisons do not contradict each other.  If they do, next()
	 * has to return a block that it may not have read yet.
	 */
	FmsOrderBy	order;

	/* Does it use l blocks more than it needs?  Else l is 0. */
	bool		assists;

	/*
	 * Automatic l: as many blocks as the memory of run formation holds, as
	 * in Flash mergesort, and not as many as the device is likely to use.
	 */
	bool		fills_memory;

	/* Blocks of input buffer for n runs and l assist blocks. */
	uint32		(*blocks) (int nruns, uint32 assist_blocks);

	/* Bytes it allocates for itself, for n runs and l assist blocks. */
	Size		(*private_bytes) (int nruns, uint32 assist_blocks);

	/* Allocates its own data, and starts reading what it wants first. */
	void		(*begin) (FmsInput *input);

	/*
	 * The run's next block, as a sort block; blocks until it is there.  Only
	 * called while the run has blocks left.
	 */
	FmsFrame   *(*next) (FmsInput *input, int run);

	/* All tuples of a sort block have been taken. */
	void		(*exhausted) (FmsInput *input, FmsFrame *frame);

	void		(*end) (FmsInput *input);
} FmsMode;

extern const FmsMode fms_mode_fmsort;
extern const FmsMode fms_mode_double_buffering;
extern const FmsMode fms_mode_traditional;
extern const FmsMode fms_mode_multi_block;
extern const FmsMode fms_mode_flash;

/* The next block of a run that nobody has requested, into that frame. */
static inline void
fms_input_assign(FmsInput *input, FmsFrame *frame, int run)
{
	fms_pool_assign(input->pool, frame, run, input->runs[run],
					input->next_block[run]++);
}

static inline bool
fms_input_has_block(const FmsInput *input, int run)
{
	return input->next_block[run] < input->runs[run]->nblocks;
}

/*
 * The run whose next block the order has next, or -1 after the last block.  A
 * run that has no block left, because next() was called out of order, is
 * passed.
 */
static inline int
fms_input_upcoming(FmsInput *input)
{
	int			run;

	do
		run = fms_read_order_next(input->order);
	while (run >= 0 && !fms_input_has_block(input, run));
	return run;
}

/* Starts to read the run's next block; there must be a free frame. */
static inline FmsFrame *
fms_input_read(FmsInput *input, int run)
{
	FmsFrame   *frame = fms_pool_take(input->pool);

	fms_input_assign(input, frame, run);
	fms_pool_submit(input->pool, &frame, 1);
	return frame;
}

/* Frees the frame of a block that will be read again; its run's newest one. */
static inline void
fms_input_give_up(FmsInput *input, FmsFrame *frame)
{
	Assert(frame->number + 1 == input->next_block[frame->run]);
	input->next_block[frame->run]--;
	fms_pool_give_up(input->pool, frame);
}

#endif							/* FMS_MODE_H */
