/* links: device/trial */
/*
 * A trial of the device, whose stretches arrive when the test says so.  The
 * clock is the real one, so times are only held against what must have passed.
 *
 * Seen to fail with: what has been written just now asked for at once; all
 * that was seen counting alike; what is under way left out.
 */
#include "postgres.h"

#include <unistd.h>

#include "base/clock.h"
#include "shim.h"
#include "device/trial.h"

#define MB		((uint64) 1024 * 1024)
#define WAIT_US 2000

/* ---- a tape and a channel ---- */

static uint64 tape_end;
static FmsIoMethod method;
static FmsIo io = {.method = &method};
static FmsTrial trial;
static int	asked;				/* how often */

uint64
fms_tape_end(const FmsTape *tape)
{
	return tape_end;
}

void
fms_tape_write_out(FmsTape *tape, FmsIoRequest *request, uint64 offset_bytes,
				   uint32 length_bytes)
{
	asked++;
	request->offset_bytes = offset_bytes;
	request->length_bytes = length_bytes;
	request->state = FMS_IO_IN_FLIGHT;
	if (method.submit_blocks)
	{
		usleep(WAIT_US);
		request->state = FMS_IO_DONE;
		request->result = 0;
	}
}

void
fms_io_poll(FmsIo *channel)
{
}

static void
begin(bool blocks)
{
	memset(&trial, 0, sizeof(trial));
	method.submit_blocks = blocks;
	tape_end = 0;
	asked = 0;
}

/* So much more is written; then somebody looks. */
static void
write_and_look(uint64 bytes)
{
	tape_end += bytes;
	fms_trial_look(&trial, &io, NULL);
}

static void
arrive(int result)
{
	trial.request.state = FMS_IO_DONE;
	trial.request.result = result;
}

static void
check_stretches(void)
{
	begin(false);
	write_and_look(3 * MB);
	shim_ok(asked == 0, "what has just been written may still be on its way");
	write_and_look(3 * MB);
	shim_ok(asked == 1 && trial.request.offset_bytes == 0 &&
			trial.request.length_bytes == 3 * MB,
			"at the next look it is asked for");
	write_and_look(3 * MB);
	write_and_look(3 * MB);
	shim_ok(asked == 1 && trial.tried_bytes == 0,
			"one stretch at a time");
	arrive(0);
	write_and_look(3 * MB);
	shim_ok(asked == 2 && trial.tried_bytes == 3 * MB &&
			trial.request.offset_bytes == 3 * MB &&
			trial.request.length_bytes == 4 * MB,
			"arrived: the next one, of no more than 4 MB");
	arrive(0);
	fms_trial_look(&trial, &io, NULL);
	arrive(0);
	fms_trial_look(&trial, &io, NULL);
	arrive(0);
	fms_trial_look(&trial, &io, NULL);
	shim_ok(asked == 4 && trial.tried_bytes == 15 * MB,
			"until all of it has been");
}

static void
check_times(void)
{
	begin(false);
	write_and_look(2 * MB);
	write_and_look(2 * MB);
	shim_ok(trial.seen.bytes == 0, "nothing is seen before something is asked for");
	usleep(WAIT_US);
	write_and_look(0);
	shim_ok(trial.seen.bytes == 2 * MB && trial.tried_bytes == 0 &&
			trial.seen.blocked_us >= WAIT_US &&
			trial.seen.elapsed_us == trial.seen.blocked_us,
			"under way: as if it had just arrived");
	usleep(WAIT_US);
	arrive(0);
	write_and_look(0);
	shim_ok(trial.seen.bytes == 2 * MB &&
			trial.seen.elapsed_us >= trial.seen.blocked_us + WAIT_US,
			"arrived since the last look: between the two");

	write_and_look(0);
	arrive(0);
	write_and_look(0);
	shim_ok(trial.tried_bytes == 4 * MB && trial.seen.bytes == 3 * MB,
			"what was seen before counts half");
	shim_ok(trial.arrived.blocked_us >= WAIT_US / 2 &&
			trial.arrived.blocked_us < trial.arrived.elapsed_us,
			"... as does how long it was waited for");
}

static void
check_under_way(void)
{
	double		before_us;

	begin(false);
	write_and_look(2 * MB);
	write_and_look(2 * MB);
	usleep(20 * WAIT_US);
	arrive(0);
	write_and_look(0);
	before_us = trial.seen.elapsed_us;
	shim_ok(asked == 2 && before_us >= 20 * WAIT_US, "a slow one has arrived");
	trial.began = fms_clock_now();
	fms_trial_look(&trial, &io, NULL);
	shim_ok(trial.unfinished_us >= before_us ||
			(trial.seen.bytes == 2 * MB && trial.seen.elapsed_us == before_us),
			"the next one has just begun, and says nothing");
}

static void
check_methods(void)
{
	begin(true);
	write_and_look(2 * MB);
	write_and_look(2 * MB);
	shim_ok(asked == 1 && trial.tried_bytes == 2 * MB &&
			trial.seen.blocked_us >= WAIT_US &&
			trial.seen.blocked_us == trial.seen.elapsed_us,
			"a method that waits: its time is known");

	begin(false);
	write_and_look(2 * MB);
	write_and_look(2 * MB);
	arrive(-EINVAL);
	write_and_look(2 * MB);
	shim_ok(trial.failed && trial.tried_bytes == 0 && asked == 1,
			"an error: nothing can be tried");
	write_and_look(2 * MB);
	shim_ok(asked == 1, "... nor is it any more");
}

int
main(void)
{
	check_stretches();
	check_times();
	check_under_way();
	check_methods();
	return shim_done();
}
