/*-------------------------------------------------------------------------
 *
 * merge/modes/flash.c
 *	  Flash mergesort (Lee, Roh, Jung, Park: External Mergesort for
 *	  FlashSSDs): when the last assist block has become a sort block, all free
 *	  frames are read into, in the order in which blocks are exhausted.
 *
 *	  input buffer:  n + l blocks
 *
 *	  SORT SORT SORT | ASSIST ASSIST ASSIST ASSIST		after a batch
 *	  SORT SORT SORT | free   free   ASSIST ASSIST		two blocks later
 *	  SORT SORT SORT | free   free   free   free		read all four, wait
 *
 * The first batch is the first block of every run.  B blocks take about
 * 1 + (B - n) / l operations.  The order goes by the blocks' last keys
 * (read_order.c).
 *
 * The mode exists for comparison.  It follows the paper's Algorithm 2: no
 * read is in flight while records are merged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

/* Reads up to `most` blocks in block read order (line 4), and waits. */
static void
read_batch(FmsInput *input, uint32 most)
{
	uint32		together =
		Max(FMS_READ_MAX_BYTES / input->plan->block_bytes, 1);

	Assert(input->queued == 0);
	Assert(most <= input->nfree);

	while (input->queued < most && input->upcoming >= 0)
	{
		uint32		i = input->queued;
		uint32		stop = Min(most, i + together);

		while (input->queued < stop && input->upcoming >= 0)
			fms_input_enqueue(input);
		fms_input_submit(input);
		for (; i < input->queued; i++)
			fms_tape_wait(input->plan->tape,
						  &(*fms_input_queued(input, i))->request);
	}
}

static void
flash_begin(FmsInput *input)
{
	read_batch(input, input->nruns);
}

/* Makes the first assist block the run's sort block (line 11). */
static FmsFrame *
flash_next(FmsInput *input, int run)
{
	FmsFrame   *frame = fms_input_dequeue(input, run);

	fms_input_wait(input, frame);
	if (input->queued == 0)
		read_batch(input, input->nfree);
	return frame;
}

const FmsMode fms_mode_flash = {
	.order = FMS_ORDER_BY_LAST_KEYS,
	.assists = true,
	.fills_memory = true,
	.blocks = fms_mode_blocks_with_assist,
	.begin = flash_begin,
	.next = flash_next,
	.exhausted = fms_input_release
};
