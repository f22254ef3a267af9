/*-------------------------------------------------------------------------
 *
 * merge/modes/fmsort.c
 *	  FMsort's merge (Algorithm 2): blocks are read ahead in block read
 *	  order, with up to l reads in flight.
 *
 *	  input buffer:  n + l blocks
 *
 *	  SORT  SORT  SORT ..	at most one a run; records leave from here
 *	  READING/ASSIST ..		the queue, in block read order
 *	  FREE  ..				refilled at the queue's end
 *
 *	          oldest                        newest
 *	  queue:  [1.0][0.0][2.0][1.1][0.1] ..  --> next of the order
 *	            |
 *	            +--> becomes the sort block of run 1 when its first key wins
 *
 * The merge asks for blocks in block read order (read_order.c).  So the block
 * asked for is the oldest of the queue, and the merge waits for no other read
 * (lines 8 to 10).  Every other run has at most one sort block, so a block not
 * requested yet finds a free frame.  If comparisons contradict each other,
 * find_out_of_order() gets the block.
 *
 * The paper turns the oldest assist block into a sort block when any sort
 * block is exhausted.  Here it stays in the queue until its first record is
 * due: the same blocks are in memory, and the merge waits later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/input.h"

typedef struct FmsQueue
{
	uint32		size;			/* entries of frames */
	uint32		oldest;			/* index of the oldest entry */
	uint32		count;			/* entries in use */
	uint32		depth;			/* reads in flight at most, <= l */
	uint64		unwaited;		/* blocks since the merge last waited */
	int			upcoming;		/* run of the order's next block, or -1 */
	FmsFrame   *frames[];		/* ring of `size` */
} FmsQueue;

static inline FmsQueue *
queue_of(FmsInput *input)
{
	return (FmsQueue *) input->private;
}

/* The queue's entry i; 0 is the oldest one. */
static inline FmsFrame **
entry(FmsQueue *queue, uint32 i)
{
	return &queue->frames[(queue->oldest + i) % queue->size];
}

static Size
fmsort_private_bytes(int nruns, uint32 assist_blocks)
{
	return sizeof(FmsQueue) +
		fms_mode_blocks_with_assist(nruns, assist_blocks) * sizeof(FmsFrame *);
}

/*
 * Number of reads that may start now.  As long as depth is below l the merge
 * has hardly waited; then a queue of 2 * depth blocks suffices, and blocks
 * from the page cache are still in the processor's caches when the merge
 * takes them.
 */
static inline uint32
startable(FmsInput *input)
{
	const FmsQueue *queue = queue_of(input);

	if (input->reading >= queue->depth)
		return 0;
	if (queue->depth < input->plan->assist_blocks &&
		queue->count >= 2 * queue->depth)
		return 0;
	return Min(input->nfree, queue->depth - input->reading);
}

/*
 * Number of reads to submit in one system call.  After `depth` blocks without
 * a wait the processor limits the merge, and a larger batch saves system
 * calls; a late read costs at most a batch's share of one read's latency.
 */
static inline uint32
batch_of(const FmsQueue *queue)
{
	return queue->unwaited >= queue->depth ? Max(1, queue->depth / 4) :
		fms_io_batch(queue->depth);
}

/* Does the merge have to wait for the frame's read? */
static inline bool
is_late(FmsInput *input, const FmsFrame *frame)
{
	if (frame->request.state == FMS_IO_IN_FLIGHT)
		fms_io_poll(input->plan->io);
	return frame->request.state == FMS_IO_IN_FLIGHT;
}

/* Appends the upcoming block to the queue. */
static void
enqueue(FmsInput *input)
{
	FmsQueue   *queue = queue_of(input);

	Assert(queue->count < queue->size);
	*entry(queue, queue->count++) = fms_input_request(input, queue->upcoming);
	queue->upcoming = fms_input_upcoming(input);
}

/* Removes entry i from the queue. */
static FmsFrame *
dequeue(FmsQueue *queue, uint32 i)
{
	FmsFrame   *frame = *entry(queue, i);

	for (; i > 0; i--)
		*entry(queue, i) = *entry(queue, i - 1);
	queue->oldest = (queue->oldest + 1) % queue->size;
	queue->count--;
	return frame;
}

/*
 * Returns the run's next block, though the queue's oldest block is another
 * run's: comparisons contradict each other.  Takes it out of the middle of the
 * queue, or reads it now; if no frame is free, the newest block of the queue
 * gives up its own.
 */
static pg_noinline FmsFrame *
find_out_of_order(FmsInput *input, int run)
{
	FmsQueue   *queue = queue_of(input);
	FmsFrame   *frame;
	uint32		i;

	for (i = 0; i < queue->count; i++)
	{
		if ((*entry(queue, i))->run == run)
			return dequeue(queue, i);
	}
	if (input->nfree == 0)
		fms_input_give_up(input, *entry(queue, --queue->count));
	frame = fms_input_request(input, run);
	fms_input_submit(input);
	if (queue->upcoming == run && !fms_input_has_block(input, run))
		queue->upcoming = fms_input_upcoming(input);
	return frame;
}

/*
 * Starts up to `reads` reads in block read order (lines 12 to 14).  Successive
 * blocks of one run count as one read, since io/ joins them.
 */
static void
start_reads(FmsInput *input, uint32 reads)
{
	FmsQueue   *queue = queue_of(input);
	uint32		left = startable(input);
	int			run = -1;

	for (; left > 0 && queue->upcoming >= 0; left--)
	{
		if (queue->upcoming != run && reads-- == 0)
			break;
		run = queue->upcoming;
		enqueue(input);
	}
	fms_input_submit(input);
}

/*
 * Starts a batch of reads, if there is one.  A larger number would also end
 * together, and the device would be idle until the merge sees that:
 *
 *	  all at once:	|l reads|.....|l reads|.....|l reads|	. idle
 *	  by batches:	|a|b|c|d|a|b|c|d|a|b|c|d|a|b|c|d|a|b|
 *
 * If nothing is in flight and the merge has not waited, the page cache serves
 * the reads: then one system call starts all of them.
 */
static inline void
refill(FmsInput *input, bool waited)
{
	const FmsQueue *queue = queue_of(input);
	uint32		batch = batch_of(queue);
	bool		together = input->reading == 0 && !waited;

	if (startable(input) >= batch)
		start_reads(input, together ? queue->depth : batch);
}

static void
fmsort_begin(FmsInput *input)
{
	FmsQueue   *queue = queue_of(input);

	queue->size = input->nframes;
	queue->depth = input->plan->assist_first;
	queue->upcoming = fms_input_upcoming(input);
	start_reads(input, queue->depth);
}

static FmsFrame *
fmsort_next(FmsInput *input, int run)
{
	FmsQueue   *queue = queue_of(input);
	FmsFrame   *frame;
	bool		waited;

	if (queue->count == 0)
		start_reads(input, queue->depth);
	if (likely(queue->count > 0 && queue->frames[queue->oldest]->run == run))
		frame = dequeue(queue, 0);
	else
		frame = find_out_of_order(input, run);

	queue->unwaited++;
	waited = is_late(input, frame);
	if (waited)
	{
		/* more reads in flight may spare the merge the next wait */
		queue->unwaited = 0;
		queue->depth = Min(2 * queue->depth, input->plan->assist_blocks);
	}
	fms_input_wait(input, frame);

	/* a read has finished, so another one may start */
	refill(input, waited);
	return frame;
}

static void
fmsort_exhausted(FmsInput *input, FmsFrame *frame)
{
	uint32		batch = batch_of(queue_of(input));

	fms_input_release(input, frame);

	/* polling can be a system call: only if it may allow a batch */
	if (input->nfree >= batch && startable(input) < batch)
		fms_io_poll(input->plan->io);
	refill(input, false);
}

const FmsMode fms_mode_fmsort = {
	.order = FMS_ORDER_BY_FIRST_KEYS,
	.assists = true,
	.fills_memory = false,
	.blocks = fms_mode_blocks_with_assist,
	.private_bytes = fmsort_private_bytes,
	.begin = fmsort_begin,
	.next = fmsort_next,
	.exhausted = fmsort_exhausted
};
