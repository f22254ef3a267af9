/*-------------------------------------------------------------------------
 *
 * spill_policy.h
 *	  Chooses page cache or direct I/O, and compression, for the next run.
 *
 * The spill asks before its first run and after each run.  A choice does not
 * change runs that have been written.
 *
 *-------------------------------------------------------------------------
 */
#ifndef FMS_SPILL_POLICY_H
#define FMS_SPILL_POLICY_H

#include "base/counters.h"
#include "device/free_memory.h"

/* What the spill knows. */
typedef struct FmsSpillFacts
{
	/* the sort */
	FmsDirectChoice direct_io;
	FmsCompressChoice compression;	/* AUTO: the policy decides */
	uint32		block_bytes;
	double		expected_bytes; /* of the whole spill; 0: unknown */
	uint64		small_bytes;	/* it is small below that; 0: never */
	bool		async_reads;	/* several reads at once are possible */
	bool		direct_fixed;	/* the tape refused to change */

	/* the device: its profile, until direct runs showed another rate */
	FmsDevice	device;
	bool		device_seen;	/* they did */
	FmsSeen		seen;			/* all direct runs */

	FmsFreeMemory memory;
	uint64		memory_due_bytes;	/* written when memory is read next */

	/* the spill so far */
	uint64		written_bytes;
	uint64		cached_bytes;	/* of them, into the page cache */
	uint64		compressible_bytes; /* records that were compressed */
	uint64		compressed_bytes;	/* what was written for these */
} FmsSpillFacts;

typedef struct FmsSpillChoice
{
	bool		direct;
	bool		compressed;
	FmsDirectReason direct_reason;
	FmsCompressReason compress_reason;
	double		device_mb;		/* round trip; 0: unknown */
} FmsSpillChoice;

/* Sets the facts, but async_reads, before the first run.  May read memory. */
extern void fms_spill_policy_begin(FmsSpillFacts *facts,
								   const FmsOptions *options,
								   uint32 block_bytes);

/* Such a spill is synchronous, in the page cache, and no memory is read. */
static inline bool
fms_spill_policy_is_small(const FmsSpillFacts *facts)
{
	return facts->written_bytes < facts->small_bytes;
}

/*
 * Notes that a run of `bytes` has been written, direct or not, which is part
 * of written_bytes.  Reads memory again if other sorts may have taken some
 * meanwhile, or if direct runs show another rate of the device than known.
 */
extern void fms_spill_policy_observe(FmsSpillFacts *facts, bool direct,
									 double bytes, double elapsed_us,
									 double blocked_us);

/*
 * Decides about the next run.  A pure function; previous is all zero before
 * the first run.  The first row that applies decides:
 *
 *	  direct I/O if				next run	reason
 *	1 the setting is on or off	as set		AS_SET
 *	2 the spill is small		cached		SMALL
 *	3 direct_fixed				as before	as before
 *	4 the last run was direct	direct		as before
 *	  but for HALF, and did not show that the device is very slow
 *	5 reads are synchronous		cached		SYNC
 *	6 the device is fast		direct		FAST
 *	7 it is not slow, and four	direct		NO_ROOM
 *	  times the room are less than expected
 *	8 memory does not hold the	direct		HALF
 *	  expected spill and its input; up to half of the expected spill, and
 *	  not if the device is very slow
 *	9 the page cache has less	direct		NO_ROOM
 *	  than 4 MB of room or, if the device is slow, of memory
 *	10 otherwise				cached		ROOM
 *
 *	  compression if			next run	reason
 *	a the setting is on or off	as set		AS_SET
 *	b it gained little			no			GAINED_LITTLE
 *	c the device is not very	no			NO_NEED
 *	  slow
 *	d the last run was			yes			SLOW
 *	  compressed
 *	e the next run is direct	yes			SLOW
 *	f the page cache has no		yes			SLOW
 *	  room for the rest of the spill, or memory does not hold it and its input
 *	g otherwise					no			NO_NEED
 *
 * A device is very slow below a round trip of 150 MB/s, slow below 300, fast
 * above 2,000.  Memory: most of what is available.  Room: what the kernel
 * would leave unwritten, and a fair share of memory.
 */
extern FmsSpillChoice fms_spill_policy_choose(const FmsSpillFacts *facts,
											  const FmsSpillChoice *previous);

/* What a device with that round trip means for sorts: a word, a sentence. */
extern const char *fms_spill_policy_verdict(double device_mb,
											bool async_reads);

#endif							/* FMS_SPILL_POLICY_H */
