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
 * Reads and merging overlap, but each run looks only one block ahead: when
 * several blocks of one run are needed in a row the merge waits, while
 * blocks of other runs lie there long before their time.
 *
 * Owns one pointer a run, palloc'd.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/mode.h"

/* input->private: the frame that holds or reads each run's next block. */
static inline FmsFrame **
ahead_of(FmsInput *input)
{
	return (FmsFrame **) input->private;
}

static uint32
double_blocks(int nruns, uint32 assist_blocks)
{
	return 2 * nruns;
}

static Size
double_private_bytes(int nruns, uint32 assist_blocks)
{
	return nruns * sizeof(FmsFrame *);
}

/* All runs' first blocks, in one batch. */
static void
double_begin(FmsInput *input)
{
	FmsPool    *pool = input->pool;
	int			n = 0;
	int			run;

	input->private = palloc0(input->nruns * sizeof(FmsFrame *));
	for (run = 0; run < input->nruns; run++)
	{
		FmsFrame   *frame;

		if (!fms_input_has_block(input, run))
			continue;
		frame = fms_pool_take(pool);
		fms_input_assign(input, frame, run);
		ahead_of(input)[run] = frame;
		pool->batch[n++] = frame;
	}
	fms_pool_submit(pool, pool->batch, n);
}

/* Takes the block read ahead, and reads the one after it meanwhile. */
static FmsFrame *
double_next(FmsInput *input, int run)
{
	FmsFrame   *frame = ahead_of(input)[run];
	FmsFrame   *spare = NULL;

	Assert(frame != NULL);
	if (fms_input_has_block(input, run))
		spare = fms_input_read(input, run);
	ahead_of(input)[run] = spare;
	fms_pool_wait(input->pool, frame, input->runs[run]);
	return frame;
}

static void
double_exhausted(FmsInput *input, FmsFrame *frame)
{
	fms_pool_release(input->pool, frame);
}

static void
double_end(FmsInput *input)
{
	pfree(input->private);
}

const FmsMode fms_mode_double_buffering = {
	.order = FMS_ORDER_NONE,
	.assists = false,
	.fills_memory = false,
	.blocks = double_blocks,
	.private_bytes = double_private_bytes,
	.begin = double_begin,
	.next = double_next,
	.exhausted = double_exhausted,
	.end = double_end
};
