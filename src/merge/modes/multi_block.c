/*-------------------------------------------------------------------------
 *
 * merge/modes/multi_block.c
 *	  Multi-block mergesort: the input buffer is dealt out to the runs, and a
 *	  run's share is refilled in one read of adjacent blocks when it is used
 *	  up, while everything waits.
 *
 *	  run 0:  [SORT][ASSIST][ASSIST]	n + l blocks, so 1 + l / n a run; the
 *	  run 1:  [SORT][ASSIST][ASSIST]	first l mod n runs have one more
 *	  run 2:  [free][SORT  ]
 *	          |<--- one read --->|
 *
 * The yardstick of Flash mergesort (Lee, Roh, Jung, Park): more memory makes
 * the reads longer, but there is never more than one of them.
 *
 * A share stays the run's, so its frames lie next to each other in memory as
 * its blocks do on the tape, and one request can read them all.  No read is
 * longer than READ_MAX_BYTES, or than blocks lie in a row on the tape; frames
 * beyond that stay empty.
 *
 * Owns a struct a run, palloc'd.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/mode.h"

/* No device gains by longer reads. */
#define READ_MAX_BYTES	((uint32) 64 * 1024 * 1024)

typedef struct FmsShare
{
	FmsFrame   *frames;			/* adjacent */
	uint32		size;			/* of them */
	uint32		filled;			/* of them, by the last read */
	uint32		next;			/* of these, the one to be merged next */
} FmsShare;

static inline FmsShare *
share_of(FmsInput *input, int run)
{
	return (FmsShare *) input->private + run;
}

static uint32
multi_blocks(int nruns, uint32 assist_blocks)
{
	return nruns + assist_blocks;
}

static Size
multi_private_bytes(int nruns, uint32 assist_blocks)
{
	return nruns * sizeof(FmsShare);
}

/* Deals the frames out: a new pool hands them out as they lie in memory. */
static void
multi_begin(FmsInput *input)
{
	FmsPool    *pool = input->pool;
	uint32		size = pool->nframes / input->nruns;
	uint32		longer = pool->nframes % input->nruns;
	int			run;

	input->private = palloc0(input->nruns * sizeof(FmsShare));
	for (run = 0; run < input->nruns; run++)
	{
		FmsShare   *share = share_of(input, run);
		uint32		i;

		share->size = size + ((uint32) run < longer ? 1 : 0);
		share->frames = fms_pool_take(pool);
		for (i = 1; i < share->size; i++)
			(void) fms_pool_take(pool);
	}
}

/* All of the share is free: one read fills it. */
static void
refill(FmsInput *input, int run)
{
	FmsShare   *share = share_of(input, run);
	uint32		block = input->next_block[run];
	uint32		n = Min(share->size, input->runs[run]->nblocks - block);

	n = Min(n, Max(READ_MAX_BYTES / input->pool->block_bytes, 1));
	n = Min(n, fms_run_contiguous_blocks(input->runs[run], block));
	fms_pool_assign_neighbours(input->pool, share->frames, n, run,
							   input->runs[run], block);
	input->next_block[run] += n;
	share->filled = n;
	share->next = 0;
	fms_pool_submit(input->pool, &share->frames, 1);
}

static FmsFrame *
multi_next(FmsInput *input, int run)
{
	FmsShare   *share = share_of(input, run);
	FmsFrame   *frame;

	if (share->next == share->filled)
		refill(input, run);
	frame = &share->frames[share->next++];
	fms_pool_wait(input->pool, frame, input->runs[run]);
	return frame;
}

static void
multi_exhausted(FmsInput *input, FmsFrame *frame)
{
	fms_pool_vacate(input->pool, frame);
}

static void
multi_end(FmsInput *input)
{
	pfree(input->private);
}

const FmsMode fms_mode_multi_block = {
	.order = FMS_ORDER_NONE,
	.assists = true,
	.fills_memory = true,
	.blocks = multi_blocks,
	.private_bytes = multi_private_bytes,
	.begin = multi_begin,
	.next = multi_next,
	.exhausted = multi_exhausted,
	.end = multi_end
};
