/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Measuring a device through a temporary file, one pattern at a time.
 *
 * The file is a tape and the transfers go through a channel, so the probe
 * measures what a sort gets: the same file system, flags, ring and accounting.
 * A measurement keeps `depth` requests under way and submits an eighth of them
 * at a time, as the merge does:
 *
 *	  submitted  ########|##########################|
 *	  completed       ###|##########################|########
 *	                ramp |        counted           | drained
 *
 * What makes such measurements lie, and the remedy:
 *
 *	  The first bytes are faster: where a rate must last, only the second half
 *	  counts.  The page cache answers: transfers are direct unless asked
 *	  otherwise.  The device compresses: the file is random, and each page
 *	  written gets a number of its own.  Blocks that were never written are not
 *	  read: the file is written first.
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
#include "device/temp_tablespace.h"
#include "device/probe.h"
#include "tape/tape.h"

/* All buffers together. */
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
	bool		direct;
	uint32		sector_bytes;	/* the smallest transfer */
	char	   *buffers;
	FmsIoRequest requests[DEPTH_MAX];
	uint64		next;			/* block of the sequential patterns */
	pg_prng_state random;
};

/* How far a measurement is. */
typedef struct Progress
{
	double		from_us;		/* the ramp is not over before */
	double		stop_us;		/* nothing is submitted from then on */
	uint64		done;			/* requests */
	uint64		counted;		/* of them, after the ramp and before the
								 * drain */
	double		ramp_us;		/* when the ramp was over */
	double		last_us;		/* when the last one counted was done */
} Progress;

/* ---- the file ---- */

static void
close_io(void *arg)
{
	fms_io_close(&((FmsProbe *) arg)->io);
}

typedef struct Opening
{
	FmsProbe   *probe;
	uint32		sector_bytes;
} Opening;

static void
open_tape(void *arg)
{
	const Opening *opening = arg;
	FmsProbe   *probe = opening->probe;

	probe->tape = fms_tape_open(&probe->io, probe->direct ? FMS_DIRECT_AUTO :
								FMS_DIRECT_OFF, opening->sector_bytes, false,
								NULL);
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
	int			i;

	probe->context = context;
	probe->direct = direct;
	probe->on_reset.func = close_io;
	probe->on_reset.arg = probe;
	MemoryContextRegisterResetCallback(context, &probe->on_reset);
	fms_io_open(&probe->io, io_method);

	/* some devices have sectors of 4 kB */
	for (i = 0; i < (int) lengthof(sectors); i++)
	{
		Opening		opening = {probe, sectors[i]};

		probe->sector_bytes = sectors[i];
		fms_temp_tablespace_call(tablespace, open_tape, &opening);
		fms_temp_tablespace_check(tablespace, fms_tape_path(probe->tape));
		if (!direct || fms_tape_is_direct(probe->tape))
			break;
		fms_tape_close(probe->tape);
		probe->tape = NULL;
	}
	if (probe->tape == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the file system of tablespace \"%s\" has no direct I/O",
						get_tablespace_name(tablespace)),
				 errdetail("Without it the page cache would be measured, not a device."),
				 errhint("To measure that, pass direct_io => false; sorts there need no profile.")));

	pg_prng_seed(&probe->random, (uint64) GetCurrentTimestamp() ^ MyProcPid);
	MemoryContextSwitchTo(caller);
	return probe;
}

bool
fms_probe_uses_uring(const FmsProbe *probe)
{
	return probe->io.method == &fms_io_uring_method;
}

uint64
fms_probe_file_bytes(const FmsProbe *probe)
{
	return fms_tape_end(probe->tape);
}

void
fms_probe_close(FmsProbe *probe)
{
	/* nothing may be in flight when the file goes */
	fms_io_close(&probe->io);
	fms_tape_close(probe->tape);
	MemoryContextDelete(probe->context);
}

/* ---- writing the file, and giving it back ---- */

/* Gives each page of a buffer that is about to be written a new number. */
static void
renew(FmsProbe *probe, char *buffer, uint32 bytes)
{
	uint32		i;

	for (i = 0; i < bytes; i += FMS_IO_ALIGN_BYTES)
	{
		uint64		number = pg_prng_uint64(&probe->random);

		memcpy(buffer + i, &number, sizeof(number));
	}
}

static void
map_buffers(FmsProbe *probe)
{
	uint32		i;

	probe->buffers = fms_io_map(&probe->io, BUFFERS_BYTES);
	for (i = 0; i < BUFFERS_BYTES; i += sizeof(uint64))
	{
		uint64		noise = pg_prng_uint64(&probe->random);

		memcpy(probe->buffers + i, &noise, sizeof(noise));
	}
}

/* The second half of something that is done in equal pieces. */
typedef struct Half
{
	instr_time	start;
	double		seconds;		/* for all of it; half of them may be over
								 * before half of the pieces are done */
	uint64		pieces;
	uint64		before;			/* pieces in the first half; 0: not over */
	double		before_us;
} Half;

/* So many pieces are done: is there time for another one? */
static bool
go_on(Half *half, uint64 done)
{
	double		us = fms_clock_since_us(half->start);

	CHECK_FOR_INTERRUPTS();
	if (half->before == 0 && done > 0 &&
		(done >= half->pieces / 2 || us >= half->seconds * 1e6 / 2))
	{
		half->before = done;
		half->before_us = us;
	}
	return done < half->pieces && (done == 0 || us < half->seconds * 1e6);
}

/* The rate of the second half, MB/s; of all, if that had just one piece. */
static double
half_mb(const Half *half, uint64 done, uint32 piece_bytes)
{
	double		us = fms_clock_since_us(half->start);
	bool		all = done <= half->before;

	return (double) (all ? done : done - half->before) * piece_bytes /
		Max(all ? us : us - half->before_us, 1);
}

void
fms_probe_fill(FmsProbe *probe, uint64 file_bytes, double seconds,
			   FmsProbePoint *point)
{
	Half		half = {.seconds = seconds,
		.pieces = file_bytes / FMS_PROBE_APPEND_BYTES};
	uint64		n;

	Assert(probe->buffers == NULL);
	map_buffers(probe);
	half.start = fms_clock_now();
	for (n = 0; go_on(&half, n); n++)
	{
		int			i = n % FMS_PROBE_APPEND_DEPTH;
		char	   *buffer = probe->buffers + i * FMS_PROBE_APPEND_BYTES;

		if (n >= FMS_PROBE_APPEND_DEPTH)
			fms_tape_wait(probe->tape, &probe->requests[i]);
		renew(probe, buffer, FMS_PROBE_APPEND_BYTES);
		fms_tape_append(probe->tape, &probe->requests[i], buffer,
						FMS_PROBE_APPEND_BYTES);
	}
	for (int i = 0; i < (int) Min(n, FMS_PROBE_APPEND_DEPTH); i++)
		fms_tape_wait(probe->tape, &probe->requests[i]);
	*point = (FmsProbePoint) {FMS_PATTERN_APPEND, FMS_PROBE_APPEND_BYTES,
	FMS_PROBE_APPEND_DEPTH, half_mb(&half, n, FMS_PROBE_APPEND_BYTES)};
	fms_tape_trim(probe->tape);
}

bool
fms_probe_give_back(FmsProbe *probe, double seconds, FmsProbePoint *point)
{
	Half		half = {.seconds = seconds, .start = fms_clock_now(),
		.pieces = fms_tape_end(probe->tape) / FMS_PROBE_HOLE_BYTES};
	uint64		n;

	for (n = 0; go_on(&half, n); n++)
	{
		if (!fms_tape_make_hole(probe->tape, n * FMS_PROBE_HOLE_BYTES,
								FMS_PROBE_HOLE_BYTES))
			return false;
	}
	*point = (FmsProbePoint) {FMS_PATTERN_GIVE_BACK, FMS_PROBE_HOLE_BYTES, 1,
	half_mb(&half, n, FMS_PROBE_HOLE_BYTES)};
	return n > 0;
}

/* ---- measuring ---- */

bool
fms_probe_can(const FmsProbe *probe, const FmsProbePoint *point)
{
	/* some methods can do no more than one at a time */
	return point->block_bytes >= probe->sector_bytes &&
		point->block_bytes <= fms_tape_end(probe->tape) &&
		(point->depth == 1 || !probe->io.method->submit_blocks);
}

/* Gets the request at that place ready. */
static void
prepare(FmsProbe *probe, const FmsProbePoint *point, uint32 place)
{
	FmsIoRequest *request = &probe->requests[place];
	uint32		bytes = point->block_bytes;
	uint64		nblocks = fms_tape_end(probe->tape) / bytes;
	uint32		room = BUFFERS_BYTES / bytes;
	bool		sequential = point->pattern == FMS_PATTERN_SR ||
		point->pattern == FMS_PATTERN_SW;

	request->is_write = point->pattern == FMS_PATTERN_SW ||
		point->pattern == FMS_PATTERN_RW;
	request->length_bytes = bytes;
	request->offset_bytes = bytes *
		(sequential ? probe->next++ % nblocks :
		 pg_prng_uint64_range(&probe->random, 0, nblocks - 1));
	/* where memory is too small for all, several read or write the same */
	request->buffer = probe->buffers + (place % room) * bytes;
	/* a page that changes under a write breaks file systems' checksums */
	if (request->is_write && point->depth <= room)
		renew(probe, request->buffer, bytes);
}

/*
 * Submits the next batch, the last request first: neighbours in ascending
 * order would become one operation (fms_io_join()).
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
	if (ready[first]->is_write)
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

/* Counts the requests that are done, after so long. */
static void
collect(FmsProbe *probe, uint32 depth, Progress *progress, double now_us)
{
	for (uint32 i = 0; i < depth; i++)
	{
		if (probe->requests[i].state != FMS_IO_DONE)
			continue;
		fms_tape_wait(probe->tape, &probe->requests[i]);
		progress->done++;
		if (progress->done <= depth || now_us < progress->from_us)
			progress->ramp_us = now_us;
		/* those that come together with the last of the ramp are part of it */
		else if (now_us > progress->ramp_us &&
				 (now_us < progress->stop_us ||
				  progress->counted < (depth + 3) / 4))
		{
			progress->counted++;
			progress->last_us = now_us;
		}
	}
}

void
fms_probe_measure(FmsProbe *probe, double seconds, FmsProbePoint *point)
{
	Progress	progress = {.stop_us = seconds * 1e6};
	uint32		depth = point->depth;
	uint32		batch = fms_io_batch(depth);	/* as the merge */
	instr_time	start = fms_clock_now();
	bool		over;

	Assert(fms_probe_can(probe, point));
	if (point->pattern == FMS_PATTERN_RR_LASTING)
		progress.from_us = progress.stop_us / 2;
	probe->next = 0;
	do
	{
		/* a method that does not wait comes by no other place that looks */
		CHECK_FOR_INTERRUPTS();
		over = fms_clock_since_us(start) >= progress.stop_us &&
			progress.counted >= (depth + 3) / 4;
		if (!over)
			refill(probe, point, batch);
		/* a method that does not wait has done them by now */
		collect(probe, depth, &progress, fms_clock_since_us(start));
		while (probe->io.in_flight > (over ? 0 : depth - batch))
		{
			wait_for_any(probe);
			collect(probe, depth, &progress, fms_clock_since_us(start));
		}
	} while (!over);
	point->mb_per_s = (double) progress.counted * point->block_bytes /
		Max(progress.last_us - progress.ramp_us, 1);
}
