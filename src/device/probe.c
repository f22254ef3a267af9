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
 * The device may compress or deduplicate data.  The file therefore has random
 * contents, and each page that is written has a distinct number.  A device
 * need not read blocks that were never written, so the file is written first.
 *
 * On ERROR, a reset callback of the caller's memory context drains and closes
 * the channel, and the resource owner deletes the file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "catalog/pg_tablespace.h"
#include "commands/tablespace.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#include "base/clock.h"
#include "device/probe.h"
#include "tape/tape.h"

/* Bytes of all buffers. */
#define BUFFERS_BYTES	((uint32) 32 * 1024 * 1024)

/* Temporary tablespaces of a session beyond this number are forgotten. */
#define TABLESPACES_MAX	1024

StaticAssertDecl(FMS_BLOCK_MAX_BYTES <= BUFFERS_BYTES,
				 "a buffer must hold any block");

struct FmsProbe
{
	MemoryContextCallback on_reset;
	FmsIo		io;
	FmsTape    *tape;
	char	   *buffers;
	FmsIoRequest requests[FMS_DEVICE_DEPTH_MAX];
	uint64		next;			/* number of a sequential pattern's block */
};

static void
close_io(void *arg)
{
	fms_io_close(&((FmsProbe *) arg)->io);
}

/* Raises an error if fd.c fell back silently to another tablespace. */
static void
check_place(const FmsProbe *probe, Oid tablespace)
{
	char		directory[MAXPGPATH];

	TempTablespacePath(directory, tablespace);
	if (path_is_prefix_of_path(directory, fms_tape_path(probe->tape, 0)))
		return;
	if ((MakePGDirectory(directory) == 0 || errno == EEXIST) &&
		access(directory, W_OK | X_OK) == 0)
		errno = EIO;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not create a temporary file in tablespace \"%s\": %m",
					get_tablespace_name(tablespace)),
			 errdetail("The directory is \"%s\".", directory)));
}

/*
 * Opens a tape in the tablespace: meanwhile it is the only one of fd.c's list.
 * fd.c keeps the pointer to a list for the transaction.
 *
 * The tape has blocks of a page; fms_probe_can() allows smaller requests if
 * the device takes them.
 */
static void
open_tape(FmsProbe *probe, Oid tablespace, bool direct)
{
	Oid		   *chosen = MemoryContextAlloc(TopTransactionContext,
											sizeof(Oid));
	Oid		   *before = MemoryContextAlloc(TopTransactionContext,
											TABLESPACES_MAX * sizeof(Oid));
	int			nbefore;

	PrepareTempTablespaces();
	nbefore = GetTempTablespaces(before, TABLESPACES_MAX);
	*chosen = tablespace == MyDatabaseTableSpace ? InvalidOid : tablespace;
	SetTempTablespaces(chosen, 1);
	PG_TRY();
	{
		/* nobody reads these counters */
		probe->tape = fms_tape_open(&probe->io, FMS_IO_ALIGN_BYTES, false,
									NULL, palloc0(FMS_COUNTERS_BYTES));
	}
	PG_FINALLY();
	{
		SetTempTablespaces(before, nbefore);
	}
	PG_END_TRY();
	check_place(probe, tablespace);
	if (direct)
		(void) fms_tape_set_direct(probe->tape, true, false);
}

FmsProbe *
fms_probe_open(Oid tablespace, FmsIoChoice io_method, bool direct)
{
	FmsProbe   *probe = palloc0(sizeof(FmsProbe));

	probe->on_reset.func = close_io;
	probe->on_reset.arg = probe;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &probe->on_reset);
	fms_io_open(&probe->io, io_method);
	probe->buffers = fms_io_map(&probe->io, BUFFERS_BYTES, direct);
	for (uint32 i = 0; i < BUFFERS_BYTES; i += sizeof(uint64))
		*(uint64 *) (probe->buffers + i) =
			pg_prng_uint64(&pg_global_prng_state);
	open_tape(probe, tablespace, direct);
	if (direct && !fms_tape_is_direct(probe->tape))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("file system of tablespace \"%s\" does not support direct I/O",
						get_tablespace_name(tablespace)),
				 errdetail("Sorts in this tablespace use the page cache and need no profile."),
				 errhint("To measure the page cache, pass direct_io => false.")));
	return probe;
}

uint64
fms_probe_file_bytes(const FmsProbe *probe)
{
	return probe->tape->end_bytes;
}

const char *
fms_probe_io_method(const FmsProbe *probe)
{
	return probe->io.method->name;
}

void
fms_probe_close(FmsProbe *probe)
{
	/* nothing may be in flight when the file goes */
	fms_io_close(&probe->io);
	fms_tape_close(probe->tape);
}

bool
fms_probe_can(const FmsProbe *probe, const FmsProbePoint *point)
{
	return point->block_bytes >= probe->tape->files[0].direct_alignment &&
		point->block_bytes <= probe->tape->end_bytes &&
		(point->depth == 1 || !probe->io.method->submit_blocks);
}

static bool
writes(FmsPattern pattern)
{
	return pattern == FMS_PATTERN_SW || pattern == FMS_PATTERN_RW ||
		pattern == FMS_PATTERN_APPEND;
}

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
			pg_prng_uint64_range(&pg_global_prng_state, 0, nblocks - 1);
	/* file systems' checksums fail if a page changes while it is written */
	if (!writes(point->pattern) || point->depth > room)
		return;
	for (uint32 i = 0; i < bytes; i += FMS_IO_ALIGN_BYTES)
		*(uint64 *) (request->buffer + i) =
			pg_prng_uint64(&pg_global_prng_state);
}

/*
 * Submits a batch of requests that are not in flight, in descending order: the
 * kernel may merge ascending neighbours into one operation.
 */
static void
submit(FmsProbe *probe, const FmsProbePoint *point, uint32 batch)
{
	FmsIoRequest *ready[FMS_DEVICE_DEPTH_MAX];
	uint32		left = batch;

	for (uint32 i = 0; left > 0; i++)
	{
		Assert(i < point->depth);
		if (probe->requests[i].state == FMS_IO_IN_FLIGHT)
			continue;
		prepare(probe, point, i);
		ready[--left] = &probe->requests[i];
	}
	if (point->pattern == FMS_PATTERN_APPEND)
	{
		for (uint32 i = 0; i < batch; i++)
			fms_tape_append(probe->tape, ready[i], ready[i]->buffer,
							point->block_bytes);
	}
	else if (writes(point->pattern))
		fms_tape_overwrite(probe->tape, ready, batch);
	else
		fms_tape_read(probe->tape, ready, batch);
}

static uint32
collect(FmsProbe *probe, uint32 depth)
{
	uint32		n = 0;

	for (uint32 i = 0; i < depth; i++)
	{
		if (probe->requests[i].state != FMS_IO_DONE &&
			probe->requests[i].state != FMS_IO_ANNOUNCED)
			continue;
		fms_tape_wait(probe->tape, &probe->requests[i]);
		n++;
	}
	return n;
}

void
fms_probe_measure(FmsProbe *probe, double seconds, uint64 file_bytes,
				  FmsProbePoint *point)
{
	uint32		depth = point->depth;
	uint32		batch = fms_io_batch(depth);
	bool		appends = point->pattern == FMS_PATTERN_APPEND;
	uint64		ramp = 0;		/* requests until the queue was full once */
	uint64		counted = 0;	/* ... after that */
	double		ramp_us = 0;	/* end of the ramp, since the start */
	double		now_us = 0;
	instr_time	start = fms_clock_now();

	Assert(appends || fms_probe_can(probe, point));
	probe->next = 0;
	while ((now_us < seconds * 1e6 || counted < (depth + 3) / 4) &&
		   !(appends && probe->tape->end_bytes >= file_bytes))
	{
		uint32		done;

		CHECK_FOR_INTERRUPTS();
		if (probe->io.in_flight <= depth - batch)
			submit(probe, point, batch);
		else
		{
			pgstat_report_wait_start(WAIT_EVENT_BUFFILE_READ);
			(void) fms_io_wait(&probe->io);
			pgstat_report_wait_end();
		}
		done = collect(probe, depth);
		if (done == 0)
			continue;
		now_us = fms_clock_since_us(start);
		if (ramp < depth)
		{
			ramp += done;
			ramp_us = now_us;
		}
		else
			counted += done;
	}
	point->mb_per_s = (double) counted * point->block_bytes /
		Max(now_us - ramp_us, 1);
	for (uint32 i = 0; i < depth; i++)
	{
		if (probe->requests[i].state != FMS_IO_IDLE)
			fms_tape_wait(probe->tape, &probe->requests[i]);
	}
	if (appends)
		fms_tape_trim(probe->tape);
}
