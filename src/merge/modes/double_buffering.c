/*-------------------------------------------------------------------------
 *
 * merge/modes/double_buffering.c
 *	  Double buffering: two blocks a run; while one is merged, the run's next
 *	  one is read into the other.
 *
 *	  run 0:  [SORT][READING]
 *	  run 1:  [SORT][READING]		2n blocks, up to n reads at once
 *	  run 2:  [SORT][READING]
 *
 * Each run looks only one block ahead: if the merge needs several blocks of
 * one run in a row, it waits, while blocks of other runs arrive long before
 * they are needed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

static uint32
double_blocks(int nruns, uint32 assist_blocks)
{
	return 2 * nruns;
}

/* Requests the run's next block, if there is one, into frame_of[run]. */
static void
read_ahead(FmsInput *input, int run)
{
	input->frame_of[run] = fms_input_has_block(input, run) ?
		fms_input_request(input, run) : NULL;
}

static void
double_begin(FmsInput *input)
{
	for (int run = 0; run < input->nruns; run++)
		read_ahead(input, run);
	fms_input_submit(input);
}

/* Reads the run's next block but one, and waits for the next one. */
static FmsFrame *
double_next(FmsInput *input, int run)
{
	FmsFrame   *frame = input->frame_of[run];

	Assert(frame != NULL);
	read_ahead(input, run);
	fms_input_submit(input);
	return fms_input_wait(input, frame);
}

const FmsMode fms_mode_double_buffering = {
	.order = FMS_ORDER_NONE,
	.blocks = double_blocks,
	.begin = double_begin,
	.next = double_next,
	.exhausted = fms_input_release
};
