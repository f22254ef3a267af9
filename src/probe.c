/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Measuring a device through a temporary file, one pattern at a time.
 *
 * The file is a tape and the transfers go through a channel, so what is
 * measured is what a sort gets: the same file system, flags, ring and
 * accounting.  A measurement keeps `depth` requests under way, and gives the
 * next ones as the merge does, when an eighth of them is done, an eighth at a
 * time:
 *
 *	  submitted  ########|##########################|
 *	  completed       ###|##########################|########
 *	                ramp |        counted           | drained
 *
 * Neither the ramp (until `depth` requests are done) nor the drain counts, so
 * that a short measurement at depth 64 is not mostly the way there and back.
 *
 * What makes such measurements lie, and what is done about it:
 *
 *	  The first bytes are faster.  A limit is kept over some time, or a cache
 *	  takes them.  Where it matters (writing the file, what lasts of reads,
 *	  giving space back) only the second half counts.
 *	  The page cache answers.  Transfers are direct, unless asked otherwise;
 *	  where they cannot be, that is an error and not a figure.
 *	  The device compresses or finds duplicates.  The file is random, and each
 *	  page written gets a number of its own.
 *	  Blocks never written are not read at all.  The file is written first.
 *	  A host's or drive's own cache answers, because the file is small and
 *	  has just been written.  Nothing is done: a sort reads what it has just
 *	  written, too.  A larger file shows how far that cache goes.
 *
 * Requests share one mapping of buffers.  Where that is too small for all
 * requests (only with blocks of many MB under way) several read into the same
 * memory, which nobody looks at, or write the same memory, which is then left
 * alone: a page that changes under a write breaks file systems' checksums.
 *
 * On ERROR, a cancelled query included: a reset callback of the probe's
 * memory context drains and closes the channel, the resource owner closes and
 * deletes the file.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/resource.h>
#include <unistd.h>

#include "catalog/pg_tablespace.h"
#include "commands/tablespace.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "clock.h"
#include "place.h"
#include "probe.h"
#include "tape.h"

/* All buffers together. */
#define BUFFERS_BYTES	((uint32) 32 * 1024 * 1024)

#define DEPTH_MAX	FMS_DEVICE_DEPTH(FMS_DEVICE_DEPTHS - 1)

/* Latencies kept of one measurement; of more, a random choice. */
#define LATENCIES_MAX	16384

/* Buffers of neighbours on the tape are so many buffers apart. */
#define JOINED_APART	97

/* Part of a measurement that goes to the writes which come before it. */
#define BURST_FRACTION	0.5

StaticAssertDecl(FMS_BLOCK_MAX_BYTES <= BUFFERS_BYTES,
				 "a buffer must hold any block");
StaticAssertDecl(FMS_DEVICE_JOINED_PARTS == FMS_IO_PARTS_MAX,
				 "who reckons with a read's parts must know how many it had");

/* One request under way. */
typedef struct Slot
{
	FmsIoRequest request;		/* first: a request's slot is found by it */
	instr_time	start;
} Slot;

StaticAssertDecl(offsetof(Slot, request) == 0,
				 "a request's address is its slot's");

struct FmsProbe
{
	MemoryContext context;
	MemoryContextCallback on_reset;
	FmsIo		io;
	FmsTape    *tape;
	FmsCounters counters;		/* the tape's; nobody reads them */
	bool		direct;
	uint32		sector_bytes;	/* the smallest transfer */
	char	   *buffers;
	Slot		slots[DEPTH_MAX];
	pg_prng_state random;

	/* the measurement going on */
	FmsProbePattern pattern;
	uint32		block_bytes;
	uint32		depth;
	uint64		next_read;		/* blocks of the sequential ones */
	uint64		next_write;
	uint32		joined;			/* of a batch, blocks that have got a place */
	bool		reads_next;		/* of two by turns */
	uint64		used;			/* the sum of all words, so that no compiler
								 * leaves reading them out */
	uint64		nlatencies;		/* seen; LATENCIES_MAX of them are kept */
	float		latencies_us[LATENCIES_MAX];
};

/* How far it has come. */
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

static const char *const pattern_names[] = {
	[FMS_PROBE_SR] = "SR",
	[FMS_PROBE_RR] = "RR",
	[FMS_PROBE_SW] = "SW",
	[FMS_PROBE_RW] = "RW",
	[FMS_PROBE_RR_MISALIGNED] = "RR misaligned",
	[FMS_PROBE_RW_MISALIGNED] = "RW misaligned",
	[FMS_PROBE_SW_AFTER_RW] = "SW after RW",
	[FMS_PROBE_RR_WITH_SW] = "RR with SW",
	[FMS_PROBE_RR_LASTING] = "RR lasting",
	[FMS_PROBE_RR_JOINED] = "RR joined",
	[FMS_PROBE_RR_USED] = "RR used",
	[FMS_PROBE_APPEND] = "append",
	[FMS_PROBE_GIVE_BACK] = "give back"
};

StaticAssertDecl(lengthof(pattern_names) == FMS_PROBE_PATTERNS,
				 "each pattern needs a name");

const char *
fms_probe_name(FmsProbePattern pattern)
{
	return pattern_names[pattern];
}

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
								&probe->counters);
}

/*
 * Where a file cannot be made in the tablespace that was chosen, fd.c makes it
 * in the database's own, silently.  Then find out why it could not.
 */
static void
check_place(const FmsTape *tape, Oid tablespace)
{
	char		directory[MAXPGPATH];
	int			error;

	TempTablespacePath(directory, tablespace);
	if (strncmp(fms_tape_path(tape), directory, strlen(directory)) == 0 &&
		fms_tape_path(tape)[strlen(directory)] == '/')
		return;

	error = EIO;
	if (MakePGDirectory(directory) < 0 && errno != EEXIST)
		error = errno;
	else if (access(directory, W_OK | X_OK) != 0)
		error = errno;
	errno = error;
	ereport(ERROR,
			(errcode_for_file_access(),
			 errmsg("could not create a temporary file in tablespace \"%s\": %m",
					get_tablespace_name(tablespace)),
			 errdetail("The directory is \"%s\".", directory)));
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
		fms_place_call(tablespace, open_tape, &opening);
		check_place(probe->tape, tablespace);
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

/* ---- buffers and latencies ---- */

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

static void
note_latency(FmsProbe *probe, double us)
{
	uint64		place = probe->nlatencies++;

	if (place >= LATENCIES_MAX)
		place = pg_prng_uint64_range(&probe->random, 0, place);
	if (place < LATENCIES_MAX)
		probe->latencies_us[place] = us;
}

static int
compare_floats(const void *a, const void *b)
{
	float		x = *(const float *) a;
	float		y = *(const float *) b;

	return (x > y) - (x < y);
}

static double
percentile(const FmsProbe *probe, double part)
{
	uint64		n = Min(probe->nlatencies, LATENCIES_MAX);

	return n > 0 ? probe->latencies_us[(uint64) (part * (n - 1) + 0.5)] : 0;
}

/* Processor time of this process, user and system. */
static double
processor_us(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
		usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

static void
fill_in(FmsProbe *probe, FmsProbeResult *result, uint64 requests,
		uint32 block_bytes, double us)
{
	qsort(probe->latencies_us, Min(probe->nlatencies, LATENCIES_MAX),
		  sizeof(float), compare_floats);
	us = Max(us, 1);
	result->iops = requests * 1e6 / us;
	result->mb_per_s = (double) requests * block_bytes / us;
	result->p50_us = percentile(probe, 0.50);
	result->p95_us = percentile(probe, 0.95);
	result->p99_us = percentile(probe, 0.99);
}

/* Where the second half begins of what does not count from the beginning. */
typedef struct Half
{
	bool		begun;
	uint64		requests;		/* given before it */
	double		us;				/* and the time that was over */
} Half;

/* So many have been given, after so long: half of them, or of the seconds? */
static void
look_for_half(Half *half, uint64 requests, double now_us, double seconds,
			  bool of_requests)
{
	if (half->begun || !(of_requests || now_us >= seconds * 1e6 / 2))
		return;
	half->begun = true;
	half->requests = requests;
	half->us = now_us;
}

/* ---- writing the file ---- */

/* Shall it grow on?  A slow device gets a smaller file. */
static bool
is_to_grow(const FmsProbe *probe, uint64 file_bytes, instr_time start,
		   double seconds)
{
	uint64		end = fms_tape_end(probe->tape);

	return end < file_bytes &&
		(end < FMS_PROBE_FILE_MIN_BYTES ||
		 fms_clock_since_us(start) < seconds * 1e6);
}

static void
append(FmsProbe *probe, int i)
{
	char	   *buffer = probe->buffers + i * FMS_DEVICE_APPEND_BLOCK_BYTES;

	renew(probe, buffer, FMS_DEVICE_APPEND_BLOCK_BYTES);
	probe->slots[i].start = fms_clock_now();
	fms_tape_append(probe->tape, &probe->slots[i].request, buffer,
					FMS_DEVICE_APPEND_BLOCK_BYTES);
}

static void
finish_append(FmsProbe *probe, int i)
{
	if (probe->slots[i].request.state == FMS_IO_IDLE)
		return;
	fms_tape_wait(probe->tape, &probe->slots[i].request);
	note_latency(probe, fms_clock_since_us(probe->slots[i].start));
}

void
fms_probe_fill(FmsProbe *probe, uint64 file_bytes, double seconds,
			   FmsProbeResult *result)
{
	instr_time	start;
	Half		half = {0};
	double		cpu_us;
	uint64		n;
	int			i;

	Assert(probe->buffers == NULL);
	map_buffers(probe);
	probe->nlatencies = 0;
	start = fms_clock_now();
	cpu_us = processor_us();
	for (n = 0; is_to_grow(probe, file_bytes, start, seconds); n++)
	{
		CHECK_FOR_INTERRUPTS();
		finish_append(probe, n % FMS_DEVICE_APPEND_DEPTH);
		look_for_half(&half, n, fms_clock_since_us(start), seconds,
					  fms_tape_end(probe->tape) >= file_bytes / 2);
		append(probe, n % FMS_DEVICE_APPEND_DEPTH);
	}
	for (i = 0; i < FMS_DEVICE_APPEND_DEPTH; i++)
		finish_append(probe, i);
	fill_in(probe, result, n - half.requests, FMS_DEVICE_APPEND_BLOCK_BYTES,
			fms_clock_since_us(start) - half.us);
	result->cpu_us = (processor_us() - cpu_us) / Max(n, 1);
	fms_tape_trim(probe->tape);
}

/* ---- giving it back ---- */

bool
fms_probe_give_back(FmsProbe *probe, double seconds, FmsProbeResult *result)
{
	uint64		pieces = fms_tape_end(probe->tape) / FMS_PROBE_HOLE_BYTES;
	instr_time	start = fms_clock_now();
	Half		half = {0};
	double		cpu_us = processor_us();
	uint64		n;

	probe->nlatencies = 0;
	for (n = 0; n < pieces && fms_clock_since_us(start) < seconds * 1e6; n++)
	{
		instr_time	began = fms_clock_now();

		CHECK_FOR_INTERRUPTS();
		look_for_half(&half, n, fms_clock_since_us(start), seconds,
					  n >= pieces / 2);
		if (!fms_tape_make_hole(probe->tape, n * FMS_PROBE_HOLE_BYTES,
								FMS_PROBE_HOLE_BYTES))
			return false;
		note_latency(probe, fms_clock_since_us(began));
	}
	fill_in(probe, result, n - half.requests, FMS_PROBE_HOLE_BYTES,
			fms_clock_since_us(start) - half.us);
	result->cpu_us = (processor_us() - cpu_us) / Max(n, 1);
	return n > 0;
}

/* ---- measuring ---- */

/* How far from a multiple of the block size it goes. */
static uint32
shift_bytes(FmsProbePattern pattern)
{
	return pattern == FMS_PROBE_RR_MISALIGNED ||
		pattern == FMS_PROBE_RW_MISALIGNED ? FMS_BLOCK_QUANTUM_BYTES : 0;
}

/* Blocks of the file that can be asked for. */
static uint64
block_count(const FmsProbe *probe, FmsProbePattern pattern,
			uint32 block_bytes)
{
	return (fms_tape_end(probe->tape) - shift_bytes(pattern)) / block_bytes;
}

bool
fms_probe_can(const FmsProbe *probe, FmsProbePattern pattern,
			  uint32 block_bytes, uint32 depth)
{
	if (block_bytes % probe->sector_bytes != 0)
		return false;
	if (shift_bytes(pattern) % probe->sector_bytes != 0)
		return false;
	/* one at a time is all that it can do */
	if (probe->io.method->submit_blocks && depth > 1)
		return false;
	if (pattern == FMS_PROBE_RR_JOINED &&
		block_count(probe, pattern, block_bytes) < FMS_IO_PARTS_MAX)
		return false;
	return block_count(probe, pattern, block_bytes) > 0;
}

static bool
next_is_write(FmsProbe *probe)
{
	switch (probe->pattern)
	{
		case FMS_PROBE_SR:
		case FMS_PROBE_RR:
		case FMS_PROBE_RR_MISALIGNED:
		case FMS_PROBE_RR_LASTING:
		case FMS_PROBE_RR_JOINED:
		case FMS_PROBE_RR_USED:
			return false;
		case FMS_PROBE_RR_WITH_SW:
			probe->reads_next = !probe->reads_next;
			return !probe->reads_next;
		case FMS_PROBE_SW:
		case FMS_PROBE_RW:
		case FMS_PROBE_RW_MISALIGNED:
		case FMS_PROBE_SW_AFTER_RW:
		case FMS_PROBE_APPEND:
		case FMS_PROBE_GIVE_BACK:
			break;
	}
	return true;
}

/* Is the request's place left to chance, or the one after the last? */
static bool
next_is_random(const FmsProbe *probe, bool is_write)
{
	switch (probe->pattern)
	{
		case FMS_PROBE_RR:
		case FMS_PROBE_RW:
		case FMS_PROBE_RR_MISALIGNED:
		case FMS_PROBE_RW_MISALIGNED:
		case FMS_PROBE_RR_LASTING:
		case FMS_PROBE_RR_USED:
			return true;
		case FMS_PROBE_RR_WITH_SW:
			return !is_write;
		case FMS_PROBE_RR_JOINED:
			return probe->joined % FMS_IO_PARTS_MAX == 0;
		case FMS_PROBE_SR:
		case FMS_PROBE_SW:
		case FMS_PROBE_SW_AFTER_RW:
		case FMS_PROBE_APPEND:
		case FMS_PROBE_GIVE_BACK:
			break;
	}
	return false;
}

static uint64
next_offset(FmsProbe *probe, bool is_write)
{
	uint64		n = block_count(probe, probe->pattern, probe->block_bytes);
	uint64		block;

	if (next_is_random(probe, is_write))
	{
		block = pg_prng_uint64_range(&probe->random, 0, n - 1);
		/* the neighbours of the last one begin the file */
		probe->next_read = block + 1;
	}
	else if (is_write)
		block = probe->next_write++ % n;
	else
		block = probe->next_read++ % n;
	return block * probe->block_bytes + shift_bytes(probe->pattern);
}

/* Gets a slot's next request ready. */
static void
prepare(FmsProbe *probe, Slot *slot)
{
	FmsIoRequest *request = &slot->request;
	uint64		number = slot - probe->slots;
	uint32		room = BUFFERS_BYTES / probe->block_bytes;

	request->is_write = next_is_write(probe);
	request->length_bytes = probe->block_bytes;
	request->offset_bytes = next_offset(probe, request->is_write);
	if (probe->pattern == FMS_PROBE_RR_JOINED)
	{
		number *= JOINED_APART;
		probe->joined++;
	}
	request->buffer = probe->buffers + (number % room) * probe->block_bytes;
	if (request->is_write && probe->depth <= room)
		renew(probe, request->buffer, probe->block_bytes);
}

/*
 * Submits what has been prepared: reads and writes apart.  The last one first:
 * of neighbours the other way round the channel would make one operation
 * (fms_io_join()), and what is to be measured are requests of this size,
 * unless it is just that.  The kernel may still put them together, as it does
 * for others.
 */
static void
submit(FmsProbe *probe, FmsIoRequest **requests, uint32 n)
{
	FmsIoRequest *reads[DEPTH_MAX];
	FmsIoRequest *writes[DEPTH_MAX];
	instr_time	now = fms_clock_now();
	int			nreads = 0;
	int			nwrites = 0;
	bool		joins = probe->pattern == FMS_PROBE_RR_JOINED;
	uint32		i;

	for (i = 0; i < n; i++)
	{
		FmsIoRequest *request = requests[joins ? i : n - 1 - i];
		Slot	   *slot = (Slot *) request;

		slot->start = now;
		if (request->is_write)
			writes[nwrites++] = request;
		else
			reads[nreads++] = request;
	}
	if (nreads > 0)
		fms_tape_read(probe->tape, reads, nreads);
	if (nwrites > 0)
		fms_tape_overwrite(probe->tape, writes, nwrites);
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

/* A request was done at that time: does it count? */
static void
note_done(FmsProbe *probe, Progress *progress, const Slot *slot,
		  instr_time now, double now_us)
{
	instr_time	latency = now;

	progress->done++;
	if (progress->done <= probe->depth || now_us < progress->from_us)
		progress->ramp_us = now_us;
	else if (now_us < progress->stop_us ||
			 progress->counted < (probe->depth + 3) / 4)
	{
		/* those that come together with the last of the ramp are part of it */
		if (now_us <= progress->ramp_us)
			return;
		progress->counted++;
		progress->last_us = now_us;
	}
	INSTR_TIME_SUBTRACT(latency, slot->start);
	note_latency(probe, INSTR_TIME_GET_DOUBLE(latency) * 1e6);
}

/* Is all done that was to be done? */
static bool
is_over(const FmsProbe *probe, const Progress *progress, double now_us)
{
	return now_us >= progress->stop_us &&
		progress->counted >= (probe->depth + 3) / 4;
}

/* Reads all that has been read, as a merge does. */
static void
use(FmsProbe *probe, const FmsIoRequest *request)
{
	const uint64 *words = (const uint64 *) request->buffer;
	uint64		sum = 0;
	uint32		i;

	for (i = 0; i < probe->block_bytes / sizeof(uint64); i++)
		sum += words[i];
	probe->used += sum;
}

/* Notes the requests that are done. */
static void
collect(FmsProbe *probe, Progress *progress, instr_time start)
{
	instr_time	now = fms_clock_now();
	instr_time	elapsed = now;
	uint32		i;

	INSTR_TIME_SUBTRACT(elapsed, start);
	for (i = 0; i < probe->depth; i++)
	{
		Slot	   *slot = &probe->slots[i];

		if (slot->request.state != FMS_IO_DONE)
			continue;
		note_done(probe, progress, slot, now,
				  INSTR_TIME_GET_DOUBLE(elapsed) * 1e6);
		fms_tape_wait(probe->tape, &slot->request);
		if (probe->pattern == FMS_PROBE_RR_USED)
			use(probe, &slot->request);
	}
}

/*
 * Gives the next batch, even if nothing is under way: neighbours submitted
 * together may become one request, be done together, and so submitted
 * together again.
 */
static void
refill(FmsProbe *probe, uint32 batch)
{
	FmsIoRequest *ready[DEPTH_MAX];
	uint32		nready = 0;
	uint32		i;

	probe->joined = 0;
	for (i = 0; i < probe->depth && nready < batch; i++)
	{
		Slot	   *slot = &probe->slots[i];

		if (slot->request.state == FMS_IO_IN_FLIGHT)
			continue;
		prepare(probe, slot);
		ready[nready++] = &slot->request;
	}
	submit(probe, ready, nready);
}

static void
run(FmsProbe *probe, FmsProbePattern pattern, const FmsProbeSpec *spec,
	double seconds, FmsProbeResult *result)
{
	instr_time	start;
	double		cpu_us;
	Progress	progress = {0};
	uint32		batch = fms_io_batch(spec->depth);	/* as the merge */
	bool		over;

	probe->pattern = pattern;
	probe->block_bytes = spec->block_bytes;
	probe->depth = spec->depth;
	probe->next_read = probe->next_write = 0;
	probe->nlatencies = 0;
	progress.stop_us = seconds * 1e6;
	if (pattern == FMS_PROBE_RR_LASTING)
		progress.from_us = progress.stop_us / 2;

	start = fms_clock_now();
	cpu_us = processor_us();
	do
	{
		/* a method that does not wait comes by no other place that looks */
		CHECK_FOR_INTERRUPTS();
		over = is_over(probe, &progress, fms_clock_since_us(start));
		if (!over)
			refill(probe, batch);
		/* a method that does not wait has done them by now */
		collect(probe, &progress, start);
		while (probe->io.in_flight > (over ? 0 : spec->depth - batch))
		{
			wait_for_any(probe);
			collect(probe, &progress, start);
		}
	} while (!over);
	fill_in(probe, result, progress.counted, spec->block_bytes,
			progress.last_us - progress.ramp_us);
	result->cpu_us = (processor_us() - cpu_us) / Max(progress.done, 1);
}

void
fms_probe_measure(FmsProbe *probe, const FmsProbeSpec *spec,
				  FmsProbeResult *result)
{
	double		seconds = spec->seconds;

	Assert(fms_probe_can(probe, spec->pattern, spec->block_bytes,
						 spec->depth));
	if (spec->pattern == FMS_PROBE_SW_AFTER_RW)
	{
		run(probe, FMS_PROBE_RW, spec, seconds * BURST_FRACTION, result);
		seconds -= seconds * BURST_FRACTION;
	}
	run(probe, spec->pattern, spec, seconds, result);
}
