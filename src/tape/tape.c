/*-------------------------------------------------------------------------
 *
 * tape.c
 *	  A temporary file that is written at its end, or again where it is free,
 *	  and read anywhere, both asynchronously; the format of the blocks in it.
 *
 * The file is PostgreSQL's own: OpenTemporaryFile() makes it, so the right
 * tablespace, temp_file_limit, log_temp_files, pg_stat_database, deletion at
 * the end of the transaction and clean-up after a crash come with it.  Two
 * things it does not give us are done here.
 *
 * Direct I/O.  fd.c reopens a file with the flags it was opened with, so
 * O_DIRECT cannot be switched on later.  A second virtual file on the same
 * path carries the flag and all block transfers; the first keeps the
 * accounting.  Blocks lie one behind the other from the beginning of a page
 * on, in memory and in the file.  So the file system has to take transfers
 * that are aligned as one block is (io_direct.c); else there is no direct I/O.
 *
 * Accounting.  fd.c counts and limits only what FileWrite() writes.  So the
 * tape is extended a piece at a time by writing the last page of the piece
 * through FileWrite(): fd.c charges the whole piece, and raises its own
 * error when temp_file_limit is reached.  The asynchronous writes then go
 * below the end that fd.c knows.
 *
 *	  |<------- written ------->|<-- reserved -->|
 *	  |  run 0  |  run 1  | ... |          |page |
 *	                            ^ end            ^ charged
 *
 * Pieces grow with the file (an eighth), so a small spill reserves little
 * and a large one rarely.  fms_tape_trim() gives the rest back.
 *
 * A tape may begin in the page cache and leave it, or come back: each transfer
 * goes to the file that its place was written through.
 *
 *	  |<-- page cache -->|<-------- direct -------->|<-- page cache -->|
 *	                     ^ turn                     ^ turn
 *
 * What is not needed any more is free (space.c), and is written again before
 * the end moves on.  It stays in the page cache, or past it, where it was; but
 * what is free in the page cache while the end is past it, since memory is
 * short, becomes a hole in the file, so that the memory is free as well.
 *
 * Descriptors are resolved right before a submission and never kept: fd.c
 * may close any file when it needs its descriptor for another one.  Once a
 * request is submitted that does no harm.
 *
 * On ERROR: the resource owner closes and deletes the files, the channel's
 * owner drains the requests, in either order.  Nothing is done here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xact.h"
#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/fd.h"
#include "utils/wait_event.h"

#include "base/clock.h"
#include "base/compat.h"
#include "io/io_direct.h"
#include "base/interrupts.h"
#include "tape/space.h"
#include "tape/tape.h"

/*
 * Writes to the page cache go in pieces of this.  Larger ones would be given
 * larger folios, which no processor has in its own list of free memory: they
 * come from that of all, and of memory that has been free for long; on a
 * virtual machine that hands free memory back to its host that can take
 * several times longer.  Smaller ones cost more calls and folios.
 */
#define CACHED_WRITE_BYTES	32768

/*
 * What is free is written again in pieces of this, and of this part of the
 * tape, at least: large enough for any device, and so few that to remember
 * where all of them are takes no memory that would count.
 */
#define FREE_MIN_BYTES		((Size) 256 * 1024)
#define FREE_FRACTION		4096

/*
 * Up to here, a write to the page cache is a copy that we make ourselves.  To
 * have the kernel's workers make it takes starting them, and a core that has
 * nothing else to do: a large sort gains by that, many small ones lose, and so
 * does one whose query runs on several cores already.
 */
#define WORKERS_FROM_BYTES	((uint64) 16 * 1024 * 1024)

/* So often a tape can change its mind; then it stays where it is. */
#define TURNS_MAX	15

#define RESERVE_MIN_BYTES	((uint64) 64 * 1024)
#define RESERVE_MAX_BYTES	((uint64) 8 * 1024 * 1024)

struct FmsTape
{
	FmsIo	   *io;
	FmsCounters *counters;		/* NULL: nobody reports this tape */
	FmsTapeUse	use;
	File		file;			/* accounting, buffered */
	File		direct_file;	/* O_DIRECT on the same path, or 0 */
	uint64		turns[TURNS_MAX];	/* from the page cache past it, and back,
									 * by turns; the first at 0 if it never
									 * was in there */
	int			nturns;
	uint32		block_bytes;
	uint32		direct_alignment;	/* that direct transfers need, once asked;
									 * 0: there are none */
	uint32		salt;			/* in the seal of all that is written */
	bool		checksums;		/* likewise */
	uint64		end_bytes;		/* written or being written */
	FmsSpace	free;			/* before it, to be written again */
	FmsStretch	here;			/* the rest of what is being written again;
								 * empty: the end is what moves */
	uint64		charged_bytes;	/* reserved; end_bytes <= charged_bytes */
	bool		makes_holes;	/* the file system has not refused yet */
	uint64		uncounted_read_bytes;	/* not yet a whole block in */
	uint64		uncounted_write_bytes;	/* pgBufferUsage; < BLCKSZ */
};

/* Does what is appended next move the end? */
static inline bool
is_at_end(const FmsTape *tape)
{
	return tape->here.from_bytes == tape->here.upto_bytes;
}

/* The file that transfers at that place use. */
static inline File
transfer_file(const FmsTape *tape, uint64 offset_bytes)
{
	int			turns = tape->nturns;

	while (turns > 0 && offset_bytes < tape->turns[turns - 1])
		turns--;
	return turns % 2 == 1 ? tape->direct_file : tape->file;
}

static inline bool
is_direct_at(const FmsTape *tape, uint64 offset_bytes)
{
	return transfer_file(tape, offset_bytes) == tape->direct_file;
}

/* Makes the request a write; returns whether it goes past the page cache. */
static bool
make_write(const FmsTape *tape, FmsIoRequest *request)
{
	bool		direct = is_direct_at(tape, request->offset_bytes);

	request->is_write = true;
	request->piece_bytes = direct ? 0 : CACHED_WRITE_BYTES;
	return direct;
}

/*
 * A descriptor to use now.  FileSize() is the cheapest call that makes fd.c
 * reopen a file it has closed.
 */
static int
raw_fd(FmsTape *tape, File file)
{
	int			fd = FileGetRawDesc(file);

	if (fd < 0)
	{
		if (FileSize(file) < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not reopen sort temporary file \"%s\": %m",
							FilePathName(tape->file))));
		fd = FileGetRawDesc(file);
	}
	Assert(fd >= 0);
	return fd;
}

/*
 * Says to which file each request goes.  Reopening one may close the other,
 * but never the one that was reopened last.
 */
static void
resolve(FmsTape *tape, FmsIoRequest **requests, int n)
{
	int			i;

	do
	{
		(void) raw_fd(tape, tape->file);
		if (tape->direct_file > 0)
			(void) raw_fd(tape, tape->direct_file);
	} while (FileGetRawDesc(tape->file) < 0);

	for (i = 0; i < n; i++)
	{
		File		file = transfer_file(tape, requests[i]->offset_bytes);

		requests[i]->fd = FileGetRawDesc(file);
	}
}

/*
 * Has the file system find space for writes past the page cache beforehand.
 * Else each of them does it for itself, with the file locked against all
 * others and against reads.  Where that is not to be had, so be it: the write
 * says what is wrong.
 */
static void
find_space(FmsTape *tape, uint64 from_bytes, uint64 upto_bytes)
{
	if (from_bytes < upto_bytes && is_direct_at(tape, tape->end_bytes))
		(void) fallocate(raw_fd(tape, tape->file), 0, (off_t) from_bytes,
						 (off_t) (upto_bytes - from_bytes));
}

/*
 * Makes fd.c charge us for the file up to there, at least.
 */
static void
reserve(FmsTape *tape, uint64 upto_bytes)
{
	static const PGAlignedXLogBlock zeroes;
	uint64		piece = Max(RESERVE_MIN_BYTES,
							Min(RESERVE_MAX_BYTES, tape->charged_bytes / 8));
	uint64		target;
	int			written;

	StaticAssertStmt(sizeof(zeroes) >= FMS_IO_ALIGN_BYTES,
					 "one page of zeroes is needed");

	if (upto_bytes <= tape->charged_bytes)
		return;
	target = FMS_IO_ALIGN(Max(upto_bytes, tape->charged_bytes + piece));

	errno = 0;
	written = FileWrite(tape->file, (char *) zeroes.data, FMS_IO_ALIGN_BYTES,
						target - FMS_IO_ALIGN_BYTES,
						WAIT_EVENT_BUFFILE_WRITE);
	if (written != FMS_IO_ALIGN_BYTES)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not extend sort temporary file \"%s\": %m",
						FilePathName(tape->file))));
	find_space(tape, tape->charged_bytes, target - FMS_IO_ALIGN_BYTES);
	tape->charged_bytes = target;
}

/*
 * Opens the direct view of the file.  Returns false, with errno set, if the
 * file has no direct I/O or its blocks are not aligned as that needs.
 */
static bool
open_direct(FmsTape *tape)
{
	char	   *path = FilePathName(tape->file);
	int			probe;
	int			error;

	/*
	 * fd.c raises an error if the open fails, so ask the file system first.
	 */
	reserve(tape, FMS_IO_ALIGN_BYTES);
	probe = OpenTransientFile(path, O_RDWR | PG_O_DIRECT | PG_BINARY);
	if (probe < 0)
		return false;
	tape->direct_alignment =
		fms_io_direct_alignment(probe,
								tape->charged_bytes - FMS_IO_ALIGN_BYTES);
	error = tape->direct_alignment == 0 ? errno : EINVAL;
	CloseTransientFile(probe);
	if (tape->direct_alignment == 0 ||
		tape->block_bytes % tape->direct_alignment != 0)
	{
		errno = error;
		return false;
	}

	tape->direct_file = PathNameOpenTemporaryFile(path,
												  O_RDWR | PG_O_DIRECT);
	if (tape->direct_file <= 0)
		elog(ERROR, "sort temporary file \"%s\" has disappeared", path);
	fms_io_expect_direct(tape->io);
	return true;
}

/* After open_direct() has failed under FMS_DIRECT_ON, with its errno. */
static void
report_no_direct(const FmsTape *tape)
{
	int			error = errno;
	uint32		alignment = tape->direct_alignment;

	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("direct I/O is not possible for sort temporary file \"%s\" with blocks of %u bytes",
					FilePathName(tape->file), tape->block_bytes),
			 alignment > 0 ?
			 errdetail("The device transfers multiples of %u bytes.",
					   alignment) :
			 errdetail("The file system refuses it: %s.", strerror(error)),
			 alignment > 0 ?
			 errhint("Set fmsort.direct_io to \"auto\", or use blocks of a multiple of %u bytes. If fmsort.block_size is automatic, raise work_mem or lower fmsort.assist_blocks.",
					 alignment) :
			 errhint("Set fmsort.direct_io to \"auto\", or point temp_tablespaces to another file system.")));
}

FmsTape *
fms_tape_open(FmsIo *io, FmsDirectChoice direct, uint32 block_bytes,
			  bool checksums, FmsCounters *counters)
{
	FmsTape    *tape = palloc0(sizeof(FmsTape));

	Assert(block_bytes % FMS_BLOCK_QUANTUM_BYTES == 0);

	tape->io = io;
	tape->counters = counters;
	tape->block_bytes = block_bytes;
	tape->makes_holes = true;
	tape->salt = fms_checksum_new_salt();
	tape->checksums = checksums;
	PrepareTempTablespaces();
	tape->file = OpenTemporaryFile(false);

	if (direct != FMS_DIRECT_OFF && !fms_tape_set_direct(tape, true))
	{
		if (direct == FMS_DIRECT_ON)
			report_no_direct(tape);
		ereport(DEBUG1,
				(errmsg_internal("fmsort: no direct I/O for \"%s\" with blocks of %u bytes: %m",
								 FilePathName(tape->file), block_bytes)));
	}
	return tape;
}

void
fms_tape_close(FmsTape *tape)
{
	Assert(tape->io->in_flight == 0);
	if (tape->direct_file > 0)
		FileClose(tape->direct_file);
	FileClose(tape->file);
	fms_space_clear(&tape->free);
	pfree(tape);
}

bool
fms_tape_set_direct(FmsTape *tape, bool direct)
{
	Assert(is_at_end(tape));
	if (is_direct_at(tape, tape->end_bytes) == direct)
		return true;
	if (tape->nturns == TURNS_MAX ||
		(direct && tape->direct_file <= 0 && !open_direct(tape)))
		return false;
	tape->turns[tape->nturns++] = tape->end_bytes;
	return true;
}

const FmsTapeUse *
fms_tape_use(const FmsTape *tape)
{
	return &tape->use;
}

bool
fms_tape_is_direct(const FmsTape *tape)
{
	return tape->direct_file > 0;
}

const char *
fms_tape_path(const FmsTape *tape)
{
	return FilePathName(tape->file);
}

uint64
fms_tape_end(const FmsTape *tape)
{
	return tape->end_bytes;
}

static void
count(FmsTape *tape, FmsCounter counter, uint64 n)
{
	if (tape->counters)
		fms_count(tape->counters, counter, n);
}

static void
count_writes(FmsTape *tape, int n, uint64 bytes)
{
	tape->use.written_bytes += bytes;
	count(tape, FMS_COUNT_WRITES, n);
	count(tape, FMS_COUNT_WRITTEN_BYTES, bytes);
}

/*
 * Counts the time since start for track_io_timing, as spent in a read or a
 * write.  Returns it.
 */
static double
count_io_us(bool is_write, instr_time start)
{
	instr_time	spent;

	INSTR_TIME_SET_CURRENT(spent);
	INSTR_TIME_SUBTRACT(spent, start);
	if (track_io_timing)
	{
		instr_time *total = is_write ? &pgBufferUsage.temp_blk_write_time :
			&pgBufferUsage.temp_blk_read_time;

		INSTR_TIME_ADD(*total, spent);
	}
	return INSTR_TIME_GET_DOUBLE(spent) * 1e6;
}

/* Counts the time since start as spent waiting for a read or a write. */
static void
count_blocked(FmsTape *tape, bool is_write, instr_time start)
{
	double		spent_us = count_io_us(is_write, start);

	if (is_write)
		tape->use.write_blocked_us += spent_us;
	else if (tape->counters)
		fms_count_us(tape->counters, FMS_COUNT_BLOCKED_NS, spent_us);
}

static void
start_write(FmsTape *tape, FmsIoRequest *request)
{
	bool		direct = make_write(tape, request);
	instr_time	start = fms_clock_now();

	resolve(tape, &request, 1);
	if (direct)
	{
		fms_io_submit(tape->io, &request, 1);
		if (tape->io->method->submit_blocks)
			count_blocked(tape, true, start);
		return;
	}

	if (tape->end_bytes < WORKERS_FROM_BYTES || IsInParallelMode())
		fms_io_carry_out(tape->io, request);
	else
		fms_io_submit(tape->io, &request, 1);
	tape->use.cached_bytes += request->length_bytes;
	count(tape, FMS_COUNT_CACHED_BYTES, request->length_bytes);
	/* copying takes time, but is no waiting for a device */
	(void) count_io_us(true, start);
}

void
fms_tape_append(FmsTape *tape, FmsIoRequest *request, char *buffer,
				uint32 length_bytes)
{
	Assert(length_bytes > 0 && length_bytes % FMS_IO_ALIGN_BYTES == 0);
	Assert(request->state != FMS_IO_IN_FLIGHT);
	Assert(fms_tape_holds(tape, length_bytes));

	request->buffer = buffer;
	request->length_bytes = length_bytes;
	request->offset_bytes = fms_tape_position(tape);
	if (is_at_end(tape))
	{
		reserve(tape, tape->end_bytes + length_bytes);
		tape->end_bytes += length_bytes;
	}
	else
		tape->here.from_bytes += length_bytes;
	count_writes(tape, 1, length_bytes);
	start_write(tape, request);
}

void
fms_tape_write_out(FmsTape *tape, FmsIoRequest *request, uint64 offset_bytes,
				   uint32 length_bytes)
{
	Assert(offset_bytes + length_bytes <= tape->end_bytes);
	Assert(!is_direct_at(tape, offset_bytes));

	request->is_write = true;
	request->piece_bytes = 0;
	request->buffer = NULL;
	request->offset_bytes = offset_bytes;
	request->length_bytes = length_bytes;
	resolve(tape, &request, 1);
	fms_io_submit(tape->io, &request, 1);
}

void
fms_tape_trim(FmsTape *tape)
{
	if (tape->charged_bytes == tape->end_bytes)
		return;
	if (FileTruncate(tape->file, tape->end_bytes,
					 WAIT_EVENT_BUFFILE_TRUNCATE) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not truncate sort temporary file \"%s\": %m",
						FilePathName(tape->file))));
	tape->charged_bytes = tape->end_bytes;
}

uint64
fms_tape_position(const FmsTape *tape)
{
	return is_at_end(tape) ? tape->end_bytes : tape->here.from_bytes;
}

bool
fms_tape_holds(const FmsTape *tape, Size bytes)
{
	return is_at_end(tape) ||
		bytes <= tape->here.upto_bytes - tape->here.from_bytes;
}

Size
fms_tape_free_bytes(const FmsTape *tape)
{
	return Max(FREE_MIN_BYTES, tape->end_bytes / FREE_FRACTION);
}

bool
fms_tape_has_free(const FmsTape *tape, Size bytes)
{
	return is_at_end(tape) &&
		fms_space_has(&tape->free, Max(bytes, FREE_MIN_BYTES));
}

void
fms_tape_move_on(FmsTape *tape, Size bytes)
{
	FmsStretch	left = tape->here;

	tape->here = (FmsStretch) {0};
	if (left.from_bytes < left.upto_bytes)
		fms_space_add(&tape->free, left);
	(void) fms_space_take(&tape->free, Max(bytes, FREE_MIN_BYTES),
						  &tape->here);
	Assert(fms_tape_holds(tape, bytes));
}

void
fms_tape_free(FmsTape *tape, uint64 offset_bytes, Size length_bytes)
{
	FmsStretch	stretch = {offset_bytes, offset_bytes + length_bytes};

	Assert(stretch.upto_bytes <= tape->end_bytes);

	if (is_direct_at(tape, tape->end_bytes) &&
		!is_direct_at(tape, offset_bytes))
		(void) fms_tape_make_hole(tape, offset_bytes, length_bytes);
	else
		fms_space_add(&tape->free, stretch);
}

bool
fms_tape_make_hole(FmsTape *tape, uint64 offset_bytes, Size length_bytes)
{
	uint64		from = FMS_IO_ALIGN(offset_bytes);
	uint64		to = FMS_IO_ALIGN_DOWN(offset_bytes + length_bytes);

	if (!tape->makes_holes || from >= to)
		return tape->makes_holes;
	/* what it cannot give back it keeps until the file goes: no error */
	if (fallocate(raw_fd(tape, tape->file),
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  (off_t) from, (off_t) (to - from)) != 0 && errno != EINTR)
		tape->makes_holes = false;
	return tape->makes_holes;
}

/*
 * How many of the requests, one at least, are submitted together?  Submitting
 * may be doing, or copying from the page cache.
 */
static int
submitted_together(FmsIoRequest *const *requests, int n)
{
	Size		bytes = requests[0]->length_bytes;
	int			i = 1;

	while (i < n &&
		   bytes + requests[i]->length_bytes <= FMS_INTERRUPT_IO_BYTES)
		bytes += requests[i++]->length_bytes;
	return i;
}

void
fms_tape_read(FmsTape *tape, FmsIoRequest **requests, int n)
{
	uint64		bytes = 0;
	int			i;
	instr_time	start;

	for (i = 0; i < n; i++)
	{
		requests[i]->is_write = false;
		requests[i]->piece_bytes = 0;
		bytes += requests[i]->length_bytes;
	}
	tape->use.read_bytes += bytes;
	count(tape, FMS_COUNT_READ_BYTES, bytes);
	count(tape, FMS_COUNT_READS, n);
	count(tape, FMS_COUNT_READ_BATCHES, 1);

	start = fms_clock_now();
	while (n > 0)
	{
		int			together = submitted_together(requests, n);

		CHECK_FOR_INTERRUPTS();
		resolve(tape, requests, together);
		fms_io_submit(tape->io, requests, together);
		requests += together;
		n -= together;
	}
	if (tape->io->method->submit_blocks)
		count_blocked(tape, false, start);
}

void
fms_tape_overwrite(FmsTape *tape, FmsIoRequest **requests, int n)
{
	uint64		bytes = 0;
	int			i;

	for (i = 0; i < n; i++)
	{
		Assert(requests[i]->offset_bytes + requests[i]->length_bytes <=
			   tape->end_bytes);
		(void) make_write(tape, requests[i]);
		bytes += requests[i]->length_bytes;
	}
	count_writes(tape, n, bytes);
	resolve(tape, requests, n);
	fms_io_submit(tape->io, requests, n);
}

static void
report_failure(const FmsTape *tape, const FmsIoRequest *request, int result)
{
	const char *path = FilePathName(tape->file);

	if (result < 0)
	{
		errno = -result;
		ereport(ERROR,
				(errcode_for_file_access(),
				 request->is_write ?
				 errmsg("could not write to sort temporary file \"%s\": %m",
						path) :
				 errmsg("could not read from sort temporary file \"%s\": %m",
						path),
				 errdetail("%u bytes at offset %llu.", request->length_bytes,
						   (unsigned long long) request->offset_bytes)));
	}
	if (request->is_write)
	{
		/* a write that stops half-way has met the end of the disk */
		errno = ENOSPC;
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write to sort temporary file \"%s\": %m",
						path)));
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("sort temporary file \"%s\" is shorter than it should be",
					path),
			 errdetail("Read %d of %u bytes at offset %llu.", result,
					   request->length_bytes,
					   (unsigned long long) request->offset_bytes)));
}

/*
 * EXPLAIN (BUFFERS) counts temporary I/O in blocks of BLCKSZ; ours are of
 * any size, so the rest is carried over.
 */
static void
count_blocks(FmsTape *tape, const FmsIoRequest *request)
{
	uint64	   *uncounted = request->is_write ?
		&tape->uncounted_write_bytes : &tape->uncounted_read_bytes;
	long		blocks;

	*uncounted += request->length_bytes;
	blocks = *uncounted / BLCKSZ;
	*uncounted %= BLCKSZ;
	if (request->is_write)
		pgBufferUsage.temp_blks_written += blocks;
	else
		pgBufferUsage.temp_blks_read += blocks;
}

/* Blocks until the request is no longer in flight; counts the time. */
static void
wait_for_kernel(FmsTape *tape, FmsIoRequest *request)
{
	instr_time	start = fms_clock_now();

	pgstat_report_wait_start(request->is_write ? WAIT_EVENT_BUFFILE_WRITE :
							 WAIT_EVENT_BUFFILE_READ);
	while (request->state == FMS_IO_IN_FLIGHT)
	{
		if (!fms_io_wait(tape->io))
		{
			pgstat_report_wait_end();
			CHECK_FOR_INTERRUPTS();
			pgstat_report_wait_start(request->is_write ?
									 WAIT_EVENT_BUFFILE_WRITE :
									 WAIT_EVENT_BUFFILE_READ);
		}
	}
	pgstat_report_wait_end();

	count_blocked(tape, request->is_write, start);
}

/*
 * Was the request not carried out, for want of what the kernel needs for that
 * or because it refuses?  A ring may be refused what a plain call is not: its
 * workers count as processes of the user, for instance.
 */
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

void
fms_tape_wait(FmsTape *tape, FmsIoRequest *request)
{
	Assert(request->state != FMS_IO_IDLE);

	/* who finds all in the page cache never waits for the kernel */
	CHECK_FOR_INTERRUPTS();
	if (request->state == FMS_IO_IN_FLIGHT)
		fms_io_poll(tape->io);
	if (request->state == FMS_IO_IN_FLIGHT)
		wait_for_kernel(tape, request);

	request->state = FMS_IO_IDLE;
	if (unlikely(request->result != (int) request->length_bytes))
	{
		int			result = request->result;

		/* short or not done: do it once more, whole and synchronously */
		if (result > 0 || was_refused(result))
		{
			resolve(tape, &request, 1);
			result = fms_io_transfer(request);
		}
		if (result != (int) request->length_bytes)
			report_failure(tape, request, result);
	}
	count_blocks(tape, request);
}

void
fms_tape_set_checksum(const FmsTape *tape, FmsChecksum *piece, Size bytes)
{
	fms_checksum_set(piece, bytes, tape->salt, tape->checksums);
}

bool
fms_tape_checksum_holds(const FmsTape *tape, const FmsChecksum *piece,
						Size bytes)
{
	return fms_checksum_holds(piece, bytes, tape->salt, tape->checksums);
}

void
fms_tape_report_corrupted(const FmsTape *tape, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("sort temporary file \"%s\" is corrupted",
					FilePathName(tape->file)),
			 errdetail_internal("%s", detail),
			 errhint("The storage below it did not return what was written. Check the device before you run the query again.")));
}

pg_noinline static void
report_bad_block(const FmsTape *tape, const FmsBlockHeader *header,
				 uint32 run, uint32 number)
{
	fms_tape_report_corrupted(tape,
							  header->run == run && header->number == number ?
							  psprintf(_("Block %u of run %u has a wrong checksum."),
									   number, run) :
							  psprintf(_("Expected block %u of run %u, found block %u of run %u with magic %08X."),
									   number, run, header->number,
									   header->run, header->magic));
}

void
fms_tape_check_block(const FmsTape *tape, const char *block, uint32 run,
					 uint32 number)
{
	const FmsBlockHeader *header = (const FmsBlockHeader *) block;

	if (unlikely(!fms_tape_checksum_holds(tape, &header->checksum,
									  tape->block_bytes) ||
				 (header->magic != FMS_BLOCK_MAGIC &&
				  !fms_block_is_compressed(header)) ||
				 header->run != run || header->number != number ||
				 header->used_bytes > tape->block_bytes ||
				 header->used_bytes < sizeof(FmsBlockHeader) ||
				 header->continued_bytes >
				 (fms_block_is_compressed(header) ? 0 :
				  header->used_bytes - sizeof(FmsBlockHeader))))
		report_bad_block(tape, header, run, number);
}
