/*-------------------------------------------------------------------------
 *
 * compression.c
 *	  Whether what a sort spills is compressed.
 *
 * Making 100 MB of records some 45 MB takes a processor 180 ms, and getting
 * them back 25.  It saves their way to the device and back, if they make it at
 * all:
 *
 *	  round trip, MB/s		what it saves of the device's time
 *		  30				1830 ms
 *		 125				 440 ms
 *		 300				 180 ms		as much as it costs
 *		1000				  55 ms
 *
 * So it is for devices that are twice as slow as that, since the page cache
 * keeps some of a spill from them; and there for spills that will not just
 * stay in it: past it, and where the kernel would begin to write them, or
 * memory is short.  Memory is what the input's own pages take as well, mostly
 * as many as the spill, so half of it is what a spill may count on.
 *
 *	  spill		|#########|							no: stays in memory
 *				|##############################|	yes
 *	  half of memory, what the kernel leaves alone ^
 *
 * A device that nobody has measured shows after a run or two whether it is a
 * slow one, and a spill that was expected to be small is looked at after each
 * run.  So runs written plainly and compressed ones may lie beside each other;
 * a block says which it is.  If it turns out that records become little
 * smaller, no more of them are compressed.
 *
 * A block size that was set asks for the paper's merge, in which a block holds
 * what fits into it, and so do the modes that are there to be compared with:
 * then only the setting turns it on.
 *
 * Plain numbers, nothing to free and nothing that fails.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "device/cache.h"
#include "device/compression.h"

/* With less memory than that, what compressing takes is too large a part. */
#define MEMORY_MIN_BYTES	((Size) 1024 * 1024)

/* Fewer bytes do not tell what it gains; and that is the least. */
#define GAIN_SEEN_MIN_BYTES	((uint64) 1024 * 1024)
#define GAIN_MIN			1.25

/* Will what is spilled stay in the page cache, so much of it being there? */
static bool
stays_in_memory(double spill_bytes, uint64 cached_bytes)
{
	double		left_alone = cached_bytes + fms_cache_room_bytes(cached_bytes);

	return spill_bytes < left_alone &&
		fms_cache_memory_holds(spill_bytes, cached_bytes);
}

static bool
pays(const FmsMedium *medium, double spill_bytes, uint64 cached_bytes)
{
	return fms_medium_is_very_slow(medium) &&
		(!medium->cached || !stays_in_memory(spill_bytes, cached_bytes));
}

static void
set(FmsCompression *compression, bool on, FmsCompressReason reason)
{
	compression->on = on;
	compression->reason = reason;
}

/* Does the setting leave it open? */
static bool
is_open(const FmsOptions *options)
{
	return options->compression == FMS_COMPRESS_AUTO &&
		options->mode == FMS_MODE_FMSORT && options->block_bytes == 0 &&
		options->memory_bytes >= MEMORY_MIN_BYTES;
}

static void
decide(FmsCompression *compression, const FmsMedium *medium,
	   double spill_bytes, uint64 cached_bytes)
{
	bool		on = pays(medium, spill_bytes, cached_bytes);

	set(compression, on, on ? FMS_COMPRESS_SLOW : FMS_COMPRESS_NO_NEED);
}

void
fms_compression_begin(FmsCompression *compression, const FmsOptions *options,
					  const FmsMedium *medium)
{
	memset(compression, 0, sizeof(*compression));
	compression->expected_bytes = options->expected_bytes;
	compression->settled = !is_open(options);
	if (compression->settled)
		set(compression, options->compression == FMS_COMPRESS_ON,
			FMS_COMPRESS_AS_SET);
	else
		decide(compression, medium, compression->expected_bytes, 0);
}

static bool
gains_little(const FmsCompressed *done)
{
	return done->record_bytes >= GAIN_SEEN_MIN_BYTES &&
		done->record_bytes < done->chunk_bytes * GAIN_MIN;
}

void
fms_compression_next_run(FmsCompression *compression, const FmsMedium *medium,
						 const FmsTapeUse *use,
						 const FmsCompressed *done)
{
	if (compression->settled)
		return;
	if (gains_little(done))
	{
		compression->settled = true;
		set(compression, false, FMS_COMPRESS_GAINED_LITTLE);
	}
	else if (!compression->on || !fms_medium_is_very_slow(medium))
		decide(compression, medium,
			   Max(compression->expected_bytes, use->written_bytes),
			   use->cached_bytes);
}
