/*-------------------------------------------------------------------------
 *
 * merge/modes/flash.c
 *	  Flash mergesort (Lee, Roh, Jung, Park: External Mergesort for
 *	  FlashSSDs): blocks are read in the order in which blocks are used up,
 *	  all free frames at once, whenever the last assist block has become a
 *	  sort block.
 *
 *	  input buffer:  n + l blocks
 *
 *	  SORT SORT SORT | ASSIST ASSIST ASSIST ASSIST		after a batch
 *	  SORT SORT SORT | free   free   ASSIST ASSIST		two blocks later
 *	  SORT SORT SORT | free   free   free   free		read all four, wait
 *
 * The first batch is the first blocks of all runs; then come batches of l, and
 * larger ones when runs have ended, which leave their frames free.  So B
 * blocks are read in about 1 + (B - n) / l operations.
 *
 * What is read.  A run's next block is due when its block in memory is used
 * up, that is when its last tuple leaves: so the order goes by the last keys
 * of the blocks before (read_order.c).  The paper notes (last key, run) of
 * each block and sorts that; an entry stands for the block behind its own, and
 * that of a run's last block for none.
 *
 * The other mode that reads in order, fmsort.c, came out of this one.  It
 * refills each frame when it becomes free and waits for none but the oldest
 * read; here the device has nothing to do while a batch is merged, and the
 * processor nothing while one is read.  So this file is for comparison, and
 * follows the paper's Algorithm 2 to the letter: no read is in flight while
 * tuples are merged.
 *
 * Owns the list of a batch's frames, palloc'd.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/mode.h"

/*
 * A cancelled query waits for the reads that are under way.  No device gains
 * by more at once.
 */
#define READ_MAX_BYTES	((uint32) 64 * 1024 * 1024)

typedef struct FmsBatch
{
	FmsFrame  **frames;			/* [pool->nframes], in the order */
	uint32		count;			/* of the last batch */
	uint32		next;			/* the first assist block; count: none */
} FmsBatch;

static inline FmsBatch *
batch_of(FmsInput *input)
{
	return (FmsBatch *) input->private;
}

static uint32
flash_blocks(int nruns, uint32 assist_blocks)
{
	return nruns + assist_blocks;
}

static Size
flash_private_bytes(int nruns, uint32 assist_blocks)
{
	return sizeof(FmsBatch) +
		flash_blocks(nruns, assist_blocks) * sizeof(FmsFrame *);
}

/* Reads that many blocks in one operation, or in several of READ_MAX_BYTES. */
static void
read_frames(FmsPool *pool, FmsFrame **frames, uint32 n)
{
	uint32		most = Max(READ_MAX_BYTES / pool->block_bytes, 1);

	while (n > 0)
	{
		uint32		together = Min(n, most);

		fms_pool_submit(pool, frames, together);
		fms_pool_wait_for_all(pool, frames, together);
		frames += together;
		n -= together;
	}
}

/* Reads the next so many blocks of the order (line 4). */
static void
read_batch(FmsInput *input, uint32 most)
{
	FmsBatch   *batch = batch_of(input);
	FmsPool    *pool = input->pool;

	Assert(batch->next == batch->count);
	Assert(most <= pool->nfree);

	batch->count = 0;
	batch->next = 0;
	while (batch->count < most)
	{
		int			run = fms_input_upcoming(input);
		FmsFrame   *frame;

		if (run < 0)
			break;
		frame = fms_pool_take(pool);
		fms_input_assign(input, frame, run);
		batch->frames[batch->count++] = frame;
	}
	read_frames(pool, batch->frames, batch->count);
}

static void
flash_begin(FmsInput *input)
{
	FmsBatch   *batch = palloc0(sizeof(FmsBatch));

	batch->frames = palloc(input->pool->nframes * sizeof(FmsFrame *));
	input->private = batch;
	read_batch(input, input->nruns);
}

/*
 * The merge asks for another run's block than the first assist block:
 * comparisons contradict each other.  Returns the run's next block, as in
 * merge/modes/fmsort.c.
 */
static pg_noinline FmsFrame *
find_out_of_order(FmsInput *input, int run)
{
	FmsBatch   *batch = batch_of(input);
	uint32		i;

	for (i = batch->next; i < batch->count; i++)
	{
		FmsFrame   *frame = batch->frames[i];

		if (frame->run != run)
			continue;
		for (; i > batch->next; i--)
			batch->frames[i] = batch->frames[i - 1];
		batch->next++;
		return frame;
	}
	if (input->pool->nfree == 0)
		fms_input_give_up(input, batch->frames[--batch->count]);
	return fms_input_read(input, run);
}

/* The first assist block becomes the run's sort block (line 11). */
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
	fms_pool_wait(input->pool, frame, input->runs[run]);

	if (batch->next == batch->count)
		read_batch(input, input->pool->nfree);
	return frame;
}

static void
flash_exhausted(FmsInput *input, FmsFrame *frame)
{
	fms_pool_release(input->pool, frame);
}

static void
flash_end(FmsInput *input)
{
	pfree(batch_of(input)->frames);
	pfree(batch_of(input));
}

const FmsMode fms_mode_flash = {
	.order = FMS_ORDER_BY_LAST_KEYS,
	.assists = true,
	.fills_memory = true,
	.blocks = flash_blocks,
	.private_bytes = flash_private_bytes,
	.begin = flash_begin,
	.next = flash_next,
	.exhausted = flash_exhausted,
	.end = flash_end
};
