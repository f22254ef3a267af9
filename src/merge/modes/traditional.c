/*-------------------------------------------------------------------------
 *
 * merge/modes/traditional.c
 *	  Traditional merging: one block a run, read when the last one is used
 *	  up, while everything waits.
 *
 *	  run 0:  [SORT]
 *	  run 1:  [SORT]		n blocks
 *	  run 2:  [SORT]
 *
 * The yardstick: what a merge costs without overlapping processor and
 * device.  Flash mergesort's authors have the same merge as a yardstick and
 * call it single-block mergesort; it is here under that name, too.
 *
 * It owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/mode.h"

static uint32
traditional_blocks(int nruns, uint32 assist_blocks)
{
	return nruns;
}

static Size
traditional_private_bytes(int nruns, uint32 assist_blocks)
{
	return 0;
}

static void
traditional_begin(FmsInput *input)
{
}

static FmsFrame *
traditional_next(FmsInput *input, int run)
{
	FmsFrame   *frame = fms_input_read(input, run);

	fms_pool_wait(input->pool, frame, input->runs[run]);
	return frame;
}

static void
traditional_exhausted(FmsInput *input, FmsFrame *frame)
{
	fms_pool_release(input->pool, frame);
}

static void
traditional_end(FmsInput *input)
{
}

const FmsMode fms_mode_traditional = {
	.order = FMS_ORDER_NONE,
	.assists = false,
	.fills_memory = false,
	.blocks = traditional_blocks,
	.private_bytes = traditional_private_bytes,
	.begin = traditional_begin,
	.next = traditional_next,
	.exhausted = traditional_exhausted,
	.end = traditional_end
};
