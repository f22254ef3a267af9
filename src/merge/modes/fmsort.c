/*-------------------------------------------------------------------------
 *
 * merge/modes/fmsort.c
 *	  FMsort's merge (Algorithm 2): blocks are read ahead in block read
 *	  order, with up to l reads in flight.
 *
 *	  n + l blocks:  SORT ..		at most one a run; records leave it
 *					 READING/ASSIST	the queue, in block read order
 *					 FREE ..		refilled at the queue's end
 *
 *	          oldest                        newest
 *	  queue:  [1.0][0.0][2.0][1.1][0.1] ..  --> next of the order
 *	            |
 *	            +--> becomes the sort block of run 1 when its first key wins
 *
 * The merge asks for blocks in block read order (read_order.c).  So the block
 * asked for is the oldest of the queue, and the merge waits for no other read
 * (lines 8 to 10).  Each of the other n - 1 runs occupies at most one frame as
 * sort block, so a free frame exists for a block that has not been requested.
 *
 * The paper waits for the oldest block when any sort block is exhausted.  Here
 * the merge waits when the block's first record is due.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

/*
 * Number of reads that may start now.  While the depth is below l, the merge
 * has hardly waited; then a queue of 2 * depth blocks suffices, and blocks
 * from the page cache stay in the processor's caches until the merge takes
 * them.
 */
static inline uint32
startable(const FmsInput *input)
{
	uint32		depth = input->assist_used;

	if (input->reading >= depth)
		return 0;
	if (depth < input->plan->assist_blocks && input->queued >= 2 * depth)
		return 0;
	return Min(input->nfree, depth - input->reading);
}

/* Reads to submit in one call; more if the processor limits the merge. */
static inline uint32
batch_of(const FmsInput *input)
{
	uint32		depth = input->assist_used;

	return input->unwaited >= depth ? Max(1, depth / 4) : fms_io_batch(depth);
}

/* Starts reads (lines 12 to 14); the kernel merges adjacent ones of a run. */
static void
start_reads(FmsInput *input, uint32 reads)
{
	uint32		left = startable(input);
	int			run = -1;

	for (; left > 0 && input->upcoming >= 0; left--)
	{
		if (input->upcoming != run && reads-- == 0)
			break;
		run = input->upcoming;
		fms_input_enqueue(input);
	}
	fms_input_submit(input);
}

/*
 * Starts a batch of reads, if there is one.  A larger number would also end
 * together, and the device would be idle until the merge sees that.  If
 * nothing is in flight and the merge has not waited, the page cache serves the
 * reads: then one system call starts all of them.
 */
static inline void
refill(FmsInput *input, bool waited)
{
	uint32		batch = batch_of(input);
	bool		together = input->reading == 0 && !waited;

	if (startable(input) >= batch)
		start_reads(input, together ? input->assist_used : batch);
}

static void
fmsort_begin(FmsInput *input)
{
	input->assist_used = input->plan->assist_first;
	start_reads(input, input->assist_used);
}

static FmsFrame *
fmsort_next(FmsInput *input, int run)
{
	FmsFrame   *frame;
	bool		waited;

	if (input->queued == 0)
		start_reads(input, input->assist_used);
	frame = fms_input_dequeue(input, run);

	input->unwaited++;
	waited = fms_tape_is_late(input->plan->tape, &frame->request);
	if (waited)
	{
		/* more reads in flight may spare the merge the next wait */
		input->unwaited = 0;
		input->assist_used = Min(2 * input->assist_used,
								 input->plan->assist_blocks);
	}
	fms_input_wait(input, frame);

	/* a read has finished, so another one may start */
	refill(input, waited);
	return frame;
}

static void
fmsort_exhausted(FmsInput *input, FmsFrame *frame)
{
	uint32		batch = batch_of(input);

	fms_input_release(input, frame);

	/* polling can be a system call: only if it may allow a batch */
	if (input->nfree >= batch && startable(input) < batch)
		fms_io_poll(input->plan->io);
	refill(input, false);
}

const FmsMode fms_mode_fmsort = {
	.order = FMS_ORDER_BY_FIRST_KEYS,
	.assists = true,
	.blocks = fms_mode_blocks_with_assist,
	.begin = fmsort_begin,
	.next = fmsort_next,
	.exhausted = fmsort_exhausted
};
