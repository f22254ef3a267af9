/*-------------------------------------------------------------------------
 *
 * merge/modes/traditional.c
 *	  Traditional merging: one block a run, read when the previous one is
 *	  exhausted, while the merge waits.
 *
 * This is the baseline without overlap of processor and device.  The authors
 * of Flash mergesort call it single-block mergesort, and so do the settings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

static uint32
traditional_blocks(int nruns, uint32 assist_blocks)
{
	return nruns;
}

static FmsFrame *
traditional_next(FmsInput *input, int run)
{
	FmsFrame   *frame = fms_input_request(input, run);

	fms_input_submit(input);
	return fms_input_wait(input, frame);
}

const FmsMode fms_mode_traditional = {
	.order = FMS_ORDER_NONE,
	.blocks = traditional_blocks,
	.next = traditional_next,
	.exhausted = fms_input_release
};
