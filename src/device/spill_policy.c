/*-------------------------------------------------------------------------
 *
 * spill_policy.c
 *	  Chooses page cache or direct I/O, and compression, for the next run.
 *
 * A run in the page cache is copied twice.  It reaches the device only if the
 * kernel writes it back before the sort ends.  A direct run is not copied and
 * evicts no pages, but the device writes it and reads it.
 *
 *	  round trip, MB/s	 0 ..... 150 ..... 300 ........... 2000 ....
 *						 very slow	slow	 ordinary			fast
 *	  page cache		 while there is		 while the kernel	never
 *						 memory				 leaves it there
 *	  compress			 if the spill does
 *						 not stay in memory
 *
 * An unknown device counts as ordinary until direct runs show its rate.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "device/spill_policy.h"

/*
 * Round trips, MB/s.  LZ4 compresses 600 MB/s to half, so it pays on devices
 * that are plainly slower.  Run formation makes 400 MB/s of spill: a round
 * trip of 300 holds it up.  Two copies take as long as a round trip at
 * 1,000 to 2,000.
 */
#define VERY_SLOW_MB			150.0
#define SLOW_MB					300.0
#define FAST_MB					2000.0

/* A spill this many times the room gains little from caching a part. */
#define EXPECTED_MULTIPLE		4

/* Blocks that the kernel reads ahead count as one of this size. */
#define READ_AHEAD_BYTES		((uint32) 256 * 1024)

/* One sort's fair share of the machine's available memory: 1/16. */
#define SHARE_FRACTION			16
/* A spill takes all available memory but 1/4. */
#define SPARED_FRACTION			4
/* The input's pages are about as large as the spill. */
#define SPILL_AND_INPUT			2

/* Bytes of room that make the page cache worth while. */
#define ROOM_MIN_BYTES			((uint64) 4 * 1024 * 1024)
/* Memory is read again after these bytes: other sorts take some, too. */
#define MEMORY_EVERY_BYTES		((uint64) 8 * 1024 * 1024)

/* With less work_mem, a ring and a look at memory cost more than they gain. */
#define SMALL_MEMORY_BYTES		((Size) 1024 * 1024)
#define SMALL_BYTES				((uint64) 4 * 1024 * 1024)

/* Direct runs of fewer bytes say nothing about the device. */
#define SEEN_MIN_BYTES			((uint64) 2 * 1024 * 1024)

/* Compression's own memory is too large a part of a smaller work_mem. */
#define COMPRESS_MEMORY_BYTES	((Size) 1024 * 1024)
/* Bytes that show what compression gains, and the least factor. */
#define GAIN_SEEN_MIN_BYTES		((uint64) 1024 * 1024)
#define GAIN_MIN				1.25

/* Conclusions from the facts. */
typedef struct Situation
{
	double		device_mb;
	bool		very_slow;
	bool		slow;			/* or very slow */
	uint64		memory_bytes;	/* the spill may still take */
	uint64		room_bytes;		/* ... and the kernel leave unwritten */
} Situation;

static uint64
left_of(uint64 whole, uint64 taken)
{
	return whole > taken ? whole - taken : 0;
}

static bool
is_very_slow(double device_mb)
{
	return device_mb > 0 && device_mb < VERY_SLOW_MB;
}

static Situation
assess(const FmsSpillFacts *facts)
{
	const FmsFreeMemory *memory = &facts->memory;
	uint64		most = memory->available_bytes -
		memory->available_bytes / SPARED_FRACTION;
	uint64		share = Min(most, memory->machine_bytes / SHARE_FRACTION);
	Situation	now;

	now.device_mb =
		fms_device_round_trip_mb(&facts->device,
								 facts->async_reads ? facts->block_bytes :
								 Max(facts->block_bytes, READ_AHEAD_BYTES));
	now.very_slow = is_very_slow(now.device_mb);
	now.slow = now.device_mb > 0 && now.device_mb < SLOW_MB;
	now.memory_bytes = left_of(most, Max(facts->cached_bytes,
										 memory->dirty_bytes));
	now.room_bytes = Min(left_of(share, facts->cached_bytes),
						 memory->writeback_bytes);
	return now;
}

/* Does memory hold a spill of that size and its input's pages? */
static bool
memory_holds(const FmsSpillFacts *facts, const Situation *now, double bytes)
{
	return bytes * SPILL_AND_INPUT <= facts->cached_bytes + now->memory_bytes;
}

static void
set_direct(FmsSpillChoice *choice, bool direct, FmsDirectReason reason)
{
	choice->direct = direct;
	choice->direct_reason = reason;
}

/* Rows 1 to 10 of the table in spill_policy.h. */
static void
choose_direct(const FmsSpillFacts *facts, const Situation *now,
			  const FmsSpillChoice *previous, FmsSpillChoice *choice)
{
	double		expected = facts->expected_bytes;
	bool		stays_direct = previous->direct &&
		previous->direct_reason != FMS_DIRECT_HALF &&
		(!now->very_slow || is_very_slow(previous->device_mb));

	if (facts->direct_io != FMS_DIRECT_AUTO)
		set_direct(choice, facts->direct_io == FMS_DIRECT_ON,
				   FMS_DIRECT_AS_SET);
	else if (fms_spill_policy_is_small(facts))
		set_direct(choice, false, FMS_DIRECT_SMALL);
	else if (facts->direct_fixed || stays_direct)
		set_direct(choice, previous->direct, previous->direct_reason);
	else if (!facts->async_reads)
		set_direct(choice, false, FMS_DIRECT_SYNC);
	else if (now->device_mb > FAST_MB)
		set_direct(choice, true, FMS_DIRECT_FAST);
	else if (!now->slow && expected / EXPECTED_MULTIPLE >
			 facts->cached_bytes + now->room_bytes)
		set_direct(choice, true, FMS_DIRECT_NO_ROOM);
	else if (!now->very_slow && !memory_holds(facts, now, expected) &&
			 facts->written_bytes - facts->cached_bytes < expected / 2)
		set_direct(choice, true, FMS_DIRECT_HALF);
	else if ((now->slow ? now->memory_bytes : now->room_bytes) <
			 ROOM_MIN_BYTES)
		set_direct(choice, true, FMS_DIRECT_NO_ROOM);
	else
		set_direct(choice, false, FMS_DIRECT_ROOM);
}

/* Rows a to g of the table.  direct: the next run uses direct I/O. */
static FmsCompressReason
choose_compressed(const FmsSpillFacts *facts, const Situation *now,
				  const FmsSpillChoice *previous, bool direct)
{
	double		spill_bytes = Max(facts->expected_bytes, facts->written_bytes);

	if (facts->compression != FMS_COMPRESS_AUTO)
		return FMS_COMPRESS_AS_SET;
	if (facts->compressible_bytes >= GAIN_SEEN_MIN_BYTES &&
		facts->compressible_bytes < facts->compressed_bytes * GAIN_MIN)
		return FMS_COMPRESS_GAINED_LITTLE;
	if (now->very_slow &&
		(previous->compressed || direct ||
		 spill_bytes >= facts->cached_bytes + now->room_bytes ||
		 !memory_holds(facts, now, spill_bytes)))
		return FMS_COMPRESS_SLOW;
	return FMS_COMPRESS_NO_NEED;
}

FmsSpillChoice
fms_spill_policy_choose(const FmsSpillFacts *facts,
						const FmsSpillChoice *previous)
{
	Situation	now = assess(facts);
	FmsSpillChoice choice = {.device_mb = now.device_mb};

	choose_direct(facts, &now, previous, &choice);
	choice.compress_reason = choose_compressed(facts, &now, previous,
											   choice.direct);
	choice.compressed = facts->compression == FMS_COMPRESS_ON ||
		FMS_COMPRESS_REASON_COMPRESSES(choice.compress_reason);
	return choice;
}

const char *
fms_spill_policy_verdict(double device_mb, bool async_reads)
{
	if (is_very_slow(device_mb))
		return "very slow: sorts keep spills in the page cache, and compress those that do not fit";
	if (device_mb < SLOW_MB)
		return "slow: sorts keep spills in the page cache while memory has room";
	if (!async_reads)
		return "page cache: without io_uring all spills go through it";
	if (device_mb > FAST_MB)
		return "fast: sorts use direct I/O";
	return "ordinary: small spills stay in the page cache, large ones use direct I/O";
}

/* Reads memory if any choice may depend on it. */
static void
read_memory(FmsSpillFacts *facts)
{
	if (facts->direct_io != FMS_DIRECT_AUTO &&
		facts->compression != FMS_COMPRESS_AUTO)
		return;
	facts->memory = fms_free_memory();
	facts->memory_due_bytes = facts->written_bytes + MEMORY_EVERY_BYTES;
}

void
fms_spill_policy_observe(FmsSpillFacts *facts, bool direct, double bytes,
						 double elapsed_us, double blocked_us)
{
	bool		due = !direct &&
		facts->written_bytes >= facts->memory_due_bytes;

	if (direct)
	{
		facts->seen.bytes += bytes;
		facts->seen.elapsed_us += Max(elapsed_us, blocked_us);
		facts->seen.blocked_us += blocked_us;
		due = facts->seen.bytes >= SEEN_MIN_BYTES &&
			fms_device_correct(&facts->device, &facts->seen);
		facts->device_seen |= due;
	}
	if (due)
		read_memory(facts);
}

/*
 * Modes for comparison, and a block size that was set, ask for a merge of
 * plain blocks: then only the setting turns compression on.
 */
void
fms_spill_policy_begin(FmsSpillFacts *facts, const FmsOptions *options,
					   uint32 block_bytes)
{
	bool		may_be_small = options->direct_io == FMS_DIRECT_AUTO &&
		options->io_method != FMS_IO_URING && options->files == NULL &&
		options->memory_bytes < SMALL_MEMORY_BYTES &&
		options->expected_bytes < SMALL_BYTES;
	bool		may_compress = options->mode == FMS_MODE_FMSORT &&
		options->block_bytes == 0 &&
		options->memory_bytes >= COMPRESS_MEMORY_BYTES;

	*facts = (FmsSpillFacts) {
		.direct_io = options->direct_io,
		.compression = options->compression,
		.block_bytes = block_bytes,
		.expected_bytes = options->expected_bytes,
		.small_bytes = may_be_small ? SMALL_BYTES : 0,
		.memory_due_bytes = SMALL_BYTES
	};
	if (options->device)
		facts->device = *options->device;
	if (facts->compression == FMS_COMPRESS_AUTO && !may_compress)
		facts->compression = FMS_COMPRESS_OFF;
	if (!may_be_small)
		read_memory(facts);
}
