/*-------------------------------------------------------------------------
 *
 * merge/modes/multi_block.c
 *	  Multi-block mergesort: every run has a share of the input buffer, which
 *	  one read of adjacent blocks refills when it is used up, while the merge
 *	  waits.
 *
 *	  run 0:  [SORT][ASSIST][ASSIST]	n + l blocks, so 1 + l / n a run; the
 *	  run 1:  [SORT][ASSIST][ASSIST]	first l mod n runs have one more
 *	  run 2:  [free][SORT  ]
 *	          |<--- one read --->|
 *
 * This is the baseline of Flash mergesort (Lee, Roh, Jung, Park): more memory
 * makes the reads longer, but there is one read at a time.
 *
 * A share's frames are adjacent in memory, so one request can read them all.
 * A read ends at READ_MAX_BYTES and at the end of an extent; the frames behind
 * it stay empty.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

/* Largest read: longer ones gain nothing and delay a cancelled query. */
#define READ_MAX_BYTES	((uint32) 64 * 1024 * 1024)

typedef struct FmsShare
{
	FmsFrame   *frames;			/* adjacent */
	uint32		size;			/* number of frames */
	uint32		filled;			/* frames that the last read has filled */
	uint32		next;			/* of these, the next one to merge */
} FmsShare;

static inline FmsShare *
share_of(FmsInput *input, int run)
{
	return (FmsShare *) input->private + run;
}

static Size
multi_private_bytes(int nruns, uint32 assist_blocks)
{
	return nruns * sizeof(FmsShare);
}

/* Deals out the frames: a new input hands them out in address order. */
static void
multi_begin(FmsInput *input)
{
	uint32		size = input->nframes / input->nruns;
	uint32		longer = input->nframes % input->nruns;
	int			run;

	for (run = 0; run < input->nruns; run++)
	{
		FmsShare   *share = share_of(input, run);
		uint32		i;

		share->size = size + ((uint32) run < longer ? 1 : 0);
		share->frames = fms_input_take(input);
		for (i = 1; i < share->size; i++)
			(void) fms_input_take(input);
	}
}

/* Fills the run's share, which is free, by one read. */
static void
refill(FmsInput *input, int run)
{
	FmsShare   *share = share_of(input, run);
	uint32		block = input->next_block[run];
	uint32		n = Min(share->size, input->runs[run]->nblocks - block);

	n = Min(n, Max(READ_MAX_BYTES / input->plan->block_bytes, 1));
	n = Min(n, fms_run_contiguous_blocks(input->runs[run], block));
	fms_input_request_many(input, share->frames, run, n);
	fms_input_submit(input);
	share->filled = n;
	share->next = 0;
}

static FmsFrame *
multi_next(FmsInput *input, int run)
{
	FmsShare   *share = share_of(input, run);

	if (share->next == share->filled)
		refill(input, run);
	return fms_input_wait(input, &share->frames[share->next++]);
}

/* The frame is free, but stays in its run's share. */
static void
multi_exhausted(FmsInput *input, FmsFrame *frame)
{
	Assert(frame->state == FMS_FRAME_SORT);
	frame->state = FMS_FRAME_FREE;
}

const FmsMode fms_mode_multi_block = {
	.order = FMS_ORDER_NONE,
	.assists = true,
	.fills_memory = true,
	.blocks = fms_mode_blocks_with_assist,
	.private_bytes = multi_private_bytes,
	.begin = multi_begin,
	.next = multi_next,
	.exhausted = multi_exhausted
};
