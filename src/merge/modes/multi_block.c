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
 * This is the baseline of Flash mergesort (Lee, Roh, Jung, Park).  A read ends
 * at FMS_READ_MAX_BYTES and at the end of an extent; the share's frames behind
 * it stay empty.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

/* Fills the run's share, which is free, by one read.  Returns its frames. */
static FmsFrame *
refill(FmsInput *input, int run)
{
	uint32		size = input->nframes / input->nruns;
	uint32		longer = input->nframes % input->nruns;
	FmsFrame   *share =
		&input->frames[run * size + Min((uint32) run, longer)];
	uint32		block = input->next_block[run];
	uint32		block_bytes = input->plan->block_bytes;
	uint32		n = Min(size + ((uint32) run < longer ? 1 : 0),
						input->runs[run]->nblocks - block);

	n = Min(n, Max(FMS_READ_MAX_BYTES / block_bytes, 1));
	n = Min(n, fms_run_contiguous_blocks(input->runs[run], block));
	n = Min(n, fms_tape_in_row(input->plan->tape,
							   fms_run_block_address(input->runs[run], block,
													 block_bytes)) /
			block_bytes);
	fms_input_request_many(input, share, run, n);
	fms_input_submit(input);
	return share;
}

/* Returns the next frame of the share; frame_of[run] is the last one. */
static FmsFrame *
multi_next(FmsInput *input, int run)
{
	FmsFrame   *frame = input->frame_of[run];

	if (frame && frame->number + 1 < input->next_block[run])
		frame++;
	else
		frame = refill(input, run);
	input->frame_of[run] = frame;
	return fms_input_wait(input, frame);
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
	.next = multi_next,
	.exhausted = multi_exhausted
};
