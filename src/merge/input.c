/*-------------------------------------------------------------------------
 *
 * input.c
 *	  The input of a merge: reads blocks from the tape into frames.
 *
 * Memory: the blocks are one mapping of the channel.  Frames and requests are
 * palloc'd in the context of creation, which the channel's owner frees after
 * draining; so nothing is done here on an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/interrupts.h"
#include "merge/input.h"
#include "tape/block.h"

Size
fms_input_bytes(int nruns, uint32 nframes, uint32 block_bytes)
{
	return nruns * (FMS_RUN_BYTES + sizeof(uint32) + sizeof(FmsFrame *)) +
		nframes * (block_bytes + sizeof(FmsFrame) + 2 * sizeof(FmsFrame *) +
				   sizeof(FmsIoRequest *));
}

static void
init_frames(FmsInput *input, uint32 nframes)
{
	const FmsMergePlan *plan = input->plan;
	Size		touched_bytes = 0;

	input->nframes = input->nfree = nframes;
	input->frames = palloc_extended(nframes * sizeof(FmsFrame),
									MCXT_ALLOC_HUGE);
	input->free = palloc_extended(nframes * sizeof(FmsFrame *),
								  MCXT_ALLOC_HUGE);
	input->requests = palloc_extended(nframes * sizeof(FmsIoRequest *),
									  MCXT_ALLOC_HUGE);
	input->queue = palloc_extended(nframes * sizeof(FmsFrame *),
								   MCXT_ALLOC_HUGE);
	input->memory = fms_io_map(plan->io, (Size) nframes * plan->block_bytes,
							   fms_tape_is_direct(plan->tape));
	for (uint32 i = 0; i < nframes; i++)
	{
		FmsFrame   *frame = &input->frames[i];

		fms_interrupts_after(&touched_bytes, sizeof(FmsFrame));
		memset(frame, 0, sizeof(*frame));
		frame->block = input->memory + (Size) i * plan->block_bytes;
		frame->request.buffer = frame->block;
		frame->request.group = &input->reading;
		/* fms_input_request() takes the last one */
		input->free[nframes - 1 - i] = frame;
	}
}

/* Goes on in the order, past runs whose blocks have been asked for already. */
static void
step_order(FmsInput *input)
{
	do
		input->upcoming = fms_read_order_next(input->order);
	while (input->upcoming >= 0 &&
		   !fms_input_has_block(input, input->upcoming));
}

static void
init_order(FmsInput *input, const FmsPosition *from)
{
	const FmsMergePlan *plan = input->plan;
	const FmsFirstKeys **first_keys =
		palloc(input->nruns * sizeof(FmsFirstKeys *));

	for (int run = 0; run < input->nruns; run++)
		first_keys[run] = &input->runs[run]->first_keys;
	input->order = fms_read_order_begin(plan->first_keys, plan->mode->order,
										input->nruns, first_keys, from);
	pfree(first_keys);
	step_order(input);
}

void
fms_input_init(FmsInput *input, const FmsMergePlan *plan, int nruns,
			   FmsRun **runs, const FmsPosition *from)
{
	const FmsMode *mode = plan->mode;

	memset(input, 0, sizeof(*input));
	input->plan = plan;
	input->nruns = nruns;
	input->runs = runs;
	input->frame_of = palloc0(nruns * sizeof(FmsFrame *));
	input->next_block = palloc(nruns * sizeof(uint32));
	for (int run = 0; run < nruns; run++)
		input->next_block[run] = from ? from[run].block : 0;
	init_frames(input, mode->blocks(nruns, plan->assist_blocks));
	if (mode->order != FMS_ORDER_NONE)
		init_order(input, from);
}

void
fms_input_end(FmsInput *input)
{
	fms_io_unmap(input->plan->io, input->memory);
	if (input->order)
		fms_read_order_end(input->order);
	pfree(input->queue);
	pfree(input->requests);
	pfree(input->free);
	pfree(input->frames);
	pfree(input->next_block);
	pfree(input->frame_of);
}

static void
assign(FmsInput *input, FmsFrame *frame, int run)
{
	uint32		block_bytes = input->plan->block_bytes;

	Assert(frame->state == FMS_FRAME_FREE);
	Assert(fms_input_has_block(input, run));

	frame->state = FMS_FRAME_READING;
	frame->run = run;
	frame->number = input->next_block[run]++;
	fms_tape_locate(input->plan->tape, &frame->request,
					fms_run_block_address(input->runs[run], frame->number,
										  block_bytes));
	frame->request.length_bytes = block_bytes;
}

FmsFrame *
fms_input_request(FmsInput *input, int run)
{
	FmsFrame   *frame;

	Assert(input->nfree > 0);
	frame = input->free[--input->nfree];
	assign(input, frame, run);
	input->requests[input->pending++] = &frame->request;
	return frame;
}

void
fms_input_request_many(FmsInput *input, FmsFrame *frames, int run, uint32 n)
{
	uint32		block_bytes = input->plan->block_bytes;

	for (uint32 i = 0; i < n; i++)
	{
		Assert(frames[i].block == frames[0].block + i * block_bytes);
		assign(input, &frames[i], run);
	}
	frames[0].request.length_bytes = n * block_bytes;
	input->requests[input->pending++] = &frames[0].request;
}

void
fms_input_submit(FmsInput *input)
{
	uint32		n = input->pending;

	input->pending = 0;
	if (n > 0)
		fms_tape_read(input->plan->tape, input->requests, n);
}

FmsFrame *
fms_input_wait(FmsInput *input, FmsFrame *frame)
{
	FmsTape    *tape = input->plan->tape;

	Assert(frame->state == FMS_FRAME_READING);
	/* idle: waited for before, or read together with the frame before it */
	if (frame->request.state != FMS_IO_IDLE)
		fms_tape_wait(tape, &frame->request);
	fms_block_check(tape, frame->request.file, frame->block,
					input->plan->block_bytes, input->runs[frame->run]->id,
					frame->number);
	frame->state = FMS_FRAME_SORT;
	return frame;
}

void
fms_input_release(FmsInput *input, FmsFrame *frame)
{
	Assert(frame->state == FMS_FRAME_SORT);
	Assert(input->nfree < input->nframes);
	frame->state = FMS_FRAME_FREE;
	input->free[input->nfree++] = frame;
}

void
fms_input_enqueue(FmsInput *input)
{
	*fms_input_queued(input, input->queued++) =
		fms_input_request(input, input->upcoming);
	step_order(input);
}

static FmsFrame *
remove_queued(FmsInput *input, uint32 i)
{
	FmsFrame   *frame = *fms_input_queued(input, i);

	for (; i > 0; i--)
		*fms_input_queued(input, i) = *fms_input_queued(input, i - 1);
	input->oldest = (input->oldest + 1) % input->nframes;
	input->queued--;
	return frame;
}

/* Frees the frame of the queue's newest block, which is read again later. */
static void
give_up_newest(FmsInput *input)
{
	FmsFrame   *frame;

	Assert(input->queued > 0);
	frame = *fms_input_queued(input, --input->queued);
	Assert(frame->state == FMS_FRAME_READING);
	Assert(frame->number + 1 == input->next_block[frame->run]);
	if (frame->request.state != FMS_IO_IDLE)
		fms_tape_wait(input->plan->tape, &frame->request);
	input->next_block[frame->run]--;
	frame->state = FMS_FRAME_SORT;
	fms_input_release(input, frame);
}

/*
 * Returns the run's next block if comparisons contradict each other.  If it is
 * not in the queue, it is read now, perhaps into the newest block's frame.
 */
static pg_noinline FmsFrame *
find_out_of_order(FmsInput *input, int run)
{
	FmsFrame   *frame;

	for (uint32 i = 0; i < input->queued; i++)
	{
		if ((*fms_input_queued(input, i))->run == run)
			return remove_queued(input, i);
	}
	if (input->nfree == 0)
		give_up_newest(input);
	frame = fms_input_request(input, run);
	fms_input_submit(input);
	if (input->upcoming == run && !fms_input_has_block(input, run))
		step_order(input);
	return frame;
}

FmsFrame *
fms_input_dequeue(FmsInput *input, int run)
{
	if (likely(input->queued > 0 &&
			   input->queue[input->oldest]->run == run))
		return remove_queued(input, 0);
	return find_out_of_order(input, run);
}
