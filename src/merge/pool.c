/*-------------------------------------------------------------------------
 *
 * pool.c
 *	  The input buffer of a merge: its blocks in memory and what each of them
 *	  is doing.
 *
 * The pool knows how a block gets from the tape into memory and that no
 * block is two things at once.  Which block to read next, and how many ahead,
 * is the mode's business (mode_*.c); what stands in it the merge's.
 *
 * Memory: the blocks are one mapping of the channel, frames and requests are
 * palloc'd in the context of creation, which the channel's owner frees only
 * after draining.  On ERROR nothing is done here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "merge/pool.h"

Size
fms_pool_bytes(uint32 nframes, uint32 block_bytes)
{
	return sizeof(FmsPool) +
		nframes * (block_bytes + sizeof(FmsFrame) +
				   2 * sizeof(FmsFrame *) + sizeof(FmsIoRequest *));
}

static void
init_frame(FmsPool *pool, uint32 i)
{
	FmsFrame   *frame = &pool->frames[i];

	memset(frame, 0, sizeof(*frame));
	frame->block = pool->memory + (Size) i * pool->block_bytes;
	frame->request.buffer = frame->block;
	frame->request.group = &pool->reading;
	/* taken from the end: the first frames go first */
	pool->free[pool->nframes - 1 - i] = frame;
}

FmsPool *
fms_pool_create(FmsIo *io, FmsTape *tape, uint32 block_bytes, uint32 nframes,
				Size room_bytes)
{
	FmsPool    *pool = palloc0(sizeof(FmsPool));
	Size		touched_bytes = 0;
	uint32		i;

	pool->io = io;
	pool->tape = tape;
	pool->block_bytes = block_bytes;
	pool->nframes = nframes;
	pool->nfree = nframes;
	pool->frames = MemoryContextAllocExtended(CurrentMemoryContext,
											  nframes * sizeof(FmsFrame),
											  MCXT_ALLOC_HUGE);
	pool->free = palloc_extended(nframes * sizeof(FmsFrame *),
								 MCXT_ALLOC_HUGE);
	pool->batch = palloc_extended(nframes * sizeof(FmsFrame *),
								 MCXT_ALLOC_HUGE);
	pool->requests = palloc_extended(nframes * sizeof(FmsIoRequest *),
									 MCXT_ALLOC_HUGE);
	pool->memory = fms_io_map_with_room(io, (Size) nframes * block_bytes,
										room_bytes);
	for (i = 0; i < nframes; i++)
	{
		fms_interrupts_after(&touched_bytes, sizeof(FmsFrame));
		init_frame(pool, i);
	}
	return pool;
}

void
fms_pool_destroy(FmsPool *pool)
{
	fms_io_unmap(pool->io, pool->memory);
	pfree(pool->requests);
	pfree(pool->batch);
	pfree(pool->free);
	pfree(pool->frames);
	pfree(pool);
}

FmsFrame *
fms_pool_take(FmsPool *pool)
{
	Assert(pool->nfree > 0);
	return pool->free[--pool->nfree];
}

void
fms_pool_vacate(FmsPool *pool, FmsFrame *frame)
{
	Assert(frame->state == FMS_FRAME_SORT);
	frame->state = FMS_FRAME_FREE;
}

void
fms_pool_release(FmsPool *pool, FmsFrame *frame)
{
	Assert(pool->nfree < pool->nframes);
	fms_pool_vacate(pool, frame);
	pool->free[pool->nfree++] = frame;
}

void
fms_pool_give_up(FmsPool *pool, FmsFrame *frame)
{
	Assert(frame->state == FMS_FRAME_READING);
	if (frame->request.state != FMS_IO_IDLE)
		fms_tape_wait(pool->tape, &frame->request);
	frame->state = FMS_FRAME_SORT;
	fms_pool_release(pool, frame);
}

void
fms_pool_assign(FmsPool *pool, FmsFrame *frame, int run_number,
				const FmsRun *run, uint32 number)
{
	Assert(frame->state == FMS_FRAME_FREE);
	Assert(number < run->nblocks);

	frame->state = FMS_FRAME_READING;
	frame->run = run_number;
	frame->number = number;
	frame->request.offset_bytes =
		fms_run_block_offset(run, number, pool->block_bytes);
	frame->request.length_bytes = pool->block_bytes;
}

void
fms_pool_assign_neighbours(FmsPool *pool, FmsFrame *frames, uint32 n,
						   int run_number, const FmsRun *run, uint32 number)
{
	uint32		i;

	for (i = 0; i < n; i++)
	{
		Assert(frames[i].block == frames[0].block + i * pool->block_bytes);
		fms_pool_assign(pool, &frames[i], run_number, run, number + i);
	}
	frames[0].request.length_bytes = n * pool->block_bytes;
}

void
fms_pool_submit(FmsPool *pool, FmsFrame **frames, int n)
{
	int			i;

	if (n == 0)
		return;
	for (i = 0; i < n; i++)
	{
		Assert(frames[i]->state == FMS_FRAME_READING);
		pool->requests[i] = &frames[i]->request;
	}
	fms_tape_read(pool->tape, pool->requests, n);
}

void
fms_pool_wait_for_all(FmsPool *pool, FmsFrame **frames, int n)
{
	int			i;

	for (i = 0; i < n; i++)
		fms_tape_wait(pool->tape, &frames[i]->request);
}

void
fms_pool_wait(FmsPool *pool, FmsFrame *frame, const FmsRun *run)
{
	Assert(frame->state == FMS_FRAME_READING);
	/* idle: has been waited for, or came with the frame before it */
	if (frame->request.state != FMS_IO_IDLE)
		fms_tape_wait(pool->tape, &frame->request);
	fms_tape_check_block(pool->tape, frame->block, run->id, frame->number);
	frame->state = FMS_FRAME_SORT;
}
