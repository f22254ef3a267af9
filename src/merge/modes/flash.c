/*-------------------------------------------------------------------------
 *
 * merge/modes/flash.c
 *	  Flash mergesort (Lee, Roh, Jung, Park: External Mergesort for
 *	  FlashSSDs): blocks are read in the order in which blocks are exhausted,
 *	  all free frames at once, when the last assist block has become a sort
 *	  block.
 *
 *	  input buffer:  n + l blocks
 *
 *	  SORT SORT SORT | ASSIST ASSIST ASSIST ASSIST		after a batch
 *	  SORT SORT SORT | free   free   ASSIST ASSIST		two blocks later
 *	  SORT SORT SORT | free   free   free   free		read all four, wait
 *
 * The first batch is the first block of every run.  The next batches have l
 * blocks, and more when runs have ended, so B blocks take about
 * 1 + (B - n) / l operations.
 *
 * A run's next block is needed when its block in memory is exhausted, that is
 * when the block's last record leaves, so the order goes by the blocks' last
 * keys (read_order.c).
 *
 * The mode is here to compare with.  It follows the paper's Algorithm 2: no
 * read is in flight while records are merged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

/* Largest batch: a cancelled query waits for the reads in flight. */
#define READ_MAX_BYTES	((uint32) 64 * 1024 * 1024)

typedef struct FmsBatch
{
	uint32		count;			/* frames of the last batch */
	uint32		next;			/* the first assist block; count: none */
	FmsFrame   *frames[];		/* [nframes of the input], in read order */
} FmsBatch;

static inline FmsBatch *
batch_of(FmsInput *input)
{
	return (FmsBatch *) input->private;
}

static Size
flash_private_bytes(int nruns, uint32 assist_blocks)
{
	return sizeof(FmsBatch) +
		fms_mode_blocks_with_assist(nruns, assist_blocks) * sizeof(FmsFrame *);
}

/*
 * Reads up to `most` blocks in block read order (line 4), READ_MAX_BYTES at a
 * time, and waits for them.
 */
static void
read_batch(FmsInput *input, uint32 most)
{
	FmsBatch   *batch = batch_of(input);
	uint32		together = Max(READ_MAX_BYTES / input->plan->block_bytes, 1);
	int			run = 0;

	Assert(batch->next == batch->count);
	Assert(most <= input->nfree);

	batch->count = batch->next = 0;
	while (batch->count < most && run >= 0)
	{
		uint32		waited = batch->count;
		uint32		stop = Min(most, batch->count + together);

		while (batch->count < stop && (run = fms_input_upcoming(input)) >= 0)
			batch->frames[batch->count++] = fms_input_request(input, run);
		fms_input_submit(input);
		for (; waited < batch->count; waited++)
			fms_tape_wait(input->plan->tape, &batch->frames[waited]->request);
	}
}

static void
flash_begin(FmsInput *input)
{
	read_batch(input, input->nruns);
}

/*
 * Returns the run's next block, though the first assist block is another
 * run's: comparisons contradict each other.  See fmsort.c.
 */
static pg_noinline FmsFrame *
find_out_of_order(FmsInput *input, int run)
{
	FmsBatch   *batch = batch_of(input);
	FmsFrame   *frame;
	uint32		i;

	for (i = batch->next; i < batch->count; i++)
	{
		frame = batch->frames[i];
		if (frame->run != run)
			continue;
		for (; i > batch->next; i--)
			batch->frames[i] = batch->frames[i - 1];
		batch->next++;
		return frame;
	}
	if (input->nfree == 0)
		fms_input_give_up(input, batch->frames[--batch->count]);
	frame = fms_input_request(input, run);
	fms_input_submit(input);
	return frame;
}

/* Makes the first assist block the run's sort block (line 11). */
static FmsFrame *
flash_next(FmsInput *input, int run)
{
	FmsBatch   *batch = batch_of(input);
	FmsFrame   *frame;

	if (likely(batch->next < batch->count &&
			   batch->frames[batch->next]->run == run))
		frame = batch->frames[batch->next++];
	else
		frame = find_out_of_order(input, run);
	fms_input_wait(input, frame);

	if (batch->next == batch->count)
		read_batch(input, input->nfree);
	return frame;
}

const FmsMode fms_mode_flash = {
	.order = FMS_ORDER_BY_LAST_KEYS,
	.assists = true,
	.fills_memory = true,
	.blocks = fms_mode_blocks_with_assist,
	.private_bytes = flash_private_bytes,
	.begin = flash_begin,
	.next = flash_next,
	.exhausted = fms_input_release
};
