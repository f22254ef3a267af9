/*-------------------------------------------------------------------------
 *
 * merge/modes/fmsort.c
 *	  FMsort's merge (Algorithm 2): blocks are read ahead in block read
 *	  order, by as many reads at once as there are assist blocks.
 *
 *	  input buffer:  n + l blocks
 *
 *	  SORT  SORT  SORT ..	at most one a run; tuples leave from here
 *	  READING/ASSIST ..		the queue, in block read order
 *	  FREE  ..				refilled at once, at the queue's end
 *
 *	          oldest                        newest
 *	  queue:  [1.0][0.0][2.0][1.1][0.1] ..  --> next of the order
 *	            |
 *	            +--> becomes the sort block of run 1 when its first key wins
 *
 * The merge asks for blocks in block read order (see read_order.c), so the
 * block asked for is always the queue's oldest, and that read is the only one
 * ever waited for (lines 8 to 10).  Since every other run has at most one sort
 * block, a block asked for but not yet requested always finds a free frame.
 *
 * A comparison function that contradicts itself breaks that rule: the block
 * asked for stands further behind in the queue, or not there at all.  Then the
 * mode takes it out of the queue, or reads it at once.  The order's names of
 * that run's blocks then mean the blocks behind it.
 *
 * Where the paper makes the oldest assist block a sort block as soon as any
 * sort block is exhausted, here it waits in the queue until its own first
 * tuple is due.  The blocks in memory are the same ones; the merge waits
 * later or not at all.
 *
 * At most l reads are with the device at once, so l means what it means in
 * the paper: the parallel I/O level.
 *
 * Where l was not set it is what the memory allows, and few of the assist
 * blocks are used at first: blocks that come from the page cache are there at
 * once, and are still in the processor's caches when the merge takes them if
 * they were not read long before.  Each time the merge has to wait, twice as
 * many are used.
 *
 * Submitting costs a system call, so freed frames are collected until a
 * fraction of l has come together: a larger one when the merge has not waited
 * for l blocks, as the processor is then what takes the time (fms_io_batch and
 * fms_io_batch_at_leisure).  No more than that are submitted at once, either,
 * as long as the device has others to work on: reads that begin together end
 * together, l of them, and the device has nothing to do until the merge has
 * seen that.  Nor when that has happened and the merge has waited, or it would
 * again; the merge comes by twice a block, so the device is busy soon.  If it
 * did not have to wait (the page cache has them), all at once is a system call
 * for all.
 *
 *	  all at once:	|l reads|.....|l reads|.....|l reads|	. idle
 *	  by batches:	|a|b|c|d|a|b|c|d|a|b|c|d|a|b|c|d|a|b|
 *
 * Blocks of a run that are needed one after the other are one operation
 * (io.c), so they count as one of the batch.
 *
 * Owns the queue, palloc'd.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/mode.h"

typedef struct FmsQueue
{
	FmsFrame  **frames;			/* ring of `size` */
	uint32		size;
	uint32		oldest;
	uint32		count;
	uint32		depth;			/* reads at once now, <= l */
	uint64		unwaited;		/* blocks since the merge last waited */
	int			upcoming;		/* run of the order's next block, or -1 */
} FmsQueue;

static inline FmsQueue *
queue_of(FmsInput *input)
{
	return (FmsQueue *) input->private;
}

static uint32
fmsort_blocks(int nruns, uint32 assist_blocks)
{
	return nruns + assist_blocks;
}

static Size
fmsort_private_bytes(int nruns, uint32 assist_blocks)
{
	return sizeof(FmsQueue) +
		fmsort_blocks(nruns, assist_blocks) * sizeof(FmsFrame *);
}

/* How many reads could be started now? */
static inline uint32
startable(FmsInput *input)
{
	const FmsPool *pool = input->pool;
	const FmsQueue *queue = queue_of(input);

	if (pool->reading >= queue->depth)
		return 0;
	/* as long as nobody had to wait, what is read stays close by */
	if (queue->depth < input->assist_blocks &&
		queue->count >= 2 * queue->depth)
		return 0;
	return Min(pool->nfree, queue->depth - pool->reading);
}

/*
 * How many reads to submit together?  The merge is at leisure to collect
 * frames if it has taken l blocks without waiting.  Should that make it wait,
 * it costs a part of one read's latency in as many.
 */
static inline uint32
batch_of(const FmsQueue *queue)
{
	return queue->unwaited >= queue->depth ?
		fms_io_batch_at_leisure(queue->depth) : fms_io_batch(queue->depth);
}

/* Does the merge have to wait for that read? */
static inline bool
is_late(FmsInput *input, const FmsFrame *frame)
{
	if (frame->request.state == FMS_IO_IN_FLIGHT)
		fms_io_poll(input->pool->io);
	return frame->request.state == FMS_IO_IN_FLIGHT;
}

/* The merge is about to wait for a read: more at once may spare it that. */
static inline void
read_further_ahead(FmsInput *input)
{
	FmsQueue   *queue = queue_of(input);

	queue->unwaited = 0;
	queue->depth = Min(2 * queue->depth, input->assist_blocks);
	input->assist_used = queue->depth;
}

/* Appends the upcoming block to the queue. */
static FmsFrame *
enqueue(FmsInput *input)
{
	FmsQueue   *queue = queue_of(input);
	FmsFrame   *frame = fms_pool_take(input->pool);

	fms_input_assign(input, frame, queue->upcoming);
	Assert(queue->count < queue->size);
	queue->frames[(queue->oldest + queue->count) % queue->size] = frame;
	queue->count++;
	queue->upcoming = fms_input_upcoming(input);
	return frame;
}

/* Takes the block at place i of the queue out of it; 0 is the oldest one. */
static FmsFrame *
dequeue(FmsQueue *queue, uint32 i)
{
	FmsFrame   *frame = queue->frames[(queue->oldest + i) % queue->size];

	for (; i > 0; i--)
		queue->frames[(queue->oldest + i) % queue->size] =
			queue->frames[(queue->oldest + i - 1) % queue->size];
	queue->oldest = (queue->oldest + 1) % queue->size;
	queue->count--;
	return frame;
}

/*
 * The merge asks for another run's block than the queue's oldest: comparisons
 * contradict each other.  Returns the run's next block, which may have to
 * be read first; if no frame is free, the newest block of the queue gives its
 * own.
 */
static pg_noinline FmsFrame *
find_out_of_order(FmsInput *input, int run)
{
	FmsQueue   *queue = queue_of(input);
	FmsFrame   *frame;
	uint32		i;

	for (i = 0; i < queue->count; i++)
	{
		if (queue->frames[(queue->oldest + i) % queue->size]->run == run)
			return dequeue(queue, i);
	}
	if (input->pool->nfree == 0)
	{
		queue->count--;
		fms_input_give_up(input, queue->frames[(queue->oldest + queue->count) %
											   queue->size]);
	}
	frame = fms_input_read(input, run);
	if (queue->upcoming == run && !fms_input_has_block(input, run))
		queue->upcoming = fms_input_upcoming(input);
	return frame;
}

/*
 * Starts so many reads, or as many as may be, in block read order (lines 12
 * to 14).
 */
static void
start_reads(FmsInput *input, uint32 reads)
{
	FmsQueue   *queue = queue_of(input);
	FmsPool    *pool = input->pool;
	uint32		left = startable(input);
	int			run = -1;
	int			n = 0;

	for (; left > 0 && queue->upcoming >= 0; left--)
	{
		if (queue->upcoming != run && reads-- == 0)
			break;
		run = queue->upcoming;
		pool->batch[n++] = enqueue(input);
	}
	fms_pool_submit(pool, pool->batch, n);
}

/* Starts reads, if there is a batch of them to start. */
static inline void
refill(FmsInput *input, bool waited)
{
	const FmsQueue *queue = queue_of(input);
	uint32		batch = batch_of(queue);
	bool		together = input->pool->reading == 0 && !waited;

	if (startable(input) >= batch)
		start_reads(input, together ? queue->depth : batch);
}

static void
fmsort_begin(FmsInput *input)
{
	FmsQueue   *queue = palloc0(sizeof(FmsQueue));

	queue->size = input->pool->nframes;
	queue->depth = input->assist_used = input->assist_first;
	queue->frames = palloc(queue->size * sizeof(FmsFrame *));
	queue->upcoming = fms_input_upcoming(input);
	input->private = queue;
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
		read_further_ahead(input);
	fms_pool_wait(input->pool, frame, input->runs[run]);

	/* something has finished, so there may be a place in the device's queue */
	refill(input, waited);
	return frame;
}

static void
fmsort_exhausted(FmsInput *input, FmsFrame *frame)
{
	FmsPool    *pool = input->pool;
	uint32		batch = batch_of(queue_of(input));

	fms_pool_release(pool, frame);

	/* to look for what has come can be a system call: only if it may help */
	if (pool->nfree >= batch && startable(input) < batch)
		fms_io_poll(pool->io);
	refill(input, false);
}

static void
fmsort_end(FmsInput *input)
{
	pfree(queue_of(input)->frames);
	pfree(queue_of(input));
}

const FmsMode fms_mode_fmsort = {
	.order = FMS_ORDER_BY_FIRST_KEYS,
	.assists = true,
	.fills_memory = false,
	.blocks = fmsort_blocks,
	.private_bytes = fmsort_private_bytes,
	.begin = fmsort_begin,
	.next = fmsort_next,
	.exhausted = fmsort_exhausted,
	.end = fmsort_end
};
