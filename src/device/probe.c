/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Measures a device through a temporary file.
 *
 * The file is a tape and requests go through an I/O channel, so the probe
 * measures what a sort gets.  A measurement keeps `depth` requests in flight
 * and submits them in the merge's batches:
 *
 *	  submitted  ########|##########################|
 *	  completed       ###|##########################|########
 *	                ramp |        counted           | drained
 *
 * Errors of measurement are avoided as follows.  Caches of the device take the
 * first bytes faster: of the file and of lasting rates, only the second half
 * counts.  The device may compress: the file is random, and each page that is
 * written gets a new number.  Blocks that were never written are not read from
 * the device: the file is written first.
 *
 * On ERROR, a reset callback of the probe's memory context drains and closes
 * the channel, and the resource owner deletes the file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/tablespace.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "base/clock.h"
#include "device/probe.h"
#include "device/temp_tablespace.h"
#include "tape/tape.h"

/* Bytes of all buffers. */
#define BUFFERS_BYTES	((uint32) 32 * 1024 * 1024)

#define DEPTH_MAX	FMS_DEVICE_DEPTH(FMS_DEVICE_DEPTHS - 1)

StaticAssertDecl(FMS_BLOCK_MAX_BYTES <= BUFFERS_BYTES,
				 "a buffer must hold any block");

struct FmsProbe
{
	MemoryContext context;
	MemoryContextCallback on_reset;
	FmsIo		io;
	FmsTape    *tape;
	uint32		sector_bytes;	/* size of the smallest request */
	char	   *buffers;
	FmsIoRequest requests[DEPTH_MAX];
	uint64		next;			/* number of a sequential pattern's block */
	pg_prng_state random;
};

/* ---- the file ---- */

static void
close_io(void *arg)
{
	fms_io_close(&((FmsProbe *) arg)->io);
}

static void
open_tape(void *arg)
{
	FmsProbe   *probe = arg;

	/* nobody reads these counters */
	probe->tape = fms_tape_open(&probe->io, probe->sector_bytes, false,
								palloc0(FMS_COUNTERS_BYTES));
}

FmsProbe *
fms_probe_open(Oid tablespace, FmsIoChoice io_method, bool direct)
{
	static const uint32 sectors[] = {FMS_BLOCK_QUANTUM_BYTES,
	FMS_IO_ALIGN_BYTES};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "fmsort probe",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	FmsProbe   *probe = palloc0(sizeof(FmsProbe));

	probe->context = context;
	probe->on_reset.func = close_io;
	probe->on_reset.arg = probe;
	MemoryContextRegisterResetCallback(context, &probe->on_reset);
	fms_io_open(&probe->io, io_method);
	probe->buffers = fms_io_map(&probe->io, BUFFERS_BYTES, direct);
	pg_prng_seed(&probe->random, (uint64) GetCurrentTimestamp() ^ MyProcPid);
	for (uint32 i = 0; i < BUFFERS_BYTES; i += sizeof(uint64))
		*(uint64 *) (probe->buffers + i) = pg_prng_uint64(&probe->random);

	/* some devices have sectors of 4 kB */
	for (int i = 0; i < (int) lengthof(sectors) && probe->tape == NULL; i++)
	{
		probe->sector_bytes = sectors[i];
		fms_temp_tablespace_call(tablespace, open_tape, probe);
		fms_temp_tablespace_check(tablespace, fms_tape_path(probe->tape));
		if (direct && !fms_tape_set_direct(probe->tape, true, false))
		{
			fms_tape_close(probe->tape);
			probe->tape = NULL;
		}
	}
	if (probe->tape == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the file system of tablespace \"%s\" has no direct I/O",
						get_tablespace_name(tablespace)),
				 errdetail("Without it the page cache would be measured, not a device."),
				 errhint("To measure that, pass direct_io => false; sorts there need no profile.")));
	MemoryContextSwitchTo(caller);
	return probe;
}

uint64
fms_probe_file_bytes(const FmsProbe *probe)
{
	return probe->tape->end_bytes;
}

bool
fms_probe_uses_uring(const FmsProbe *probe)
{
	return probe->io.method == &fms_io_uring_method;
}

void
fms_probe_close(FmsProbe *probe)
{
	/* nothing may be in flight when the file goes */
	fms_io_close(&probe->io);
	fms_tape_close(probe->tape);
	MemoryContextDelete(probe->context);
}

/* ---- measuring ---- */

bool
fms_probe_can(const FmsProbe *probe, const FmsProbePoint *point)
{
	return point->block_bytes >= probe->sector_bytes &&
		point->block_bytes <= probe->tape->end_bytes &&
		(point->depth == 1 || !probe->io.method->submit_blocks);
}

/* Gives each page of a buffer a new number before it is written. */
static void
renew(FmsProbe *probe, char *buffer, uint32 bytes)
{
	for (uint32 i = 0; i < bytes; i += FMS_IO_ALIGN_BYTES)
		*(uint64 *) (buffer + i) = pg_prng_uint64(&probe->random);
}

static bool
writes(FmsPattern pattern)
{
	return pattern == FMS_PATTERN_SW || pattern == FMS_PATTERN_RW ||
		pattern == FMS_PATTERN_APPEND;
}

/* Prepares the request with that index. */
static void
prepare(FmsProbe *probe, const FmsProbePoint *point, uint32 index)
{
	FmsIoRequest *request = &probe->requests[index];
	uint32		bytes = point->block_bytes;
	uint64		nblocks = probe->tape->end_bytes / bytes;
	uint32		room = BUFFERS_BYTES / bytes;

	request->length_bytes = bytes;
	/* requests share buffers if there are not enough */
	request->buffer = probe->buffers + (index % room) * bytes;
	if (point->pattern == FMS_PATTERN_SR || point->pattern == FMS_PATTERN_SW)
		request->offset_bytes = bytes * (probe->next++ % nblocks);
	else if (point->pattern != FMS_PATTERN_APPEND)
		request->offset_bytes = bytes *
			pg_prng_uint64_range(&probe->random, 0, nblocks - 1);
	/* file systems' checksums fail if a page changes while it is written */
	if (writes(point->pattern) && point->depth <= room)
		renew(probe, request->buffer, bytes);
}

/*
 * Submits the next batch, in descending order: the kernel may merge ascending
 * neighbours into one operation.
 */
static void
refill(FmsProbe *probe, const FmsProbePoint *point, uint32 batch)
{
	FmsIoRequest *ready[DEPTH_MAX];
	uint32		first = batch;

	for (uint32 i = 0; i < point->depth && first > 0; i++)
	{
		if (probe->requests[i].state == FMS_IO_IN_FLIGHT)
			continue;
		prepare(probe, point, i);
		ready[--first] = &probe->requests[i];
	}
	if (first == batch)
		return;
	if (point->pattern == FMS_PATTERN_APPEND)
	{
		for (; first < batch; first++)
			fms_tape_append(probe->tape, ready[first], ready[first]->buffer,
							point->block_bytes);
	}
	else if (writes(point->pattern))
		fms_tape_overwrite(probe->tape, &ready[first], batch - first);
	else
		fms_tape_read(probe->tape, &ready[first], batch - first);
}

/* Waits until at least one request is done. */
static void
wait_for_any(FmsProbe *probe)
{
	uint32		before = probe->io.in_flight;

	CHECK_FOR_INTERRUPTS();
	fms_io_poll(&probe->io);
	pgstat_report_wait_start(WAIT_EVENT_BUFFILE_READ);
	while (probe->io.in_flight > 0 && probe->io.in_flight == before)
	{
		if (!fms_io_wait(&probe->io))
		{
			pgstat_report_wait_end();
			CHECK_FOR_INTERRUPTS();
			pgstat_report_wait_start(WAIT_EVENT_BUFFILE_READ);
		}
	}
	pgstat_report_wait_end();
}

/* Progress of a measurement; times since its start. */
typedef struct Progress
{
	double		half_us;		/* the ramp ends at this time, */
	uint64		half_done;		/* ... or after this number of requests, */
	uint64		ramp_done;		/* ... but not before this number */
	double		stop_us;		/* submitting ends at this time, */
	uint64		counted_min;	/* ... but not before this number counted */
	uint64		done;			/* requests so far */
	uint64		counted;		/* of them, between ramp and drain */
	double		ramp_us;		/* end of the ramp */
	double		last_us;		/* when the last request counted was done */
} Progress;

/* Takes the requests that are done. */
static void
collect(FmsProbe *probe, uint32 depth, Progress *progress, double now_us)
{
	for (uint32 i = 0; i < depth; i++)
	{
		if (probe->requests[i].state != FMS_IO_DONE)
			continue;
		fms_tape_wait(probe->tape, &probe->requests[i]);
		progress->done++;
		if (progress->done <= progress->ramp_done ||
			(now_us < progress->half_us &&
			 progress->done <= progress->half_done))
			progress->ramp_us = now_us;
		/* requests done together with the last of the ramp are part of it */
		else if (now_us > progress->ramp_us &&
				 (now_us < progress->stop_us ||
				  progress->counted < progress->counted_min))
		{
			progress->counted++;
			progress->last_us = now_us;
		}
	}
}

void
fms_probe_measure(FmsProbe *probe, double seconds, uint64 file_bytes,
				  FmsProbePoint *point)
{
	uint32		depth = point->depth;
	uint32		batch = fms_io_batch(depth);
	bool		appends = point->pattern == FMS_PATTERN_APPEND;
	Progress	progress = {.stop_us = seconds * 1e6, .ramp_done = depth,
	.counted_min = (depth + 3) / 4};
	instr_time	start = fms_clock_now();
	bool		over;

	Assert(appends || fms_probe_can(probe, point));
	if (appends || point->pattern == FMS_PATTERN_RR_LASTING)
	{
		progress.half_us = progress.stop_us / 2;
		progress.half_done = appends ? file_bytes / point->block_bytes / 2 :
			PG_UINT64_MAX;
	}
	probe->next = 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		over = (fms_clock_since_us(start) >= progress.stop_us &&
				progress.counted >= progress.counted_min) ||
			(appends && probe->tape->end_bytes >= file_bytes);
		if (!over)
			refill(probe, point, batch);
		/* a synchronous method has done them by now */
		collect(probe, depth, &progress, fms_clock_since_us(start));
		while (probe->io.in_flight > (over ? 0 : depth - batch))
		{
			wait_for_any(probe);
			collect(probe, depth, &progress, fms_clock_since_us(start));
		}
	} while (!over);
	if (appends)
		fms_tape_trim(probe->tape);
	point->mb_per_s = (double) progress.counted * point->block_bytes /
		Max(progress.last_us - progress.ramp_us, 1);
}
