/*-------------------------------------------------------------------------
 *
 * tape.c
 *	  Temporary files that are written at the end or in free extents, and read
 *	  anywhere, asynchronously.
 *
 *	  file 0  |  run 0  |  free  | run 2 |  free  | run 4 |
 *	                        ^ position                    ^ end
 *	  file 1  |  run 5  |  free  | run 7 |		complete: does not grow
 *
 * With several temporary tablespaces, file 0 has stripes in all of them, so
 * the devices work at once.  A stripe has whole blocks; a write stays in one.
 *
 * An intermediate pass frees the extents that it has read (space.c), and the
 * tape writes there before it grows.  A run written into a free extent uses
 * the same kind of I/O (page cache or direct) as the extent's first contents.
 *
 * Descriptors are resolved right before a submission: fd.c may close any file
 * when it needs a descriptor.  A submitted request does not need it any more.
 *
 * On ERROR: the resource owner closes and deletes the files, the channel's
 * owner drains the requests, in either order.  Nothing is done here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/wait_event.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "base/compat.h"
#include "base/interrupts.h"
#include "tape/tape.h"

/*
 * Size of a write to the page cache, in bytes.  Larger writes get larger
 * folios, which are slow to allocate in some virtual machines.
 */
#define CACHED_WRITE_BYTES	32768

/*
 * From this size of the tape on, in bytes, the kernel's workers copy writes to
 * the page cache, which needs a free core: not in parallel plans.
 */
#define WORKERS_FROM_BYTES	((uint64) 16 * 1024 * 1024)

/* Least size of a stripe, in bytes: that of a write at a work_mem of 4 MB. */
#define STRIPE_MIN_BYTES	((uint64) 128 * 1024)

/* Offsets from there on, without limit. */
#define EXTENT_FROM(bytes)	((FmsFreeExtent) {(bytes), PG_UINT64_MAX})

static inline bool
is_at_end(const FmsTape *tape)
{
	return tape->here.upto_bytes == PG_UINT64_MAX;
}

FmsTape *
fms_tape_open(FmsIo *io, uint32 block_bytes, bool checksums,
			  const FmsSharedFiles *shared, FmsCounters *counters)
{
	FmsTape    *tape = palloc0(sizeof(FmsTape));
	Oid			tablespaces[FMS_TAPE_STRIPES_MAX];

	Assert(block_bytes % FMS_BLOCK_QUANTUM_BYTES == 0);

	tape->io = io;
	tape->counters = counters;
	tape->block_bytes = block_bytes;
	tape->salt = shared ? shared->salt : fms_checksum_new_salt();
	tape->checksums = checksums;
	tape->here = EXTENT_FROM(0);
	tape->nstriped = 1;
	tape->stripe_bytes = FMS_TAPE_OFFSET_MASK + 1;
	/*
	 * Smaller blocks would not fill stripes of whole pages.  The set has the
	 * files of a parallel sort's participants in several tablespaces.
	 */
	if (block_bytes % FMS_IO_ALIGN_BYTES == 0 && shared == NULL)
		tape->nstriped = fms_temp_file_tablespaces(tablespaces,
												   FMS_TAPE_STRIPES_MAX);
	if (tape->nstriped > 1)
		tape->stripe_bytes = (STRIPE_MIN_BYTES + block_bytes - 1) /
			block_bytes * block_bytes;
	tape->files = palloc(tape->nstriped * sizeof(FmsTempFile));
	/* fd.c takes the tablespaces in turn */
	for (int i = 0; i < tape->nstriped; i++)
		fms_temp_file_open(&tape->files[i], block_bytes, shared);
	tape->nfiles = tape->nstriped;
	return tape;
}

uint64
fms_tape_adopt(FmsTape *tape, const FmsTempFile *written,
			   const FmsSharedFiles *shared)
{
	int			number = tape->nfiles;

	tape->files = repalloc(tape->files, (number + 1) * sizeof(FmsTempFile));
	fms_temp_file_adopt(&tape->files[number], written, shared);
	tape->nfiles++;
	return (uint64) number << FMS_TAPE_OFFSET_BITS;
}

void
fms_tape_close(FmsTape *tape)
{
	Assert(tape->io->in_flight == 0);
	for (int i = 0; i < tape->nfiles; i++)
		fms_temp_file_close(&tape->files[i]);
	fms_space_clear(&tape->free);
	pfree(tape->files);
	pfree(tape);
}

static uint64
end_of_file(const FmsTape *tape, int file)
{
	uint64		stripe = tape->end_bytes / tape->stripe_bytes;
	int			last = stripe % tape->nstriped;
	uint64		end = stripe / tape->nstriped * tape->stripe_bytes;

	if (file < last)
		end += tape->stripe_bytes;
	else if (file == last)
		end += tape->end_bytes % tape->stripe_bytes;
	return end;
}

bool
fms_tape_set_direct(FmsTape *tape, bool direct, bool required)
{
	for (int i = 0; i < tape->nstriped; i++)
	{
		FmsTempFile *file = &tape->files[i];

		if (fms_temp_file_set_direct(file, end_of_file(tape, i), direct))
			continue;
		if (required)
			fms_temp_file_report_no_direct(file);
		ereport(DEBUG1,
				(errmsg_internal("fmsort: no direct I/O for \"%s\" with blocks of %u bytes: %m",
								 fms_tape_path(tape, i), tape->block_bytes)));
		/* the others stay with it */
		while (--i >= 0)
			(void) fms_temp_file_set_direct(&tape->files[i],
											end_of_file(tape, i), !direct);
		return false;
	}
	return true;
}

bool
fms_tape_is_direct(const FmsTape *tape)
{
	for (int i = 0; i < tape->nfiles; i++)
	{
		if (tape->files[i].direct_from_bytes <
			tape->files[i].direct_upto_bytes)
			return true;
	}
	return false;
}

const char *
fms_tape_path(const FmsTape *tape, int file)
{
	return FilePathName(tape->files[file].file);
}

bool
fms_tape_has_free(FmsTape *tape, Size bytes)
{
	return is_at_end(tape) &&
		fms_space_take(&tape->free, Max(bytes, fms_tape_free_bytes(tape)),
						NULL);
}

void
fms_tape_move_on(FmsTape *tape, Size bytes)
{
	if (!is_at_end(tape) && tape->here.from_bytes < tape->here.upto_bytes)
		fms_space_add(&tape->free, tape->here);
	if (!fms_space_take(&tape->free, Max(bytes, fms_tape_free_bytes(tape)),
						&tape->here))
		tape->here = EXTENT_FROM(tape->end_bytes);
	Assert(fms_tape_holds(tape, tape->block_bytes));
}

void
fms_tape_free(FmsTape *tape, uint64 address, Size length_bytes)
{
	fms_space_add(&tape->free,
				  (FmsFreeExtent) {address, address + length_bytes});
}

void
fms_tape_trim(FmsTape *tape)
{
	for (int i = 0; i < tape->nstriped; i++)
		fms_temp_file_trim(&tape->files[i], end_of_file(tape, i));
}

/* blocked: the time since start was spent waiting for the device. */
static void
count_time(FmsTape *tape, bool is_write, bool blocked, instr_time start)
{
	instr_time	spent;
	double		spent_us;

	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, start);
	spent_us = INSTR_TIME_GET_DOUBLE(spent) * 1e6;
	if (track_io_timing)
	{
		instr_time *total = is_write ? &pgBufferUsage.temp_blk_write_time :
			&pgBufferUsage.temp_blk_read_time;

		INSTR_TIME_ADD(*total, spent);
	}
	if (blocked && is_write)
		tape->write_blocked_us += spent_us;
	else if (blocked)
		fms_count_us(tape->counters, FMS_COUNT_BLOCKED_NS, spent_us);
}

/*
 * Sets the requests' descriptors, which fd.c may have closed.  Returns the
 * number of requests, from the first on, for which it can have them all open:
 * 1 at least.  Submit these before fd.c is called again.
 */
static int
resolve(FmsTape *tape, FmsIoRequest **requests, int n)
{
	for (;;)
	{
		int			i;

		for (i = 0; i < n; i++)
			fms_temp_file_reopen(&tape->files[requests[i]->file],
								 requests[i]->offset_bytes);
		for (i = 0; i < n; i++)
		{
			requests[i]->fd =
				fms_temp_file_fd(&tape->files[requests[i]->file],
								 requests[i]->offset_bytes);
			if (requests[i]->fd < 0)
				break;
		}
		if (i == n)
			return n;
		/* the one reopened last is open */
		Assert(n > 1);
		n /= 2;
	}
}

static void
submit(FmsTape *tape, FmsIoRequest **requests, int n)
{
	while (n > 0)
	{
		int			resolved = resolve(tape, requests, n);

		fms_io_submit(tape->io, requests, resolved);
		requests += resolved;
		n -= resolved;
	}
}

static bool
is_direct(const FmsTape *tape, const FmsIoRequest *request)
{
	return fms_temp_file_is_direct_at(&tape->files[request->file],
									  request->offset_bytes);
}

/* Makes the request a write.  Returns whether it uses direct I/O. */
static bool
make_write(const FmsTape *tape, FmsIoRequest *request)
{
	bool		direct = is_direct(tape, request);

	request->is_write = true;
	request->operation_bytes = direct ? 0 : CACHED_WRITE_BYTES;
	return direct;
}

void
fms_tape_append(FmsTape *tape, FmsIoRequest *request, char *buffer,
				uint32 length_bytes)
{
	bool		direct;
	instr_time	start;

	Assert(length_bytes > 0 && length_bytes % FMS_IO_ALIGN_BYTES == 0);
	Assert(request->state != FMS_IO_IN_FLIGHT);
	Assert(fms_tape_holds(tape, length_bytes));
	Assert(!is_at_end(tape) || fms_tape_position(tape) == tape->end_bytes);

	request->buffer = buffer;
	request->length_bytes = length_bytes;
	fms_tape_locate(tape, request, fms_tape_position(tape));
	direct = make_write(tape, request);
	if (is_at_end(tape))
	{
		fms_temp_file_reserve(&tape->files[request->file],
							  request->offset_bytes + length_bytes);
		tape->end_bytes += length_bytes;
	}
	tape->here.from_bytes += length_bytes;
	tape->written_bytes += length_bytes;
	fms_count(tape->counters, FMS_COUNT_WRITES, 1);
	fms_count(tape->counters, FMS_COUNT_WRITTEN_BYTES, length_bytes);
	if (!direct)
	{
		tape->cached_bytes += length_bytes;
		fms_count(tape->counters, FMS_COUNT_CACHED_BYTES, length_bytes);
	}

	start = fms_clock_now();
	(void) resolve(tape, &request, 1);
	if (direct || (tape->end_bytes >= WORKERS_FROM_BYTES &&
				   length_bytes >= CACHED_WRITE_BYTES && !IsInParallelMode()))
		fms_io_submit(tape->io, &request, 1);
	else
		fms_io_carry_out(tape->io, request);
	/* copying takes time, but is no waiting for a device */
	if (!direct || tape->io->method->submit_blocks)
		count_time(tape, true, direct, start);
}

void
fms_tape_read(FmsTape *tape, FmsIoRequest **requests, int n)
{
	instr_time	start = fms_clock_now();
	int			first = 0;

	while (first < n)
	{
		Size		bytes = 0;
		int			i = first;

		/* submitting may carry them out, so check for interrupts between */
		do
		{
			requests[i]->is_write = false;
			requests[i]->cached = !is_direct(tape, requests[i]);
			requests[i]->operation_bytes = 0;
			bytes += requests[i++]->length_bytes;
		} while (i < n &&
				 bytes + requests[i]->length_bytes <= FMS_INTERRUPT_IO_BYTES);
		CHECK_FOR_INTERRUPTS();
		submit(tape, &requests[first], i - first);
		fms_count(tape->counters, FMS_COUNT_READ_BYTES, bytes);
		first = i;
	}
	fms_count(tape->counters, FMS_COUNT_READS, n);
	fms_count(tape->counters, FMS_COUNT_READ_BATCHES, 1);
	if (tape->io->method->submit_blocks)
		count_time(tape, false, true, start);
}

void
fms_tape_overwrite(FmsTape *tape, FmsIoRequest **requests, int n)
{
	for (int i = 0; i < n; i++)
	{
		Assert(requests[i]->file == 0);
		Assert(requests[i]->offset_bytes + requests[i]->length_bytes <=
			   tape->end_bytes);
		(void) make_write(tape, requests[i]);
	}
	submit(tape, requests, n);
}

static void
report_failure(const FmsTape *tape, const FmsIoRequest *request, int result)
{
	const char *path = fms_tape_path(tape, request->file);

	if (result < 0 || request->is_write)
	{
		/* a write that stops half-way has met the end of the disk */
		errno = result < 0 ? -result : ENOSPC;
		ereport(ERROR,
				(errcode_for_file_access(),
				 request->is_write ?
				 errmsg("could not write to sort temporary file \"%s\": %m",
						path) :
				 errmsg("could not read from sort temporary file \"%s\": %m",
						path),
				 errdetail("The request was for %u bytes at offset %llu.", request->length_bytes,
						   (unsigned long long) request->offset_bytes)));
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("sort temporary file \"%s\" is shorter than it should be",
					path),
			 errdetail("Only %d of %u bytes were read at offset %llu.",
					   result, request->length_bytes,
					   (unsigned long long) request->offset_bytes)));
}

/* For EXPLAIN (BUFFERS): a block of BLCKSZ counts with its last byte. */
static void
count_blocks(const FmsIoRequest *request)
{
	long		blocks = (request->offset_bytes + request->length_bytes) /
		BLCKSZ - request->offset_bytes / BLCKSZ;

	if (request->is_write)
		pgBufferUsage.temp_blks_written += blocks;
	else
		pgBufferUsage.temp_blks_read += blocks;
}

static void
wait_for_kernel(FmsTape *tape, FmsIoRequest *request)
{
	uint32		event = request->is_write ? WAIT_EVENT_BUFFILE_WRITE :
		WAIT_EVENT_BUFFILE_READ;
	instr_time	start = fms_clock_now();

	pgstat_report_wait_start(event);
	if (request->state == FMS_IO_ANNOUNCED)
	{
		(void) resolve(tape, &request, 1);
		fms_io_carry_out(tape->io, request);
	}
	while (request->state == FMS_IO_IN_FLIGHT)
	{
		if (!fms_io_wait(tape->io))
		{
			pgstat_report_wait_end();
			CHECK_FOR_INTERRUPTS();
			pgstat_report_wait_start(event);
		}
	}
	pgstat_report_wait_end();

	count_time(tape, request->is_write, true, start);
}

/* Was a ring refused what a plain call is not, for its workers, say? */
static bool
was_refused(int result)
{
	switch (-result)
	{
		case EINTR:
		case EAGAIN:
		case EBUSY:
		case ECANCELED:
		case ENOSYS:
		case EOPNOTSUPP:
		case EACCES:
		case EPERM:
			return true;
	}
	return false;
}

bool
fms_tape_is_late(FmsTape *tape, FmsIoRequest *request)
{
	if (request->state == FMS_IO_IN_FLIGHT)
		fms_io_poll(tape->io);
	else if (request->state == FMS_IO_ANNOUNCED)
	{
		(void) resolve(tape, &request, 1);
		fms_io_finish_cached(tape->io, request);
	}
	return request->state == FMS_IO_IN_FLIGHT ||
		request->state == FMS_IO_ANNOUNCED;
}

void
fms_tape_wait(FmsTape *tape, FmsIoRequest *request)
{
	Assert(request->state != FMS_IO_IDLE);

	/* a merge that finds all in the page cache never waits for the kernel */
	CHECK_FOR_INTERRUPTS();
	if (request->state == FMS_IO_IN_FLIGHT)
		fms_io_poll(tape->io);
	if (request->state != FMS_IO_DONE)
		wait_for_kernel(tape, request);

	request->state = FMS_IO_IDLE;
	if (unlikely(request->result != (int) request->length_bytes))
	{
		int			result = request->result;

		/* short or not done: do it once more, whole and synchronously */
		if (result > 0 || was_refused(result))
		{
			(void) resolve(tape, &request, 1);
			result = fms_io_transfer(request);
		}
		if (result != (int) request->length_bytes)
			report_failure(tape, request, result);
	}
	count_blocks(request);
}

void
fms_tape_report_corrupted(const FmsTape *tape, int file, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("sort temporary file \"%s\" is corrupted",
					fms_tape_path(tape, file)),
			 errdetail_internal("%s", detail),
			 errhint("The storage did not return what was written. Check the device before you run the query again.")));
}
