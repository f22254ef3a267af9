/*-------------------------------------------------------------------------
 *
 * trial.c
 *	  How fast the device takes what is in the page cache, to see the device.
 *
 * A spill that goes into the page cache tells nothing of the device below
 * until the cache is full, and then it is too late for doing with less of it.
 * So while it grows the kernel is asked, a stretch at a time, to write what is
 * there already; whoever forms runs goes on meanwhile, and looks now and then
 * whether the stretch has arrived:
 *
 *	  written to the cache   |=======================>
 *	  asked for, and there   |----|----|
 *	  under way                        |-----|
 *
 *	  looks        .    .    .    .    .
 *	  a stretch       |------------|		began: when it was asked for
 *	                  |---------|			not there yet: no less than this
 *	                  |--------------|		there: no more
 *
 * Devices may take the first bytes faster than all others, out of a cache of
 * their own, or as a limit is kept over some time only.  So what was seen
 * before counts half as much as the stretch after it.  And a stretch that
 * does not arrive says something, too: at best it is there now.
 *
 * Why not past the page cache, which would need no asking: then the sort waits
 * for a slow device twice, when it writes there and when it reads that again.
 * What has been written out this way stays in the cache.
 *
 * A stretch is short, as nobody can take it back: who deletes the file waits
 * for it.
 *
 * The request is the owner's, in whose context nothing may be freed before the
 * channel has been drained.  Nothing here raises an error: a file system that
 * cannot do it ends the trial.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/clock.h"
#include "device/trial.h"

#define STRETCH_MAX_BYTES	((uint64) 4 * 1024 * 1024)

static void
add(FmsSeen *seen, double bytes, double elapsed_us, double blocked_us)
{
	seen->bytes = seen->bytes / 2 + bytes;
	seen->elapsed_us = seen->elapsed_us / 2 + elapsed_us;
	seen->blocked_us = seen->blocked_us / 2 + blocked_us;
}

/* If the stretch has arrived: counts it. */
static void
take_arrived(FmsTrial *trial, bool waited)
{
	FmsIoRequest *request = &trial->request;
	double		elapsed_us;

	if (request->state != FMS_IO_DONE)
		return;
	request->state = FMS_IO_IDLE;
	if (request->result < 0)
	{
		trial->failed = true;
		return;
	}
	elapsed_us = fms_clock_since_us(trial->began);
	trial->tried_bytes += request->length_bytes;
	add(&trial->arrived, request->length_bytes, elapsed_us,
		waited ? elapsed_us : trial->unfinished_us);
}

/* Has the next stretch written, if there is any. */
static void
ask_for_next(FmsTrial *trial, FmsIo *io, FmsTape *tape)
{
	uint64		bytes = Min(trial->ready_bytes - trial->asked_bytes,
							STRETCH_MAX_BYTES);

	if (bytes == 0 || trial->failed)
		return;
	trial->began = fms_clock_now();
	trial->unfinished_us = 0;
	fms_tape_write_out(tape, &trial->request, trial->asked_bytes,
					   (uint32) bytes);
	trial->asked_bytes += bytes;
	take_arrived(trial, io->method->submit_blocks);
}

/*
 * Is a stretch under way, and for so long that it is slower than what has
 * arrived?  One that has just begun says nothing.
 */
static bool
takes_longer(const FmsTrial *trial)
{
	return trial->request.state == FMS_IO_IN_FLIGHT &&
		trial->unfinished_us * trial->arrived.bytes >=
		trial->arrived.elapsed_us * trial->request.length_bytes &&
		trial->unfinished_us > 0;
}

void
fms_trial_look(FmsTrial *trial, FmsIo *io, FmsTape *tape)
{
	fms_io_poll(io);
	take_arrived(trial, false);
	if (trial->request.state == FMS_IO_IN_FLIGHT)
		trial->unfinished_us = fms_clock_since_us(trial->began);
	else
		ask_for_next(trial, io, tape);
	/* what is written now may still be on its way to the cache */
	trial->ready_bytes = fms_tape_end(tape);

	trial->seen = trial->arrived;
	if (takes_longer(trial))
		add(&trial->seen, trial->request.length_bytes, trial->unfinished_us,
			trial->unfinished_us);
}
