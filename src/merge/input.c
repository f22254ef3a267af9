/*-------------------------------------------------------------------------
 *
 * input.c
 *	  The input of a merge: its runs, and the input buffer into which the mode
 *	  reads their blocks.
 *
 * The input reads blocks from the tape into frames and guards that a frame has
 * one state at a time.  The mode decides which block to read next.
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
	return nruns * (FMS_RUN_BYTES + sizeof(uint32)) +
		nframes * (block_bytes + sizeof(FmsFrame) + sizeof(FmsFrame *) +
				   sizeof(FmsIoRequest *));
}

static void
init_frames(FmsInput *input, uint32 nframes)
{
	const FmsMergePlan *plan = input->plan;
	Size		touched_bytes = 0;
	uint32		i;

	input->nframes = input->nfree = nframes;
	input->frames = palloc_extended(nframes * sizeof(FmsFrame),
									MCXT_ALLOC_HUGE);
	input->free = palloc_extended(nframes * sizeof(FmsFrame *),
								  MCXT_ALLOC_HUGE);
	input->requests = palloc_extended(nframes * sizeof(FmsIoRequest *),
									  MCXT_ALLOC_HUGE);
	input->memory = fms_io_map(plan->io, (Size) nframes * plan->block_bytes,
							   fms_tape_is_direct(plan->tape));
	for (i = 0; i < nframes; i++)
	{
		FmsFrame   *frame = &input->frames[i];

		fms_interrupts_after(&touched_bytes, sizeof(FmsFrame));
		memset(frame, 0, sizeof(*frame));
		frame->block = input->memory + (Size) i * plan->block_bytes;
		frame->request.buffer = frame->block;
		frame->request.group = &input->reading;
		/* fms_input_take() takes the last one */
		input->free[nframes - 1 - i] = frame;
	}
}

static void
init_order(FmsInput *input, const FmsPosition *from)
{
	const FmsMergePlan *plan = input->plan;
	const FmsFirstKeys **first_keys =
		palloc(input->nruns * sizeof(FmsFirstKeys *));
	int			run;

	for (run = 0; run < input->nruns; run++)
		first_keys[run] = &input->runs[run]->first_keys;
	input->order = fms_read_order_begin(plan->first_keys, plan->mode->order,
										plan->counters, input->nruns,
										first_keys, from);
	pfree(first_keys);
}

void
fms_input_init(FmsInput *input, const FmsMergePlan *plan, int nruns,
			   FmsRun **runs, const FmsPosition *from)
{
	const FmsMode *mode = plan->mode;
	int			run;

	memset(input, 0, sizeof(*input));
	input->plan = plan;
	input->nruns = nruns;
	input->runs = runs;
	input->next_block = palloc(nruns * sizeof(uint32));
	for (run = 0; run < nruns; run++)
		input->next_block[run] = from ? from[run].block : 0;
	init_frames(input, mode->blocks(nruns, plan->assist_blocks));
	if (mode->order != FMS_ORDER_NONE)
		init_order(input, from);
	input->private =
		palloc_extended(fms_mode_private_bytes(mode, nruns,
											   plan->assist_blocks),
						MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

void
fms_input_end(FmsInput *input)
{
	fms_io_unmap(input->plan->io, input->memory);
	if (input->order)
		fms_read_order_end(input->order);
	pfree(input->private);
	pfree(input->requests);
	pfree(input->free);
	pfree(input->frames);
	pfree(input->next_block);
}

FmsFrame *
fms_input_take(FmsInput *input)
{
	Assert(input->nfree > 0);
	return input->free[--input->nfree];
}

/* Assigns the run's next block to the frame. */
static void
assign(FmsInput *input, FmsFrame *frame, int run)
{
	uint32		block_bytes = input->plan->block_bytes;

	Assert(frame->state == FMS_FRAME_FREE);
	Assert(fms_input_has_block(input, run));

	frame->state = FMS_FRAME_READING;
	frame->run = run;
	frame->number = input->next_block[run]++;
	frame->request.offset_bytes =
		fms_run_block_offset(input->runs[run], frame->number, block_bytes);
	frame->request.length_bytes = block_bytes;
}

FmsFrame *
fms_input_request(FmsInput *input, int run)
{
	FmsFrame   *frame = fms_input_take(input);

	assign(input, frame, run);
	input->requests[input->pending++] = &frame->request;
	return frame;
}

void
fms_input_request_many(FmsInput *input, FmsFrame *frames, int run, uint32 n)
{
	uint32		block_bytes = input->plan->block_bytes;
	uint32		i;

	for (i = 0; i < n; i++)
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
	fms_block_check(tape, frame->block, input->plan->block_bytes,
					input->runs[frame->run]->id, frame->number);
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
fms_input_give_up(FmsInput *input, FmsFrame *frame)
{
	Assert(frame->state == FMS_FRAME_READING);
	Assert(frame->number + 1 == input->next_block[frame->run]);
	if (frame->request.state != FMS_IO_IDLE)
		fms_tape_wait(input->plan->tape, &frame->request);
	input->next_block[frame->run]--;
	frame->state = FMS_FRAME_SORT;
	fms_input_release(input, frame);
}

int
fms_input_upcoming(FmsInput *input)
{
	int			run;

	do
		run = fms_read_order_next(input->order);
	while (run >= 0 && !fms_input_has_block(input, run));
	return run;
}
